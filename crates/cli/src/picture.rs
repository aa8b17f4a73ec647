//! Pictures as inputs of models.

use std::path::{Path, PathBuf};

use anyhow::Context;
use armet::{ElementType, Tensor, ValueSpec};
use armet_vision::presets::{Placement, Preparation, PreparationError};
use armet_vision::{Limits, Picture, Planes};
use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};

use crate::output::{Hint, Terminal};

/// How pictures become inputs.
#[derive(Debug, Args)]
pub(crate) struct PictureOptions {
    /// How pictures are resized and normalised: imagenet, unit, yolo, ppocr-det, ppocr-rec, ppocr-cls, picodet, mtcnn, raw.
    #[arg(long)]
    preset: Option<String>,
    /// Subtracted from each channel after dividing by the divisor: 0.485,0.456,0.406.
    #[arg(long, value_delimiter = ',', value_name = "R,G,B", value_parser = parse_number, allow_hyphen_values = true)]
    mean: Vec<f64>,
    /// Divides each channel last.
    #[arg(long, value_delimiter = ',', value_name = "R,G,B", value_parser = parse_number, allow_hyphen_values = true)]
    std: Vec<f64>,
    /// Divides each byte first [default: the preset's, mostly 255].
    #[arg(long, value_parser = parse_number, allow_negative_numbers = true)]
    divisor: Option<f64>,
    /// Width and height for inputs that leave them open: 640x480.
    #[arg(long, value_name = "WxH", value_parser = parse_size)]
    size: Option<(usize, usize)>,
}

pub(crate) fn open(path: &Path) -> anyhow::Result<Picture> {
    Picture::open(path, &Limits::default()).with_context(|| format!("cannot read picture {}", path.display()))
}

pub(crate) fn tensor(planes: &Planes) -> anyhow::Result<Tensor> {
    Ok(Tensor::new(planes.shape(), &planes.data)?)
}

fn three(values: &[f64], what: &str) -> anyhow::Result<Option<[f64; 3]>> {
    Ok(match *values {
        [] => None,
        [all] => Some([all; 3]),
        [a, b, c] => Some([a, b, c]),
        _ => anyhow::bail!("--{what} takes one number or three"),
    })
}

/// A finite number.
pub(crate) fn parse_number(text: &str) -> Result<f64, String> {
    text.trim()
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
        .ok_or_else(|| "expected a number".into())
}

/// A score, or a share of an area.
pub(crate) fn parse_share(text: &str) -> Result<f32, String> {
    let share = text.trim().parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1".into())
}

/// Reads the name of a file that a picture is written to.
pub(crate) fn output_name() -> impl TypedValueParser<Value = PathBuf> {
    let check = |path: PathBuf| {
        let advice = "pictures are written as PNG or JPEG; let the name end in .png or .jpg";
        if Picture::can_save(&path) { Ok(path) } else { Err(advice) }
    };
    PathBufValueParser::new().try_map(check)
}

fn parse_size(text: &str) -> Result<(usize, usize), String> {
    let number = |text: &str| text.trim().parse().ok().filter(|&number: &usize| number > 0);
    let size = text.split_once(['x', ',']).and_then(|(w, h)| number(w).zip(number(h)));
    size.ok_or_else(|| "expected WIDTHxHEIGHT, each at least 1, for instance 640x480".into())
}

impl PictureOptions {
    /// An option that was given.
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        let given = [
            ("--preset", self.preset.is_some()),
            ("--mean", !self.mean.is_empty()),
            ("--std", !self.std.is_empty()),
            ("--divisor", self.divisor.is_some()),
            ("--size", self.size.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }

    /// The input that a picture becomes, and where the picture lies in it.
    pub(crate) fn prepare(
        &self,
        picture: &Picture,
        input: &ValueSpec,
        terminal: &mut Terminal,
    ) -> anyhow::Result<(Tensor, Placement)> {
        let dims: Vec<Option<usize>> =
            input.dims().map(|d| d.iter().map(armet::Dim::fixed).collect()).unwrap_or_default();
        let mut preparation = match &self.preset {
            Some(name) => Preparation::named(name)?,
            None => {
                let guess = Preparation::guess(&dims)?;
                terminal.note(format_args!("note: input {}: {}", input.name, guess.reason));
                guess.preparation
            }
        };
        if let Some(mean) = three(&self.mean, "mean")? {
            preparation.mean = mean;
        }
        if let Some(std) = three(&self.std, "std")? {
            preparation.std = std;
        }
        if let Some(divisor) = self.divisor {
            preparation.divisor = divisor;
        }
        let stated = preparation.size_in(&dims);
        if let Some((width, height)) = self.size
            && (stated.0.is_some_and(|declared| declared != width)
                || stated.1.is_some_and(|declared| declared != height))
        {
            anyhow::bail!(
                "--size {width}x{height} contradicts input {}, which is {}; leave --size out",
                input.name,
                input.ty
            );
        }
        let (width, height) = self.size.map_or(stated, |(w, h)| (Some(w), Some(h)));
        let prepared = preparation.apply(picture, width, height).map_err(|error| match error {
            PreparationError::SizeNeeded => {
                let open =
                    format!("input {} is {}, which leaves the size of a picture open", input.name, input.ty);
                Hint::new(open, "state it with --size WIDTHxHEIGHT, for instance --size 640x480").into()
            }
            other => anyhow::Error::new(other),
        })?;
        let tensor = tensor(&prepared.planes)?;
        let tensor = match input.element() {
            Some(ElementType::F32) | None => tensor,
            Some(ElementType::U8) => {
                let bytes: Vec<u8> = prepared.planes.data.iter().map(|v| v.round() as u8).collect();
                Tensor::new(tensor.shape().clone(), &bytes)?
            }
            Some(other) => anyhow::bail!("input {} holds {other}; give it as a .npy file", input.name),
        };
        Ok((tensor, prepared.placement))
    }
}
