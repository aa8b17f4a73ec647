//! Pooling over a sliding window; maximum pooling may give indices as a second result.

use armet_tensor::{ElementType, Tensor};
use smallvec::SmallVec;

use super::movement::{self, show};
use super::numbers;
use super::support::{broadcast, sliding, typing};
use super::window::{AutoPad, Axis, output_dim};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// Pooling over a sliding window; maximum pooling may give indices as a second result.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// What is computed.
    pub kind: PoolKind,
    /// Size of the window, per spatial axis.
    pub kernel: Vec<usize>,
    /// Distance between windows; empty means 1.
    pub strides: Vec<usize>,
    /// Distance between taps; empty means 1.
    pub dilations: Vec<usize>,
    /// Padding: all begins, then all ends; empty means 0.
    pub pads: Vec<usize>,
    /// How padding is chosen.
    pub auto_pad: AutoPad,
    /// The number of windows is rounded up.
    pub ceil_mode: bool,
    /// Averages count padding as zeros.
    pub count_include_pad: bool,
    /// Indices are counted in column-major order.
    pub column_major: bool,
}

/// What pooling computes of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PoolKind {
    /// The maximum.
    Max,
    /// The mean.
    Average,
    /// The Lp norm.
    Lp {
        /// The exponent.
        p: u32,
    },
}

/// What pooling found in one window.
#[derive(Debug, Clone, Copy)]
struct Found {
    value: f64,
    /// Flat index of the maximum within the plane.
    index: usize,
}

impl PoolKind {
    /// Reduces the elements of one window, given with their flat indices; `divisor` is what averages divide by.
    fn reduce(self, elements: impl Iterator<Item = (usize, f64)>, divisor: usize) -> Found {
        match self {
            Self::Max => {
                let mut found = Found { value: f64::NEG_INFINITY, index: 0 };
                let mut first = true;
                for (index, value) in elements {
                    // The first NaN stays.
                    if first || value > found.value || (value.is_nan() && !found.value.is_nan()) {
                        found = Found { value, index };
                        first = false;
                    }
                }
                found
            }
            Self::Average => {
                let sum: f64 = elements.map(|(_, value)| value).sum();
                Found { value: sum / divisor as f64, index: 0 }
            }
            Self::Lp { p } => {
                let p = f64::from(p);
                let sum: f64 = elements.map(|(_, value)| value.abs().powf(p)).sum();
                Found { value: sum.powf(p.recip()), index: 0 }
            }
        }
    }

    /// As [`Self::reduce`], of a whole plane.
    pub(super) fn reduce_all(self, plane: &[f64]) -> f64 {
        self.reduce(plane.iter().copied().enumerate(), plane.len()).value
    }

    /// Maxima are taken of 8-bit integers too.
    pub(super) fn accepts(self, element: ElementType) -> bool {
        element.is_float() || (self == Self::Max && matches!(element, ElementType::I8 | ElementType::U8))
    }
}

/// The taps of one window that read elements, and how many lie within elements and padding.
#[derive(Debug, Clone, Copy)]
struct Reach {
    first: usize,
    count: usize,
    with_padding: usize,
}

fn reach(axis: Axis, window: usize, len: usize) -> Reach {
    // Positions count from the first element of padding.
    let start = window * axis.stride;
    let taps_before = |end: usize| end.saturating_sub(start).div_ceil(axis.dilation).min(axis.kernel);
    let end = axis.begin.saturating_add(len);
    let first = taps_before(axis.begin);
    Reach { first, count: taps_before(end) - first, with_padding: taps_before(end.saturating_add(axis.end)) }
}

impl Pool {
    fn windows(&self) -> sliding::Attributes<'_> {
        sliding::Attributes {
            operator: self.name(),
            strides: &self.strides,
            dilations: &self.dilations,
            pads: &self.pads,
        }
    }

    /// Pools one plane; `column` are the strides that indices are counted with.
    fn plane(
        &self,
        plane: &[f64],
        lengths: &[usize],
        axes: &[Axis],
        windows: &[usize],
        column: &[usize],
        mut put: impl FnMut(f64, usize),
    ) {
        let strides = armet_tensor::strides(lengths);
        let reaches: SmallVec<[Vec<Reach>; 3]> = (0..axes.len())
            .map(|i| (0..windows[i]).map(|w| reach(axes[i], w, lengths[i])).collect())
            .collect();
        let mut window: SmallVec<[usize; 3]> = SmallVec::from_elem(0, axes.len());
        loop {
            let of = |i: usize| reaches[i][window[i]];
            let counts: SmallVec<[usize; 3]> = (0..axes.len()).map(|i| of(i).count).collect();
            let start: usize = (0..axes.len())
                .map(|i| {
                    let position = window[i] * axes[i].stride + of(i).first.saturating_mul(axes[i].dilation);
                    if counts[i] == 0 { 0 } else { (position - axes[i].begin) * strides[i] }
                })
                .sum();
            let elements: usize = broadcast::product(&counts);
            let divisor = if self.count_include_pad {
                (0..axes.len()).fold(1, |product: usize, i| product.saturating_mul(of(i).with_padding))
            } else {
                elements
            };
            let mut tap: SmallVec<[usize; 3]> = SmallVec::from_elem(0, axes.len());
            let taps = (0..elements).map(|_| {
                let offset: usize = (0..axes.len()).map(|i| tap[i] * axes[i].dilation * strides[i]).sum();
                broadcast::advance(&mut tap, &counts);
                (start + offset, plane[start + offset])
            });
            let found = self.kind.reduce(taps, divisor);
            let index = if self.column_major {
                (0..axes.len()).map(|i| found.index / strides[i].max(1) % lengths[i].max(1) * column[i]).sum()
            } else {
                found.index
            };
            put(found.value, index);
            if !broadcast::advance(&mut window, windows) {
                return;
            }
        }
    }
}

impl Operator for Pool {
    fn name(&self) -> &'static str {
        match self.kind {
            PoolKind::Max => "MaxPool",
            PoolKind::Average => "AveragePool",
            PoolKind::Lp { .. } => "LpPool",
        }
    }

    fn attributes(&self) -> Attributes {
        let attributes = Attributes::none()
            .with("kernel_shape", &self.kernel[..])
            .with("strides", &self.strides[..])
            .with("dilations", &self.dilations[..])
            .with("pads", &self.pads[..])
            .with("auto_pad", self.auto_pad.name())
            .with("ceil_mode", self.ceil_mode);
        match self.kind {
            PoolKind::Max => attributes.with("storage_order", self.column_major),
            PoolKind::Average => attributes.with("count_include_pad", self.count_include_pad),
            PoolKind::Lp { p } => attributes.with("p", i64::from(p)),
        }
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = typing::element(inputs, 0, self.name(), |e| self.kind.accepts(e))?;
        let axes = self.windows().axes(&self.kernel)?;
        let x = inputs.dims(0)?;
        if x.len() != self.kernel.len() + 2 {
            return Err(InferError::Mismatch(format!(
                "{} with a window of {:?} takes a batch, a channel and as many spatial axes, not {}",
                self.name(),
                self.kernel,
                show(x)
            )));
        }
        let mut dims: SmallVec<[Dim; 6]> = x[..2].into();
        for (axis, dim) in axes.into_iter().zip(&x[2..]) {
            dims.push(output_dim(self.auto_pad, axis, dim, self.ceil_mode)?);
        }
        let mut types = typing::one(element, dims.clone());
        if self.kind == PoolKind::Max {
            types.push(TensorType::new(ElementType::I64, dims).into());
        }
        Ok(types)
    }

    fn evaluate(&self, inputs: &[Option<&Value>], context: &Context) -> Result<Vec<Value>, EvaluateError> {
        let x = tensor(inputs, 0)?;
        let mut results = movement::results(self, inputs)?;
        let (element, shape) = results.swap_remove(0);
        let wants_indices = self.kind == PoolKind::Max && context.outputs > 1;
        let lengths = &x.shape()[2..];
        let axes = sliding::resolved(self.auto_pad, &self.windows().axes(&self.kernel)?, lengths);
        let plane: usize = broadcast::product(lengths);
        let mut column: SmallVec<[usize; 3]> = SmallVec::new();
        for i in 0..lengths.len() {
            column.push(broadcast::product(&lengths[..i]));
        }
        let mut values = broadcast::filled(&shape, 0.0)?;
        let mut indices = broadcast::filled(&shape, 0i64)?;
        let x_values = numbers::to_f64(x)?;
        if !values.is_empty() {
            let windows = &shape[2..];
            let per_plane: usize = broadcast::product(windows);
            let mut at = 0;
            for channel in 0..values.len() / per_plane {
                let elements = &x_values[channel * plane..][..plane];
                self.plane(elements, lengths, &axes, windows, &column, |value, index| {
                    values[at] = value;
                    indices[at] = (channel * plane + index) as i64;
                    at += 1;
                });
            }
        }
        let mut outputs = vec![numbers::from_f64(element, shape.clone(), &values)?.into()];
        if wants_indices {
            outputs.push(Tensor::new(shape, &indices)?.into());
        }
        Ok(outputs)
    }

    fn operations(&self, _: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        let window = self.kernel.iter().fold(1u64, |n, &k| n.saturating_mul(k as u64));
        typing::count(outputs, 0).saturating_mul(window)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(10);
        let mut case = |name: &str, op: &Pool, shape: &[usize]| {
            let exact = op.kind == PoolKind::Max;
            let tolerance = if exact { Tolerance::Exact } else { Tolerance::Relative(1e-5) };
            Case::new(name, op.clone(), [numbers.floats(shape, -3.0, 3.0)]).with_tolerance(tolerance)
        };
        let max = Pool {
            kind: PoolKind::Max,
            kernel: vec![3, 3],
            strides: vec![2, 2],
            dilations: Vec::new(),
            pads: vec![1; 4],
            auto_pad: AutoPad::NotSet,
            ceil_mode: false,
            count_include_pad: false,
            column_major: false,
        };
        let average = Pool { kind: PoolKind::Average, ..max.clone() };
        let counted = Pool { count_include_pad: true, ..average.clone() };
        let wide = Pool { kernel: vec![2, 5], strides: Vec::new(), pads: vec![1, 0, 0, 2], ..max.clone() };
        let dilated = Pool { dilations: vec![2, 1], pads: Vec::new(), ..max.clone() };
        let same = Pool { auto_pad: AutoPad::SameLower, pads: Vec::new(), ..average.clone() };
        let line = Pool { kernel: vec![2], strides: vec![2], pads: Vec::new(), ..average.clone() };
        let volume = Pool { kernel: vec![2, 2, 2], strides: Vec::new(), pads: Vec::new(), ..max.clone() };
        let norm = Pool { kind: PoolKind::Lp { p: 2 }, ..max.clone() };
        let long = Pool { kernel: vec![7, 3], pads: Vec::new(), ceil_mode: true, ..average.clone() };
        let huge =
            Pool { kernel: vec![2, 1 << 31], pads: Vec::new(), auto_pad: AutoPad::SameUpper, ..max.clone() };
        let mut cases = vec![
            case("maximum 3x3 stride 2", &max, &[1, 3, 9, 10]),
            case("maximum with indices", &max, &[2, 3, 6, 7]).with_outputs(2),
            case("maximum, ceiling", &Pool { ceil_mode: true, ..max.clone() }, &[1, 2, 8, 7]),
            case("maximum, uneven pads", &wide, &[1, 2, 5, 9]),
            case("maximum, dilated", &dilated, &[1, 2, 9, 8]),
            case("maximum of volumes", &volume, &[1, 2, 4, 3, 5]),
            case("average without padding", &average, &[1, 3, 9, 10]),
            case("average with padding", &counted, &[1, 3, 9, 10]),
            case("average, ceiling, too long", &long, &[1, 2, 6, 5]),
            case("maximum, mostly padding", &huge, &[1, 2, 3, 4]),
            case("average, padding and ceiling", &Pool { ceil_mode: true, ..counted }, &[1, 2, 8, 7]),
            case("average, same", &same, &[1, 2, 7, 6]),
            case("average of sequences", &line, &[2, 3, 9]),
            case("Lp norm", &norm, &[1, 2, 7, 6]),
        ];
        let bytes = numbers.ints::<u8>([1, 3, 5, 6], 0, 255);
        cases.push(Case::new("maximum of uint8", max, [bytes]).with_tolerance(Tolerance::Exact));
        cases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(kind: PoolKind, kernel: usize, pads: [usize; 2]) -> Pool {
        Pool {
            kind,
            kernel: vec![kernel],
            strides: vec![2],
            dilations: vec![],
            pads: pads.to_vec(),
            auto_pad: AutoPad::NotSet,
            ceil_mode: true,
            count_include_pad: true,
            column_major: false,
        }
    }

    fn evaluate(op: &Pool, x: &Tensor, outputs: usize) -> Result<Vec<Tensor>, EvaluateError> {
        let x = Value::from(x.clone());
        let outputs = op.evaluate(&[Some(&x)], &Context { outputs, seed: 0 })?;
        Ok(outputs.iter().map(|v| v.tensor().unwrap().clone()).collect())
    }

    #[test]
    fn a_window_beyond_the_padding_counts_only_what_is_there() {
        let x = Tensor::new([1, 1, 4], &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
        let y = evaluate(&pool(PoolKind::Average, 3, [0, 0]), &x, 1).unwrap();
        assert_eq!(y[0].expect::<f32>().as_ref(), [2.0, 3.5]);
    }

    #[test]
    fn indices_count_over_the_whole_tensor() {
        let x = Tensor::new([1, 2, 2, 2], &[1.0f32, 2.0, 3.0, 0.0, 5.0, 4.0, 3.0, 6.0]).unwrap();
        let op = Pool { kernel: vec![2, 2], pads: vec![], strides: vec![], ..pool(PoolKind::Max, 2, [0, 0]) };
        let rows = evaluate(&op, &x, 2).unwrap();
        assert_eq!(rows[1].expect::<i64>().as_ref(), [2, 7]);
        let columns = evaluate(&Pool { column_major: true, ..op }, &x, 2).unwrap();
        assert_eq!(columns[1].expect::<i64>().as_ref(), [1, 7]);
    }

    #[test]
    fn sizes_beyond_memory_and_mismatches_are_errors() {
        let x = Tensor::zeros(ElementType::F32, [1, 1, 4]).unwrap();
        let error = evaluate(&pool(PoolKind::Max, 2, [usize::MAX, 7]), &x, 1).unwrap_err();
        assert!(error.to_string().ends_with("more elements than fit in memory"), "{error}");
        assert!(evaluate(&pool(PoolKind::Max, usize::MAX, [0, 0]), &x, 1).unwrap()[0].is_empty());
        let x = x.reshape([1, 4]).unwrap();
        let error = evaluate(&pool(PoolKind::Max, 2, [0, 0]), &x, 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "MaxPool with a window of [2] takes a batch, a channel and as many spatial axes, not [1,4]"
        );
    }
}
