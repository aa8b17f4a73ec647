//! The sizes of a convolution and what can be wrong with them.

use thiserror::Error;

/// The sizes of a two-dimensional convolution; one dimension is a height of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvShape {
    /// Images.
    pub batch: usize,
    /// Rows of the input.
    pub in_h: usize,
    /// Columns of the input.
    pub in_w: usize,
    /// Channels of the input, of all groups.
    pub in_c: usize,
    /// Channels of the output, of all groups.
    pub out_c: usize,
    /// Rows of the kernel.
    pub kernel_h: usize,
    /// Columns of the kernel.
    pub kernel_w: usize,
    /// Input rows from one output row to the next.
    pub stride_h: usize,
    /// Input columns from one output column to the next.
    pub stride_w: usize,
    /// Input rows from one kernel row to the next.
    pub dilation_h: usize,
    /// Input columns from one kernel column to the next.
    pub dilation_w: usize,
    /// Rows of zeros above the input.
    pub pad_top: usize,
    /// Columns of zeros before the input.
    pub pad_left: usize,
    /// Rows of zeros below the input.
    pub pad_bottom: usize,
    /// Columns of zeros after the input.
    pub pad_right: usize,
    /// Parts of the channels that do not see each other.
    pub groups: usize,
}

impl ConvShape {
    /// A convolution of one image with stride, dilation and groups of one and without padding.
    pub fn new(
        (in_h, in_w): (usize, usize),
        in_c: usize,
        out_c: usize,
        (kernel_h, kernel_w): (usize, usize),
    ) -> ConvShape {
        ConvShape {
            batch: 1,
            in_h,
            in_w,
            in_c,
            out_c,
            kernel_h,
            kernel_w,
            stride_h: 1,
            stride_w: 1,
            dilation_h: 1,
            dilation_w: 1,
            pad_top: 0,
            pad_left: 0,
            pad_bottom: 0,
            pad_right: 0,
            groups: 1,
        }
    }

    /// Rows of the output.
    pub fn out_h(&self) -> usize {
        steps(self.in_h + self.pad_top + self.pad_bottom, self.kernel_h, self.dilation_h, self.stride_h)
    }

    /// Columns of the output.
    pub fn out_w(&self) -> usize {
        steps(self.in_w + self.pad_left + self.pad_right, self.kernel_w, self.dilation_w, self.stride_w)
    }

    /// Pixels of the input of all images.
    pub fn in_pixels(&self) -> usize {
        self.batch * self.in_h * self.in_w
    }

    /// Pixels of the output of all images.
    pub fn out_pixels(&self) -> usize {
        self.batch * self.out_h() * self.out_w()
    }

    /// Elements of the kernel per pair of channels.
    pub fn taps(&self) -> usize {
        self.kernel_h * self.kernel_w
    }

    /// Input channels of one group.
    pub fn group_in_c(&self) -> usize {
        self.in_c / self.groups
    }

    /// Output channels of one group.
    pub fn group_out_c(&self) -> usize {
        self.out_c / self.groups
    }

    /// Elements of the weights, in the order output channel, input channel of the group, kernel row, kernel column.
    pub fn weights_len(&self) -> usize {
        self.out_c * self.group_in_c() * self.taps()
    }

    /// Products that one run computes.
    pub fn multiplications(&self) -> u64 {
        self.out_pixels() as u64 * self.weights_len() as u64
    }

    /// Whether each output channel sees one input channel and each input channel is seen by one.
    pub fn is_depthwise(&self) -> bool {
        self.groups == self.in_c && self.groups == self.out_c
    }

    /// Whether every output pixel sees the one input pixel at its place.
    pub fn is_pointwise(&self) -> bool {
        (self.kernel_h, self.kernel_w, self.stride_h, self.stride_w) == (1, 1, 1, 1)
            && (self.pad_top, self.pad_left, self.pad_bottom, self.pad_right) == (0, 0, 0, 0)
    }

    /// Check that the sizes make sense together.
    pub fn check(&self) -> Result<(), ConvError> {
        for (what, size) in [
            ("groups", self.groups),
            ("input channels", self.in_c),
            ("output channels", self.out_c),
            ("kernel rows", self.kernel_h),
            ("kernel columns", self.kernel_w),
            ("vertical stride", self.stride_h),
            ("horizontal stride", self.stride_w),
            ("vertical dilation", self.dilation_h),
            ("horizontal dilation", self.dilation_w),
        ] {
            if size == 0 {
                return Err(ConvError::Zero { what });
            }
        }
        if !self.in_c.is_multiple_of(self.groups) || !self.out_c.is_multiple_of(self.groups) {
            let (groups, in_c, out_c) = (self.groups, self.in_c, self.out_c);
            return Err(ConvError::Groups { groups, in_c, out_c });
        }
        // Every product of sizes that is used later, with room to spare.
        let sizes = [
            [self.batch, self.in_h + self.pad_top, self.in_w + self.pad_left, self.in_c],
            [self.batch, self.in_h + self.pad_bottom, self.in_w + self.pad_right, self.out_c],
            [self.in_c, self.out_c, self.kernel_h.max(8), self.kernel_w.max(8)],
            [self.kernel_h, self.dilation_h, self.kernel_w, self.dilation_w],
        ];
        for sizes in sizes {
            let product = sizes.into_iter().try_fold(64_usize, usize::checked_mul);
            if product.is_none_or(|product| product > isize::MAX as usize) {
                return Err(ConvError::TooLarge);
            }
        }
        Ok(())
    }
}

/// How many places a dilated kernel has along a padded side.
fn steps(padded: usize, kernel: usize, dilation: usize, stride: usize) -> usize {
    let reach = (kernel - 1) * dilation + 1;
    if padded < reach { 0 } else { (padded - reach) / stride + 1 }
}

/// The order of the input's elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum InputLayout {
    /// Image, row, column, channel.
    #[default]
    ChannelsLast,
    /// Image, channel, row, column: for inputs of few channels, as pictures are.
    ChannelsFirst,
}

/// What may be chosen about a convolution besides its sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConvOptions {
    /// Whether Winograd's algorithm may be used where it is faster: its sums differ from the direct ones by several times
    /// the rounding error, and its weights take up to four times the memory.
    pub allow_winograd: bool,
    /// The order of the input's elements.
    pub input_layout: InputLayout,
    /// Elements from one input pixel to the next, when more than the channels. Only for channels-last inputs.
    pub input_pitch: Option<usize>,
    /// Elements from one output pixel to the next, when more than the channels.
    pub output_pitch: Option<usize>,
}

/// Why a convolution cannot be planned.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConvError {
    /// A size is zero that must not be.
    #[error("{what} must not be zero")]
    Zero {
        /// The size.
        what: &'static str,
    },
    /// Channels cannot be parted into the groups.
    #[error("{in_c} input and {out_c} output channels cannot be parted into {groups} groups")]
    Groups {
        /// The groups.
        groups: usize,
        /// The input channels.
        in_c: usize,
        /// The output channels.
        out_c: usize,
    },
    /// The tensors have more elements than can be addressed.
    #[error("the sizes of the convolution are too large")]
    TooLarge,
    /// There are not as many weights as the sizes ask for.
    #[error("{expected} weights are needed and {found} are given")]
    Weights {
        /// What the sizes ask for.
        expected: usize,
        /// What was given.
        found: usize,
    },
    /// Pixels would overlap.
    #[error("pixels of {channels} channels cannot lie {pitch} elements apart")]
    Pitch {
        /// Channels of a pixel.
        channels: usize,
        /// The distance asked for.
        pitch: usize,
    },
    /// No algorithm reads channels-first inputs of this kind.
    #[error("channels-first inputs need one group and at most {most} channels")]
    ChannelsFirst {
        /// The most channels that are possible.
        most: usize,
    },
    /// Packed weights belong to another convolution.
    #[error("the packed weights are those of another convolution")]
    OtherWeights,
}
