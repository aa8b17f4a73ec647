//! Operators that are said with others, on numbers small enough to be checked by hand.

use armet_tensor::Tensor;

use super::upgrades::{check, count, row};
use super::*;

#[test]
fn losses_of_the_right_class() {
    let x = f32s(&[1, 3, 2], &[-1., -2., -3., -4., -5., -6.]);
    let target = Tensor::new([1, 2], &[0i64, 2]).unwrap();
    let weights = f32s(&[3], &[1., 2., 3.]);
    let inputs = [x, target];
    let nll = |attributes: Vec<AttributeProto>| row("NegativeLogLikelihoodLoss", 13, attributes, &inputs);
    let sum = || word("reduction", "sum");
    let scores = f32s(&[1, 2], &[0., 3f32.ln()]);
    let logarithms = f32s(&[1, 2], &[0.25f32.ln(), 0.75f32.ln()]);
    check(&[
        nll(vec![word("reduction", "none")]).gives(&[f32s(&[1, 2], &[1., 6.])]),
        nll(vec![]).gives(&[Tensor::scalar(3.5f32)]),
        nll(vec![sum()]).with(&[weights.clone()]).gives(&[Tensor::scalar(19f32)]),
        nll(vec![]).with(&[weights]).gives(&[Tensor::scalar(4.75f32)]),
        nll(vec![int("ignore_index", 2)]).gives(&[Tensor::scalar(1f32)]),
        row("SoftmaxCrossEntropyLoss", 13, vec![sum()], &[scores, Tensor::vector(&[1i32])])
            .gives(&[Tensor::scalar(-(0.75f32.ln())), logarithms]),
    ]);
}

#[test]
fn windows_and_short_time_transforms() {
    let size = |n: i64| Tensor::scalar(n);
    let edge = 4. / 46.;
    check(&[
        row("HannWindow", 17, vec![], &[size(4)]).gives(&[f32s(&[4], &[0., 0.5, 1., 0.5])]),
        row("HammingWindow", 17, vec![int("periodic", 0)], &[size(3)])
            .gives(&[f32s(&[3], &[edge, 1., edge])]),
        row("BlackmanWindow", 17, vec![int("output_datatype", 11)], &[size(2)])
            .gives(&[Tensor::vector(&[0f64, 1.])]),
        row("STFT", 17, vec![], &[f32s(&[1, 4, 1], &[1., 2., 3., 4.])])
            .with(&[size(2), f32s(&[2], &[1., 2.])])
            .gives(&[f32s(&[1, 2, 2, 2], &[5., 0., -3., 0., 11., 0., -5., 0.])]),
    ]);
}

#[test]
fn grids_margins_and_places() {
    let identity = f32s(&[1, 2, 3], &[1., 0., 0., 0., 1., 0.]);
    let size = i64s(&[1, 1, 2, 2]);
    let corners = f32s(&[1, 2, 2, 2], &[-1., -1., 1., -1., -1., 1., 1., 1.]);
    let centres = f32s(&[1, 2, 2, 2], &[-0.5, -0.5, 0.5, -0.5, -0.5, 0.5, 0.5, 0.5]);
    let pooled = f32s(&[1, 1, 1, 2], &[5., 6.]);
    let places = Tensor::new([1, 1, 1, 2], &[1i64, 3]).unwrap();
    let window = || vec![ints("kernel_shape", &[1, 2]), ints("strides", &[1, 2])];
    check(&[
        row("AffineGrid", 20, vec![int("align_corners", 1)], &[identity.clone()])
            .with(&[size.clone()])
            .gives(&[corners]),
        row("AffineGrid", 20, vec![], &[identity, size]).gives(&[centres]),
        row("CenterCropPad", 18, vec![], &[count(&[3, 2])])
            .with(&[i64s(&[1, 4])])
            .gives(&[f32s(&[1, 4], &[0., 2., 3., 0.])]),
        row("CenterCropPad", 18, vec![ints("axes", &[-1])], &[count(&[2, 3])])
            .with(&[i64s(&[2])])
            .gives(&[f32s(&[2, 2], &[0., 1., 3., 4.])]),
        row("MaxUnpool", 11, window(), &[pooled.clone(), places.clone()])
            .gives(&[f32s(&[1, 1, 1, 4], &[0., 5., 0., 6.])]),
        row("MaxUnpool", 9, window(), &[pooled, places])
            .with(&[i64s(&[1, 1, 2, 4])])
            .gives(&[f32s(&[1, 1, 2, 4], &[0., 5., 0., 6., 0., 0., 0., 0.])]),
    ]);
}

#[test]
fn gates_and_running_products() {
    let gate = 3f32.ln();
    check(&[
        row("SwiGLU", 28, vec![], &[f32s(&[2], &[gate, 0.]), f32s(&[2], &[2., 9.])])
            .gives(&[f32s(&[2], &[gate * 1.5, 0.])]),
        row("CumProd", 26, vec![int("exclusive", 1)], &[f32s(&[3], &[2., 3., 4.])])
            .with(&[Tensor::scalar(0i64)])
            .gives(&[f32s(&[3], &[1., 2., 6.])]),
    ]);
}
