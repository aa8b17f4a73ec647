//! The numbers that go into a network, a batch of equally large pictures as `f32` in one of two layouts, and those that
//! come out of it.

use serde::{Deserialize, Serialize};

/// Where the channels of a network's input lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// `[count, channels, height, width]`
    ChannelsFirst,
    /// `[count, height, width, channels]`
    ChannelsLast,
}

/// Which channels, and in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelOrder {
    /// Red, green, blue.
    Rgb,
    /// Blue, green, red.
    Bgr,
    /// One channel of brightness (0.299 red, 0.587 green, 0.114 blue).
    Grey,
}

impl ChannelOrder {
    /// How many channels this is.
    pub fn count(self) -> usize {
        match self {
            Self::Rgb | Self::Bgr => 3,
            Self::Grey => 1,
        }
    }
}

/// A batch of equally large pictures as numbers, ready to be a tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Planes {
    /// The numbers, contiguous in the order that `layout` says.
    pub data: Vec<f32>,
    /// How many pictures.
    pub count: usize,
    /// Channels of each.
    pub channels: usize,
    /// Height of each.
    pub height: usize,
    /// Width of each.
    pub width: usize,
    /// Where the channels lie.
    pub layout: Layout,
}

impl Planes {
    /// The tensor's shape, outermost first.
    pub fn shape(&self) -> [usize; 4] {
        match self.layout {
            Layout::ChannelsFirst => [self.count, self.channels, self.height, self.width],
            Layout::ChannelsLast => [self.count, self.height, self.width, self.channels],
        }
    }
}

/// One output of a network, looked at.
#[derive(Debug, Clone, Copy)]
pub struct Output<'a> {
    /// Its shape, outermost first.
    pub shape: &'a [usize],
    /// Its numbers, contiguous.
    pub data: &'a [f32],
}

impl Output<'_> {
    /// Whether there are as many numbers as the shape says.
    pub fn is_filled(&self) -> bool {
        let values = self.shape.iter().try_fold(1usize, |all, &size| all.checked_mul(size));
        values == Some(self.data.len())
    }
}

/// One output of a network, owned.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// Its shape, outermost first.
    pub shape: Vec<usize>,
    /// Its numbers, contiguous.
    pub data: Vec<f32>,
}

impl Tensor {
    /// A look at it.
    pub fn view(&self) -> Output<'_> {
        Output { shape: &self.shape, data: &self.data }
    }
}
