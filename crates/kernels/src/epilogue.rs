//! What happens to a finished sum before it is stored: bias, residual, activation.
//!
//! The result of every matrix product and convolution of this crate is a matrix: one row per output pixel, one column
//! per output channel. For each element
//!
//! ```text
//! sum + bias[column] [+ residual] -> activation -> [+ residual] -> output
//! ```
//!
//! with the residual before or after the activation. Bias, residual and clips are done in registers; other activations,
//! and what comes after them, run over each tile while it is in the nearest cache.

#![expect(unsafe_code, reason = "tiles are finished through pointers")]

use crate::isa::Isas;
use crate::simd::{Operation, Vector, dispatch};
use crate::vecmath::functions::leaky_relu;
use crate::vecmath::{Function, Rows};

/// A function applied to every element of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Activation<'a> {
    /// Nothing.
    #[default]
    None,
    /// `max(0, x)`.
    Relu,
    /// `max(min, x)`, then `min(max, x)`.
    Clip {
        /// The least result.
        min: f32,
        /// The greatest result.
        max: f32,
    },
    /// `x` above zero, otherwise `slope x`.
    LeakyRelu {
        /// The factor below zero.
        slope: f32,
    },
    /// `x` above zero, otherwise the column's slope times `x`.
    PRelu {
        /// One factor per column.
        slopes: &'a [f32],
    },
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// `x sigmoid(x)`.
    Silu,
    /// `max(0, min(1, alpha x + beta))`.
    HardSigmoid {
        /// The slope.
        alpha: f32,
        /// The value at zero.
        beta: f32,
    },
    /// `x max(0, min(1, x / 6 + 1 / 2))`.
    HardSwish,
    /// The hyperbolic tangent.
    Tanh,
    /// `x (1 + erf(x / sqrt 2)) / 2`.
    Gelu,
    /// GELU's approximation by the hyperbolic tangent.
    GeluTanh,
    /// `x tanh(softplus(x))`.
    Mish,
    /// `x` above zero, otherwise `alpha (e^x - 1)`.
    Elu {
        /// The factor below zero.
        alpha: f32,
    },
    /// `ln(1 + e^x)`.
    Softplus,
}

impl Activation<'_> {
    /// The bounds of an activation that is a clip; all floats where there is none.
    fn bounds(self) -> Option<(f32, f32)> {
        match self {
            Activation::None => Some((f32::NEG_INFINITY, f32::INFINITY)),
            Activation::Relu => Some((0.0, f32::INFINITY)),
            Activation::Clip { min, max } => Some((min, max)),
            _ => None,
        }
    }

    /// The function of an activation that is neither a clip nor has slopes.
    fn function(self) -> Option<Function> {
        Some(match self {
            Activation::None | Activation::Relu | Activation::Clip { .. } | Activation::PRelu { .. } => {
                return None;
            }
            Activation::LeakyRelu { slope } => Function::LeakyRelu { slope },
            Activation::Sigmoid => Function::Sigmoid,
            Activation::Silu => Function::Silu,
            Activation::HardSigmoid { alpha, beta } => Function::HardSigmoid { alpha, beta },
            Activation::HardSwish => Function::HardSwish,
            Activation::Tanh => Function::Tanh,
            Activation::Gelu => Function::Gelu,
            Activation::GeluTanh => Function::GeluTanh,
            Activation::Mish => Function::Mish,
            Activation::Elu { alpha } => Function::Elu { alpha },
            Activation::Softplus => Function::Softplus,
        })
    }
}

/// A matrix of the output's shape that is added to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residual<'a> {
    /// Where its elements are.
    pub source: ResidualSource<'a>,
    /// Whether it is added to the activation's result instead of its argument.
    pub after_activation: bool,
}

/// Where the elements of a residual are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ResidualSource<'a> {
    /// In a matrix of its own.
    Matrix {
        /// Its elements, from the first on.
        data: &'a [f32],
        /// Elements from the start of one row to the start of the next.
        row_stride: usize,
    },
    /// In the output, which is added to. Not after an activation, which needs the output's memory before the residual is
    /// read.
    Output,
}

/// What happens to a finished sum before it is stored; see the module.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Epilogue<'a> {
    /// Added to each row: one float per column.
    pub bias: Option<&'a [f32]>,
    /// Added element by element.
    pub residual: Option<Residual<'a>>,
    /// Applied to each element.
    pub activation: Activation<'a>,
}

/// The part of an [`Epilogue`] that concerns one tile, as a tile kernel wants it: what is absent points to zeros, so
/// that kernels need not ask.
///
/// `bias` is readable for the tile's columns, `residual` for its rows, `residual_stride` floats apart, and columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileEpilogue {
    pub(crate) bias: *const f32,
    pub(crate) residual: *const f32,
    pub(crate) residual_stride: usize,
    pub(crate) min: f32,
    pub(crate) max: f32,
}

/// More floats than any tile has columns.
static ZEROS: [f32; 64] = [0.0; 64];

/// An [`Epilogue`] checked against an output matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finisher<'a> {
    isas: Isas,
    epilogue: Epilogue<'a>,
    residual: *const f32,
    residual_stride: usize,
    /// Rows of the output from one row of a tile to the next.
    row_step: usize,
    function: Option<Function>,
    slopes: Option<&'a [f32]>,
    min: f32,
    max: f32,
}

// SAFETY: the pointer is to a shared slice of the epilogue or to the output, whose tiles are each finished by one task.
unsafe impl Sync for Finisher<'_> {}

impl<'a> Finisher<'a> {
    /// Check `epilogue` against an output of `rows` rows and `columns` columns that starts at `output`.
    ///
    /// # Panics
    /// When bias, residual or slopes are too short, or the residual is in the output where it cannot be.
    pub(crate) fn new(
        isas: Isas,
        epilogue: &Epilogue<'a>,
        rows: usize,
        columns: usize,
        output: *const f32,
        output_stride: usize,
    ) -> Self {
        assert!(epilogue.bias.is_none_or(|bias| bias.len() >= columns), "a bias for every column");
        let slopes = match epilogue.activation {
            Activation::PRelu { slopes } => Some(slopes),
            _ => None,
        };
        assert!(slopes.is_none_or(|slopes| slopes.len() >= columns), "a slope for every column");
        let (residual, residual_stride) = match epilogue.residual.map(|residual| residual.source) {
            None => (std::ptr::null(), 0),
            Some(ResidualSource::Output) => (output, output_stride),
            Some(ResidualSource::Matrix { data, row_stride }) => {
                check_matrix(data.len(), rows, columns, row_stride);
                (data.as_ptr(), row_stride)
            }
        };
        let function = epilogue.activation.function();
        let (min, max) = epilogue.activation.bounds().unwrap_or((f32::NEG_INFINITY, f32::INFINITY));
        let finisher = Finisher {
            isas,
            epilogue: *epilogue,
            residual,
            residual_stride,
            row_step: 1,
            function,
            slopes,
            min,
            max,
        };
        let is_output = epilogue.residual.is_some_and(|residual| residual.source == ResidualSource::Output);
        assert!(
            !is_output || !finisher.residual_is_after(),
            "a residual in the output is added before the activation"
        );
        finisher
    }

    /// The same for tiles whose rows are every `row_step`-th row of the output.
    pub(crate) fn spaced(self, row_step: usize) -> Self {
        Finisher { row_step, ..self }
    }

    /// Whether a tile kernel does the whole epilogue, so that [`Finisher::finish`] does nothing.
    #[inline]
    fn is_in_registers(&self) -> bool {
        self.function.is_none() && self.slopes.is_none() && !self.residual_is_after()
    }

    #[inline]
    fn residual_is_after(&self) -> bool {
        // Without an activation there is no before and after.
        let is_after = self.epilogue.residual.is_some_and(|residual| residual.after_activation);
        is_after && self.epilogue.activation != Activation::None
    }

    /// The tile kernel's part, for the tile that starts at this row and column.
    #[inline]
    pub(crate) fn tile(&self, row: usize, column: usize) -> TileEpilogue {
        let zeros = ZEROS.as_ptr();
        let has_residual = !self.residual.is_null() && !self.residual_is_after();
        TileEpilogue {
            bias: self.epilogue.bias.map_or(zeros, |bias| bias.as_ptr().wrapping_add(column)),
            residual: if has_residual { self.residual_at(row, column) } else { zeros },
            residual_stride: if has_residual { self.residual_stride * self.row_step } else { 0 },
            min: self.min,
            max: self.max,
        }
    }

    #[inline]
    fn residual_at(&self, row: usize, column: usize) -> *const f32 {
        self.residual.wrapping_add(row * self.residual_stride + column)
    }

    /// Do what a tile kernel left to do for a stored tile.
    ///
    /// # Safety
    /// The tile of `rows` rows and `columns` columns, whose first element is at `row`, `column` of the output that this
    /// was checked against, is readable and writable at `tile` with `stride` floats from row to row.
    #[inline]
    pub(crate) unsafe fn finish(
        &self,
        tile: *mut f32,
        stride: usize,
        row: usize,
        column: usize,
        rows: usize,
        columns: usize,
    ) {
        if self.is_in_registers() {
            return;
        }
        if let Some(function) = self.function {
            let isas = self.isas;
            function.with(Rows {
                isas,
                from: tile.cast_const(),
                to: tile,
                count: rows,
                columns,
                pitch: stride,
            });
        }
        if let Some(slopes) = self.slopes {
            let slopes = slopes.as_ptr().wrapping_add(column);
            dispatch(self.isas, PerColumnSlope { tile, stride, rows, columns, slopes });
        }
        if self.residual_is_after() {
            let addend = self.residual_at(row, column);
            dispatch(
                self.isas,
                AddRows {
                    tile,
                    stride,
                    rows,
                    columns,
                    addend,
                    addend_stride: self.residual_stride * self.row_step,
                },
            );
        }
    }
}

/// Check that a matrix of this shape lies within `length` elements.
///
/// # Panics
/// When it does not.
pub(crate) fn check_matrix(length: usize, rows: usize, columns: usize, row_stride: usize) {
    if rows > 0 && columns > 0 {
        assert!(rows == 1 || row_stride >= columns, "rows of a matrix must not overlap");
        let end = (rows - 1).checked_mul(row_stride).and_then(|start| start.checked_add(columns));
        assert!(end.is_some_and(|end| end <= length), "a matrix must lie within its slice");
    }
}

struct PerColumnSlope {
    tile: *mut f32,
    stride: usize,
    rows: usize,
    columns: usize,
    slopes: *const f32,
}

impl Operation for PerColumnSlope {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        for row in 0..self.rows {
            let mut column = 0;
            while column < self.columns {
                let count = V::LANES.min(self.columns - column);
                let at = self.tile.wrapping_add(row * self.stride + column);
                // SAFETY: within the tile and its columns, which the caller of `Finisher::finish` vouches for.
                unsafe {
                    let slope = V::load_partial(self.slopes.add(column), count);
                    leaky_relu(V::load_partial(at, count), slope).store_partial(at, count);
                }
                column += V::LANES;
            }
        }
    }
}

struct AddRows {
    tile: *mut f32,
    stride: usize,
    rows: usize,
    columns: usize,
    addend: *const f32,
    addend_stride: usize,
}

impl Operation for AddRows {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        for row in 0..self.rows {
            let mut column = 0;
            while column < self.columns {
                let count = V::LANES.min(self.columns - column);
                let at = self.tile.wrapping_add(row * self.stride + column);
                // SAFETY: within the tile, and the residual has the same rows and columns.
                unsafe {
                    let addend = V::load_partial(self.addend.add(row * self.addend_stride + column), count);
                    (V::load_partial(at, count) + addend).store_partial(at, count);
                }
                column += V::LANES;
            }
        }
    }
}
