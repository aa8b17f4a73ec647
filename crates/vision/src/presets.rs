//! How a picture becomes a network's input: stated presets, each a plain value whose fields can be overridden.
//!
//! [`Preparation::named`] looks a preset up; [`Preparation::guess`] falls back on the input's shape alone and says what
//! it assumed. [`Preparation::apply`] does the work and returns, beside the numbers, the [`Placement`] by which
//! coordinates in the network's input are mapped back onto the picture.

use serde::{Deserialize, Serialize};

use crate::picture::Picture;
use crate::planes::{ChannelOrder, Layout, Planes};
use crate::resize::Filter;

/// How the picture is made to fill the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "mode")]
pub enum Fit {
    /// Both sides are scaled to the input, whatever that does to the proportions.
    Stretch,
    /// Scaled until it fits inside, centred, the rest filled with one grey.
    Letterbox {
        /// The grey.
        fill: u8,
    },
    /// The shorter side is scaled to a length, then the middle is cut out.
    Crop {
        /// Length of the shorter side before cutting.
        short_side: usize,
    },
    /// Scaled up, proportions kept, until the shorter side has this length, then both sides rounded to multiples.
    /// The input's own size is not used.
    ShortSideAtLeast {
        /// Length of the shorter side.
        side: usize,
        /// Both sides become multiples of this.
        multiple: usize,
    },
    /// Scaled to the input's height, width in proportion but at most the input's; the rest on the right is nought
    /// after normalising.
    HeightThenPad,
}

/// All there is to say about turning a picture into numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Preparation {
    /// How the picture fills the input.
    pub fit: Fit,
    /// How pixels are mixed when it changes size.
    pub filter: Filter,
    /// Width of the input, where the network does not state one.
    pub width: Option<usize>,
    /// Height of the input, where the network does not state one.
    pub height: Option<usize>,
    /// Which channels, in which order.
    pub order: ChannelOrder,
    /// Where the channels lie.
    pub layout: Layout,
    /// Each byte is divided by this first.
    pub divisor: f64,
    /// Then this is taken off, channel by channel in the network's order.
    pub mean: [f64; 3],
    /// Then the rest is divided by this.
    pub std: [f64; 3],
}

/// Why a picture could not be prepared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PreparationError {
    /// No preset of this name.
    #[error("no preset is called \"{name}\"; there are {known}", known = PRESET_NAMES.join(", "))]
    UnknownPreset {
        /// The name asked for.
        name: String,
    },
    /// The shape does not look like a picture's.
    #[error(
        "an input of shape {shape} does not look like a picture ([N, 3, height, width] or [N, height, width, 3]); \
         name a preset, or feed a .npy file"
    )]
    NotAPicture {
        /// The shape, dynamic dimensions as `?`.
        shape: String,
    },
    /// Neither the network nor the caller states a size.
    #[error("the network leaves its input size open and preset states none; give a width and a height")]
    SizeNeeded,
    /// The size asked for is nought or absurd.
    #[error(
        "an input of {width} x {height} pixels cannot be made from a picture of {picture_width} x {picture_height}: it must \
         have between 1 and {MOST_PIXELS} pixels"
    )]
    BadSize {
        /// Width asked for.
        width: usize,
        /// Height asked for.
        height: usize,
        /// Width of the picture.
        picture_width: usize,
        /// Height of the picture.
        picture_height: usize,
    },
    /// A divisor or standard deviation is nought or not a number.
    #[error("divisor and standard deviations must be finite and not nought")]
    BadScale,
}

/// Where the picture lies in the input.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// Width of the picture as it was.
    pub picture_width: usize,
    /// Height of the picture as it was.
    pub picture_height: usize,
    /// Width of the scaled picture.
    pub scaled_width: usize,
    /// Height of the scaled picture.
    pub scaled_height: usize,
    /// Pixels of the input for one of the picture, across.
    pub scale_x: f64,
    /// Pixels of the input for one of the picture, down.
    pub scale_y: f64,
    /// Where its left edge lies in the input (negative where it was cut).
    pub left: isize,
    /// Where its upper edge lies in the input.
    pub top: isize,
    /// Width of the input.
    pub width: usize,
    /// Height of the input.
    pub height: usize,
}

impl Placement {
    /// A point of the input as a point of the picture, not clipped.
    pub fn to_picture(&self, x: f64, y: f64) -> (f64, f64) {
        ((x - self.left as f64) / self.scale_x, (y - self.top as f64) / self.scale_y)
    }
}

/// The numbers, and where the picture lies in them.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// The network's input.
    pub planes: Planes,
    /// Where the picture lies in it.
    pub placement: Placement,
}

/// A guessed preparation and what the guess rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Guess {
    /// Name of the preset that was taken.
    pub name: &'static str,
    /// The preparation.
    pub preparation: Preparation,
    /// What was assumed, in a sentence for the user.
    pub reason: String,
}

/// Names that [`Preparation::named`] knows.
pub const PRESET_NAMES: [&str; 9] =
    ["imagenet", "unit", "yolo", "ppocr-det", "ppocr-rec", "ppocr-cls", "picodet", "mtcnn", "raw"];

const IMAGENET_MEAN: [f64; 3] = [0.485, 0.456, 0.406];
const IMAGENET_STD: [f64; 3] = [0.229, 0.224, 0.225];

/// Inputs above this are refused: a billion numbers are 4 GB.
const MOST_PIXELS: usize = 1 << 28;

impl Preparation {
    /// Stretched to the input, 0 to 1, RGB, channels first: the plainest preset and the base of the others.
    pub fn unit() -> Self {
        Self {
            fit: Fit::Stretch,
            filter: Filter::Linear,
            width: None,
            height: None,
            order: ChannelOrder::Rgb,
            layout: Layout::ChannelsFirst,
            divisor: 255.0,
            mean: [0.0; 3],
            std: [1.0; 3],
        }
    }

    /// The preset of a name out of [`PRESET_NAMES`].
    pub fn named(name: &str) -> Result<Self, PreparationError> {
        let unit = Self::unit();
        let centred = Self { mean: [0.5; 3], std: [0.5; 3], ..unit.clone() };
        Ok(match name {
            "imagenet" => Self {
                fit: Fit::Crop { short_side: 256 },
                filter: Filter::Antialiased,
                width: Some(224),
                height: Some(224),
                mean: IMAGENET_MEAN,
                std: IMAGENET_STD,
                ..unit
            },
            "unit" => unit,
            "yolo" => Self { fit: Fit::Letterbox { fill: 114 }, width: Some(640), height: Some(640), ..unit },
            "ppocr-det" => {
                let fit = Fit::ShortSideAtLeast { side: 736, multiple: 32 };
                Self { fit, order: ChannelOrder::Bgr, ..centred }
            }
            "ppocr-rec" => Self {
                fit: Fit::HeightThenPad,
                width: Some(320),
                height: Some(48),
                order: ChannelOrder::Bgr,
                ..centred
            },
            "ppocr-cls" => Self {
                fit: Fit::HeightThenPad,
                width: Some(192),
                height: Some(48),
                order: ChannelOrder::Bgr,
                ..centred
            },
            "picodet" => Self {
                width: Some(608),
                height: Some(800),
                order: ChannelOrder::Bgr,
                mean: IMAGENET_MEAN,
                std: IMAGENET_STD,
                ..unit
            },
            "mtcnn" => Self {
                filter: Filter::Area,
                layout: Layout::ChannelsLast,
                divisor: 1.0,
                mean: [127.5; 3],
                std: [128.0; 3],
                ..unit
            },
            "raw" => Self { divisor: 1.0, ..unit },
            _ => return Err(PreparationError::UnknownPreset { name: name.to_owned() }),
        })
    }

    /// The plainest preparation for an input of this shape (`None` where a dimension is open). Only the number of
    /// channels and where they lie can be told from a shape; the sentence in the result says so.
    pub fn guess(shape: &[Option<usize>]) -> Result<Guess, PreparationError> {
        let channels = |dimension: Option<usize>| matches!(dimension, Some(1 | 3));
        let (layout, count) = match *shape {
            [_, first, ..] if shape.len() == 4 && channels(first) => (Layout::ChannelsFirst, first),
            [.., last] if shape.len() == 4 && channels(last) => (Layout::ChannelsLast, last),
            _ => {
                let dimension =
                    |size: &Option<usize>| size.map_or_else(|| "?".to_owned(), |size| size.to_string());
                let shape = format!("[{}]", shape.iter().map(dimension).collect::<Vec<_>>().join(", "));
                return Err(PreparationError::NotAPicture { shape });
            }
        };
        let order = if count == Some(1) { ChannelOrder::Grey } else { ChannelOrder::Rgb };
        let reason = format!(
            "{} {}: assumed preset \"unit\" (stretched, 0 to 1, {}); name a preset if the network wants another",
            order.count(),
            match (layout, order) {
                (Layout::ChannelsFirst, ChannelOrder::Grey) => "channel, first",
                (Layout::ChannelsLast, ChannelOrder::Grey) => "channel, last",
                (Layout::ChannelsFirst, _) => "channels, first",
                (Layout::ChannelsLast, _) => "channels, last",
            },
            match order {
                ChannelOrder::Grey => "grey",
                ChannelOrder::Rgb | ChannelOrder::Bgr => "RGB",
            },
        );
        Ok(Guess { name: "unit", preparation: Self { order, layout, ..Self::unit() }, reason })
    }

    /// The same preparation with the channels where an input of this shape has them, as far as the shape tells.
    #[must_use]
    pub fn laid_out_for(self, shape: &[Option<usize>]) -> Self {
        let channels = Some(self.order.count());
        match *shape {
            [_, first, _, _] if first == channels => Self { layout: Layout::ChannelsFirst, ..self },
            [_, _, _, last] if last == channels => Self { layout: Layout::ChannelsLast, ..self },
            _ => self,
        }
    }

    /// The size of the input that a shape states under this preparation's layout, width first.
    pub fn size_in(&self, shape: &[Option<usize>]) -> (Option<usize>, Option<usize>) {
        match (shape, self.layout) {
            (&[_, _, height, width], Layout::ChannelsFirst)
            | (&[_, height, width, _], Layout::ChannelsLast) => (width, height),
            _ => (None, None),
        }
    }

    /// Makes a picture the input of a network. A size given here (what the network states) goes before the preset's.
    pub fn apply(
        &self,
        picture: &Picture,
        width: Option<usize>,
        height: Option<usize>,
    ) -> Result<Prepared, PreparationError> {
        let table = self.table()?;
        let (picture_width, picture_height) = (picture.width(), picture.height());
        let stated = width.or(self.width).zip(height.or(self.height));
        let bad = |width: usize, height: usize| PreparationError::BadSize {
            width,
            height,
            picture_width,
            picture_height,
        };
        let checked = |width: usize, height: usize| match width.checked_mul(height) {
            Some(1..=MOST_PIXELS) => Ok((width, height)),
            _ => Err(bad(width, height)),
        };

        if let Fit::ShortSideAtLeast { side, multiple } = self.fit {
            let (width, height) = short_side_at_least(picture_width, picture_height, side, multiple);
            let (width, height) = checked(width, height)?;
            return Ok(self.stretch(picture, &table, width, height));
        }
        let (width, height) = stated.ok_or(PreparationError::SizeNeeded)?;
        let (width, height) = checked(width, height)?;
        match self.fit {
            Fit::Stretch | Fit::ShortSideAtLeast { .. } => Ok(self.stretch(picture, &table, width, height)),
            Fit::Letterbox { fill } => {
                let ratio = (height as f64 / picture_height as f64).min(width as f64 / picture_width as f64);
                let scaled = |side: usize| ((side as f64 * ratio).round_ties_even() as usize).max(1);
                let (scaled_width, scaled_height) = (scaled(picture_width), scaled(picture_height));
                let margin = |all: usize, part: usize| {
                    (((all as f64 - part as f64) / 2.0 - 0.1).round_ties_even() as isize).max(0)
                };
                let placement = Placement {
                    picture_width,
                    picture_height,
                    scaled_width,
                    scaled_height,
                    scale_x: ratio,
                    scale_y: ratio,
                    left: margin(width, scaled_width),
                    top: margin(height, scaled_height),
                    width,
                    height,
                };
                let fill = [0, 1, 2].map(|channel| table[channel][usize::from(fill)]);
                Ok(self.place(picture, &table, placement, fill))
            }
            Fit::Crop { short_side } => {
                let long =
                    |long: usize, short: usize| (short_side as f64 * long as f64 / short as f64) as usize;
                let (scaled_width, scaled_height) = if picture_width <= picture_height {
                    (short_side, long(picture_height, picture_width))
                } else {
                    (long(picture_width, picture_height), short_side)
                };
                checked(scaled_width, scaled_height)?;
                // Where the cut is larger than the picture, the rest is nought before normalising.
                let offset =
                    |part: usize, all: usize| -((all as f64 - part as f64) / 2.0).round_ties_even() as isize;
                let placement = Placement {
                    picture_width,
                    picture_height,
                    scaled_width,
                    scaled_height,
                    scale_x: scaled_width as f64 / picture_width as f64,
                    scale_y: scaled_height as f64 / picture_height as f64,
                    left: offset(width, scaled_width),
                    top: offset(height, scaled_height),
                    width,
                    height,
                };
                let fill = [0, 1, 2].map(|channel| table[channel][0]);
                Ok(self.place(picture, &table, placement, fill))
            }
            Fit::HeightThenPad => {
                let wanted = (height as f64 * (picture_width as f64 / picture_height as f64)).ceil() as usize;
                let scaled_width = wanted.clamp(1, width);
                let placement = Placement {
                    picture_width,
                    picture_height,
                    scaled_width,
                    scaled_height: height,
                    scale_x: scaled_width as f64 / picture_width as f64,
                    scale_y: height as f64 / picture_height as f64,
                    left: 0,
                    top: 0,
                    width,
                    height,
                };
                Ok(self.place(picture, &table, placement, [0.0; 3]))
            }
        }
    }

    /// What each byte becomes, for each of the network's channels. The quotient is taken in single precision, as the
    /// Python pipelines take it; the rest is rounded once.
    pub(crate) fn table(&self) -> Result<[[f32; 256]; 3], PreparationError> {
        let usable = |value: f64| value.is_finite() && value != 0.0;
        if !usable(self.divisor) || !self.std.into_iter().all(usable) {
            return Err(PreparationError::BadScale);
        }
        Ok([0, 1, 2].map(|channel| {
            std::array::from_fn(|byte| {
                let quotient = f64::from(byte as f32 / self.divisor as f32);
                ((quotient - self.mean[channel]) / self.std[channel]) as f32
            })
        }))
    }

    fn stretch(&self, picture: &Picture, table: &[[f32; 256]; 3], width: usize, height: usize) -> Prepared {
        let placement = Placement {
            picture_width: picture.width(),
            picture_height: picture.height(),
            scaled_width: width,
            scaled_height: height,
            scale_x: width as f64 / picture.width() as f64,
            scale_y: height as f64 / picture.height() as f64,
            left: 0,
            top: 0,
            width,
            height,
        };
        self.place(picture, table, placement, [0.0; 3])
    }

    fn place(
        &self,
        picture: &Picture,
        table: &[[f32; 256]; 3],
        placement: Placement,
        fill: [f32; 3],
    ) -> Prepared {
        let Placement { width, height, .. } = placement;
        let mut planes = Planes {
            data: vec![0.0; self.order.count() * width * height],
            count: 1,
            channels: self.order.count(),
            height,
            width,
            layout: self.layout,
        };
        let scaled;
        let picture =
            if (picture.width(), picture.height()) == (placement.scaled_width, placement.scaled_height) {
                picture
            } else {
                scaled = picture.resized(placement.scaled_width, placement.scaled_height, self.filter);
                &scaled
            };
        self.write(&mut planes, 0, picture, table, (placement.left, placement.top), fill);
        Prepared { planes, placement }
    }

    /// Writes a picture, normalised, into one item of a batch, its upper left corner at a place, `fill` around it.
    pub(crate) fn write(
        &self,
        planes: &mut Planes,
        index: usize,
        picture: &Picture,
        table: &[[f32; 256]; 3],
        (left, top): (isize, isize),
        fill: [f32; 3],
    ) {
        let Planes { channels, width, height, .. } = *planes;
        let item = &mut planes.data[index * channels * width * height..][..channels * width * height];
        let (pixel_stride, channel_stride) = match self.layout {
            Layout::ChannelsFirst => (1, width * height),
            Layout::ChannelsLast => (channels, 1),
        };
        let inside = |start: isize, length: usize, all: usize| {
            let begin = start.clamp(0, all as isize) as usize;
            let end = (start + length as isize).clamp(0, all as isize) as usize;
            begin..end
        };
        let (columns, rows) = (inside(left, picture.width(), width), inside(top, picture.height(), height));
        if columns.len() < width || rows.len() < height {
            for (channel, fill) in fill.into_iter().enumerate().take(channels) {
                item.iter_mut()
                    .skip(channel * channel_stride)
                    .step_by(pixel_stride)
                    .take(width * height)
                    .for_each(|value| *value = fill);
            }
        }
        for row in rows {
            let source = (row as isize - top) as usize * picture.width();
            let source = &picture.rgb()[3 * (source + (columns.start as isize - left) as usize)..];
            let pixels = source.as_chunks::<3>().0;
            for channel in 0..channels {
                let table = &table[channel];
                let start = (row * width + columns.start) * pixel_stride + channel * channel_stride;
                let row = &mut item[start..];
                // Channels that lie apart are written as one run, which the compiler can see through.
                if pixel_stride == 1 {
                    self.write_row(row[..columns.len()].iter_mut(), pixels, channel, table);
                } else {
                    self.write_row(
                        row.iter_mut().step_by(pixel_stride).take(columns.len()),
                        pixels,
                        channel,
                        table,
                    );
                }
            }
        }
    }

    fn write_row<'a>(
        &self,
        row: impl Iterator<Item = &'a mut f32>,
        pixels: &[[u8; 3]],
        channel: usize,
        table: &[f32; 256],
    ) {
        let values = row.zip(pixels);
        match self.order {
            ChannelOrder::Rgb => {
                values.for_each(|(value, pixel)| *value = table[usize::from(pixel[channel])]);
            }
            ChannelOrder::Bgr => {
                values.for_each(|(value, pixel)| *value = table[usize::from(pixel[2 - channel])]);
            }
            ChannelOrder::Grey => {
                values.for_each(|(value, &pixel)| *value = table[usize::from(grey(pixel))]);
            }
        }
    }
}

fn grey([red, green, blue]: [u8; 3]) -> u8 {
    ((u32::from(red) * 19595 + u32::from(green) * 38470 + u32::from(blue) * 7471 + 0x8000) >> 16) as u8
}

fn short_side_at_least(width: usize, height: usize, side: usize, multiple: usize) -> (usize, usize) {
    let shorter = width.min(height);
    let ratio = if shorter < side { side as f64 / shorter as f64 } else { 1.0 };
    let round = |length: usize| {
        let scaled = (length as f64 * ratio) as usize;
        (scaled as f64 / multiple as f64).round_ties_even() as usize * multiple
    };
    (round(width), round(height))
}
