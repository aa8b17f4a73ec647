//! Sliding windows over spatial axes: attributes of convolution and pooling checked, and the index arithmetic.

use smallvec::SmallVec;

use super::broadcast::advance;
use crate::InferError;
use crate::ops::window::{AutoPad, Axis, resolve};

/// Attributes that windows share, as operators store them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attributes<'a> {
    pub(crate) operator: &'static str,
    pub(crate) strides: &'a [usize],
    pub(crate) dilations: &'a [usize],
    pub(crate) pads: &'a [usize],
}

impl Attributes<'_> {
    /// One axis for each entry of `kernel`, padding as the `pads` attribute says.
    ///
    /// # Errors
    /// When an attribute has another length than the kernel, or a size is zero.
    pub(crate) fn axes(&self, kernel: &[usize]) -> Result<SmallVec<[Axis; 3]>, InferError> {
        let rank = kernel.len();
        let check = |name: &str, values: &[usize], wanted: usize| {
            if values.is_empty() || values.len() == wanted {
                return Ok(());
            }
            Err(InferError::Mismatch(format!(
                "{} has {name} {values:?} for {rank} spatial axes",
                self.operator
            )))
        };
        check("strides", self.strides, rank)?;
        check("dilations", self.dilations, rank)?;
        check("pads", self.pads, 2 * rank)?;
        let axes: SmallVec<[Axis; 3]> = (0..rank)
            .map(|i| Axis {
                kernel: kernel[i],
                stride: self.strides.get(i).copied().unwrap_or(1),
                dilation: self.dilations.get(i).copied().unwrap_or(1),
                begin: self.pads.get(i).copied().unwrap_or(0),
                end: self.pads.get(i + rank).copied().unwrap_or(0),
            })
            .collect();
        if let Some(axis) = axes.iter().find(|a| a.kernel == 0 || a.stride == 0 || a.dilation == 0) {
            return Err(InferError::Mismatch(format!(
                "{} needs positive kernel sizes, strides and dilations, not {}, {} and {}",
                self.operator, axis.kernel, axis.stride, axis.dilation
            )));
        }
        Ok(axes)
    }
}

/// Padding of every axis resolved for these lengths.
pub(crate) fn resolved(auto: AutoPad, axes: &[Axis], lengths: &[usize]) -> SmallVec<[Axis; 3]> {
    axes.iter().zip(lengths).map(|(axis, &len)| resolve(auto, *axis, len)).collect()
}

/// Windows in a row whose same tap reads elements at equal distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// First window, as a flat index.
    pub(crate) window: usize,
    /// The element that it reads, as a flat index.
    pub(crate) element: usize,
    /// Number of windows.
    pub(crate) len: usize,
}

/// What each tap of the kernel reads, in row-major order of the taps; padding is left out. Elements of a run are
/// [`Taps::step`] apart.
#[derive(Debug)]
pub(crate) struct Taps {
    pub(crate) runs: Vec<Vec<Run>>,
    pub(crate) step: usize,
}

/// First and one past the last window of which tap `tap` reads an element, and the element that the first reads.
fn valid(axis: Axis, tap: usize, len: usize, windows: usize) -> (usize, usize, usize) {
    let shift = tap.saturating_mul(axis.dilation);
    let first = axis.begin.saturating_sub(shift).div_ceil(axis.stride);
    let end = axis.begin.saturating_add(len).saturating_sub(shift).div_ceil(axis.stride).min(windows);
    if first >= end {
        return (0, 0, 0);
    }
    (first, end, first * axis.stride + shift - axis.begin)
}

/// Index arithmetic of all taps, for a plane of `lengths` elements and `windows` windows.
pub(crate) fn taps(axes: &[Axis], lengths: &[usize], windows: &[usize]) -> Taps {
    // Windows without spatial axes are one window of one tap.
    let Some((&last, outer)) = axes.split_last() else {
        return Taps { runs: vec![vec![Run { window: 0, element: 0, len: 1 }]], step: 1 };
    };
    let kernel: SmallVec<[usize; 3]> = axes.iter().map(|a| a.kernel).collect();
    let element_strides = armet_tensor::strides(lengths);
    let window_strides = armet_tensor::strides(windows);
    let step = last.stride;
    let mut tap: SmallVec<[usize; 3]> = SmallVec::from_elem(0, axes.len());
    let mut runs = Vec::new();
    loop {
        let ranges: SmallVec<[(usize, usize, usize); 3]> =
            (0..axes.len()).map(|i| valid(axes[i], tap[i], lengths[i], windows[i])).collect();
        let counts: SmallVec<[usize; 3]> = ranges.iter().map(|(first, end, _)| end - first).collect();
        let mut of_tap: Vec<Run> = Vec::new();
        if counts.iter().all(|&c| c > 0) {
            let mut row: SmallVec<[usize; 3]> = SmallVec::from_elem(0, outer.len());
            loop {
                let (mut window, mut element) = (ranges[outer.len()].0, ranges[outer.len()].2);
                for (i, &at) in row.iter().enumerate() {
                    window += (ranges[i].0 + at) * window_strides[i];
                    element += (ranges[i].2 + at * axes[i].stride) * element_strides[i];
                }
                let len = counts[outer.len()];
                match of_tap.last_mut() {
                    Some(run)
                        if run.window + run.len == window && run.element + run.len * step == element =>
                    {
                        run.len += len;
                    }
                    _ => of_tap.push(Run { window, element, len }),
                }
                if !advance(&mut row, &counts[..outer.len()]) {
                    break;
                }
            }
        }
        runs.push(of_tap);
        if !advance(&mut tap, &kernel) {
            return Taps { runs, step };
        }
    }
}

/// `windows += factor * elements` over the runs of one tap.
pub(crate) fn gather(windows: &mut [f64], elements: &[f64], factor: f64, runs: &[Run], step: usize) {
    for run in runs {
        let windows = &mut windows[run.window..run.window + run.len];
        let elements = &elements[run.element..=run.element + (run.len - 1) * step];
        if step == 1 {
            for (window, element) in windows.iter_mut().zip(elements) {
                *window += factor * element;
            }
        } else {
            for (window, element) in windows.iter_mut().zip(elements.iter().step_by(step)) {
                *window += factor * element;
            }
        }
    }
}

/// `elements += factor * windows` over the runs of one tap.
pub(crate) fn scatter(elements: &mut [f64], windows: &[f64], factor: f64, runs: &[Run], step: usize) {
    for run in runs {
        let windows = &windows[run.window..run.window + run.len];
        let elements = &mut elements[run.element..=run.element + (run.len - 1) * step];
        for (element, window) in elements.iter_mut().step_by(step).zip(windows) {
            *element += factor * window;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointwise_convolution_is_one_run() {
        let axis = Axis { kernel: 1, stride: 1, dilation: 1, begin: 0, end: 0 };
        let taps = taps(&[axis, axis], &[3, 4], &[3, 4]);
        assert_eq!(taps.runs, [[Run { window: 0, element: 0, len: 12 }]]);
    }

    #[test]
    fn padding_is_left_out_of_runs() {
        let axis = Axis { kernel: 3, stride: 2, dilation: 1, begin: 1, end: 1 };
        let taps = taps(&[axis], &[5], &[3]);
        assert_eq!(taps.step, 2);
        let runs: Vec<(usize, usize, usize)> =
            taps.runs.iter().flatten().map(|r| (r.window, r.element, r.len)).collect();
        assert_eq!(runs, [(1, 1, 2), (0, 0, 3), (0, 1, 2)]);
    }
}
