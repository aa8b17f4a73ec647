//! The sizes of a transposed convolution.

use crate::conv::{ConvError, ConvShape};

/// The sizes of a two-dimensional transposed convolution; one dimension is a height of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvTransposeShape {
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
    /// Output rows from one input row to the next.
    pub stride_h: usize,
    /// Output columns from one input column to the next.
    pub stride_w: usize,
    /// Output rows from one kernel row to the next.
    pub dilation_h: usize,
    /// Output columns from one kernel column to the next.
    pub dilation_w: usize,
    /// Rows left out at the top of the output.
    pub pad_top: usize,
    /// Columns left out at the left of the output.
    pub pad_left: usize,
    /// Rows left out at the bottom of the output.
    pub pad_bottom: usize,
    /// Columns left out at the right of the output.
    pub pad_right: usize,
    /// Rows added at the bottom of the output.
    pub output_padding_h: usize,
    /// Columns added at the right of the output.
    pub output_padding_w: usize,
    /// Parts of the channels that do not see each other.
    pub groups: usize,
}

impl ConvTransposeShape {
    /// A transposed convolution of one image with stride, dilation and groups of one and without padding.
    pub fn new(
        (in_h, in_w): (usize, usize),
        in_c: usize,
        out_c: usize,
        (kernel_h, kernel_w): (usize, usize),
    ) -> ConvTransposeShape {
        ConvTransposeShape {
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
            output_padding_h: 0,
            output_padding_w: 0,
            groups: 1,
        }
    }

    /// Rows of the output.
    pub fn out_h(&self) -> usize {
        let whole = extent(self.in_h, self.stride_h, self.kernel_h, self.dilation_h) + self.output_padding_h;
        whole.saturating_sub(self.pad_top + self.pad_bottom)
    }

    /// Columns of the output.
    pub fn out_w(&self) -> usize {
        let whole = extent(self.in_w, self.stride_w, self.kernel_w, self.dilation_w) + self.output_padding_w;
        whole.saturating_sub(self.pad_left + self.pad_right)
    }

    /// Pixels of the input of all images.
    pub fn in_pixels(&self) -> usize {
        self.batch * self.in_h * self.in_w
    }

    /// Pixels of the output of all images.
    pub fn out_pixels(&self) -> usize {
        self.batch * self.out_h() * self.out_w()
    }

    /// Input channels of one group.
    pub fn group_in_c(&self) -> usize {
        self.in_c / self.groups
    }

    /// Output channels of one group.
    pub fn group_out_c(&self) -> usize {
        self.out_c / self.groups
    }

    /// Elements of the weights, in the order input channel, output channel of the group, kernel row, kernel column.
    pub fn weights_len(&self) -> usize {
        self.in_c * self.group_out_c() * self.kernel_h * self.kernel_w
    }

    /// Products that one run computes at most: fewer where the output is cut off.
    pub fn multiplications(&self) -> u64 {
        self.in_pixels() as u64 * self.weights_len() as u64
    }

    /// Check that the sizes make sense together.
    pub fn check(&self) -> Result<(), ConvError> {
        // The convolution that this is the transpose of has the same conditions; its padded input is as large as this
        // output and its strides are no less.
        let rows = self.in_h.checked_mul(self.stride_h);
        let columns = self.in_w.checked_mul(self.stride_w);
        let reach_h = self.kernel_h.checked_mul(self.dilation_h);
        let reach_w = self.kernel_w.checked_mul(self.dilation_w);
        let in_h = rows.zip(reach_h).and_then(|(a, b)| a.checked_add(b)?.checked_add(self.output_padding_h));
        let in_w =
            columns.zip(reach_w).and_then(|(a, b)| a.checked_add(b)?.checked_add(self.output_padding_w));
        ConvShape {
            batch: self.batch,
            in_h: in_h.ok_or(ConvError::TooLarge)?,
            in_w: in_w.ok_or(ConvError::TooLarge)?,
            in_c: self.in_c,
            out_c: self.out_c,
            kernel_h: self.kernel_h,
            kernel_w: self.kernel_w,
            stride_h: self.stride_h,
            stride_w: self.stride_w,
            dilation_h: self.dilation_h,
            dilation_w: self.dilation_w,
            pad_top: self.pad_top,
            pad_left: self.pad_left,
            pad_bottom: self.pad_bottom,
            pad_right: self.pad_right,
            groups: self.groups,
        }
        .check()
    }
}

/// The output's extent before anything is left out.
fn extent(size: usize, stride: usize, kernel: usize, dilation: usize) -> usize {
    if size == 0 { 0 } else { (size - 1) * stride + (kernel - 1) * dilation + 1 }
}
