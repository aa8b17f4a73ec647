//! What older operator sets say differently, one row per difference.

#![expect(clippy::cloned_ref_to_slice_refs, reason = "rows with one input read like those with several")]

use armet_tensor::{Bool, Tensor};

use super::*;

pub(super) struct Row {
    operator: &'static str,
    version: i64,
    attributes: Vec<AttributeProto>,
    inputs: Vec<Tensor>,
    /// Inputs that are constants of the model.
    constants: Vec<Tensor>,
    wanted: Vec<Tensor>,
}

pub(super) fn row(
    operator: &'static str,
    version: i64,
    attributes: Vec<AttributeProto>,
    inputs: &[Tensor],
) -> Row {
    Row { operator, version, attributes, inputs: inputs.to_vec(), constants: vec![], wanted: vec![] }
}

impl Row {
    pub(super) fn with(mut self, constants: &[Tensor]) -> Self {
        self.constants = constants.to_vec();
        self
    }

    pub(super) fn gives(mut self, wanted: &[Tensor]) -> Self {
        self.wanted = wanted.to_vec();
        self
    }

    fn check(&self) {
        let what = format!("{}-{}", self.operator, self.version);
        let names = |prefix: &str, n: usize| (0..n).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>();
        let inputs = names("x", self.inputs.len());
        let constants = names("c", self.constants.len());
        let outputs = names("y", self.wanted.len());
        let infos = inputs.iter().zip(&self.inputs).map(|(name, t)| info_like(name, t)).collect();
        let all: Vec<&str> = inputs.iter().chain(&constants).map(String::as_str).collect();
        let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
        let main = node(self.operator, &all, &outputs, self.attributes.clone());
        let mut graph = graph(infos, vec![main], &outputs);
        graph.initializer = constants.iter().zip(&self.constants).map(|(n, t)| tensor_proto(n, t)).collect();
        let model = try_import(&model(self.version, graph)).unwrap_or_else(|e| panic!("{what}: {e}"));
        for (found, wanted) in evaluate(&model.graph, &self.inputs).iter().zip(&self.wanted) {
            assert_close(&what, found, wanted);
        }
    }
}

pub(super) fn check(rows: &[Row]) {
    rows.iter().for_each(Row::check);
}

pub(super) fn count(shape: &[usize]) -> Tensor {
    let values: Vec<f32> = (0..shape.iter().product()).map(|i: usize| i as f32).collect();
    f32s(shape, &values)
}

#[test]
fn attributes_that_became_inputs() {
    let x = count(&[2, 4]);
    check(&[
        row("Slice", 1, vec![ints("axes", &[1]), ints("starts", &[1]), ints("ends", &[3])], &[x.clone()])
            .gives(&[f32s(&[2, 2], &[1., 2., 5., 6.])]),
        row("Slice", 9, vec![ints("starts", &[1]), ints("ends", &[i64::MAX])], &[x.clone()])
            .gives(&[f32s(&[1, 4], &[4., 5., 6., 7.])]),
        row("Split", 2, vec![int("axis", 1), ints("split", &[1, 3])], &[x.clone()])
            .gives(&[f32s(&[2, 1], &[0., 4.]), f32s(&[2, 3], &[1., 2., 3., 5., 6., 7.])]),
        row("Split", 11, vec![int("axis", -1)], &[x.clone()])
            .gives(&[f32s(&[2, 2], &[0., 1., 4., 5.]), f32s(&[2, 2], &[2., 3., 6., 7.])]),
        row("Split", 1, vec![int("axis", 1)], &[x.clone()])
            .with(&[i64s(&[3, 1])])
            .gives(&[f32s(&[2, 3], &[0., 1., 2., 4., 5., 6.]), f32s(&[2, 1], &[3., 7.])]),
        row("Squeeze", 1, vec![ints("axes", &[0])], &[count(&[1, 2, 1])]).gives(&[count(&[2, 1])]),
        row("Squeeze", 11, vec![ints("axes", &[-1])], &[count(&[1, 2, 1])]).gives(&[count(&[1, 2])]),
        row("Squeeze", 11, vec![], &[count(&[1, 2, 1])]).gives(&[count(&[2])]),
        row("Unsqueeze", 1, vec![ints("axes", &[0, 2])], &[count(&[2])]).gives(&[count(&[1, 2, 1])]),
        row("Unsqueeze", 11, vec![ints("axes", &[-1])], &[count(&[2])]).gives(&[count(&[2, 1])]),
        row("Clip", 6, vec![float("min", 2.), float("max", 5.)], &[x.clone()])
            .gives(&[f32s(&[2, 4], &[2., 2., 2., 3., 4., 5., 5., 5.])]),
        row("Clip", 1, vec![ints("consumed_inputs", &[0]), float("max", 1.)], &[x.clone()])
            .gives(&[f32s(&[2, 4], &[0., 1., 1., 1., 1., 1., 1., 1.])]),
        row("Pad", 2, vec![ints("pads", &[0, 1, 0, 0]), float("value", 9.)], &[count(&[2, 1])])
            .gives(&[f32s(&[2, 2], &[9., 0., 9., 1.])]),
        row("Pad", 1, vec![ints("paddings", &[1, 0, 0, 0])], &[count(&[1, 2])])
            .gives(&[f32s(&[2, 2], &[0., 0., 0., 1.])]),
        row("Reshape", 1, vec![ints("shape", &[0, 2, -1])], &[x.clone()]).gives(&[count(&[2, 2, 2])]),
        row("TopK", 1, vec![int("k", 2), int("axis", 1)], &[x.clone()])
            .gives(&[f32s(&[2, 2], &[3., 2., 7., 6.]), Tensor::new([2, 2], &[3i64, 2, 3, 2]).unwrap()]),
        row("Tile", 1, vec![], &[count(&[1, 2])])
            .with(&[Tensor::scalar(2f32), Tensor::scalar(1f32)])
            .gives(&[f32s(&[1, 4], &[0., 1., 0., 1.])]),
    ]);
}

#[test]
fn axes_of_reductions() {
    let x = f32s(&[2, 2], &[1., 2., 3., 4.]);
    let axes = || ints("axes", &[1]);
    check(&[
        row("ReduceSum", 11, vec![axes(), int("keepdims", 0)], &[x.clone()]).gives(&[f32s(&[2], &[3., 7.])]),
        row("ReduceSum", 13, vec![int("keepdims", 0)], &[x.clone()])
            .with(&[i64s(&[0])])
            .gives(&[f32s(&[2], &[4., 6.])]),
        row("ReduceMean", 13, vec![axes()], &[x.clone()]).gives(&[f32s(&[2, 1], &[1.5, 3.5])]),
        row("ReduceMean", 18, vec![], &[x.clone()]).with(&[i64s(&[1])]).gives(&[f32s(&[2, 1], &[1.5, 3.5])]),
        row("ReduceMax", 1, vec![], &[x.clone()]).gives(&[f32s(&[1, 1], &[4.])]),
        row("ReduceL2", 11, vec![ints("axes", &[-1]), int("keepdims", 0)], &[x.clone()])
            .gives(&[f32s(&[2], &[5f32.sqrt(), 5.])]),
    ]);
}

#[test]
fn broadcasting_that_had_to_be_asked_for() {
    let x = f32s(&[2, 3, 1], &[1., 2., 3., 4., 5., 6.]);
    let by = |axis| vec![int("broadcast", 1), int("axis", axis)];
    let b = f32s(&[3], &[10., 20., 30.]);
    let sum = f32s(&[2, 3, 1], &[11., 22., 33., 14., 25., 36.]);
    check(&[
        row("Add", 6, by(1), &[x.clone(), b.clone()]).gives(&[sum.clone()]),
        row("Add", 1, by(-2), &[x.clone(), b.clone()]).gives(&[sum]),
        row("Mul", 6, by(0), &[x.clone(), f32s(&[2], &[1., 2.])])
            .gives(&[f32s(&[2, 3, 1], &[1., 2., 3., 8., 10., 12.])]),
        row("Sub", 6, by(1), &[x.clone()])
            .with(&[f32s(&[3, 1], &[1., 2., 3.])])
            .gives(&[f32s(&[2, 3, 1], &[0., 0., 0., 3., 3., 3.])]),
        row("Pow", 1, vec![int("broadcast", 1)], &[f32s(&[2], &[2., 3.]), f32s(&[1], &[2.])])
            .gives(&[f32s(&[2], &[4., 9.])]),
        row("Greater", 1, by(0), &[count(&[2, 2]), f32s(&[2], &[0., 2.])]).gives(&[Tensor::new(
            [2, 2],
            &[Bool(0), Bool(1), Bool(0), Bool(1)],
        )
        .unwrap()]),
        row("PRelu", 6, vec![], &[f32s(&[1, 2, 1, 1], &[-1., -1.]), f32s(&[2], &[0.5, 0.25])])
            .gives(&[f32s(&[1, 2, 1, 1], &[-0.5, -0.25])]),
        row("PRelu", 6, vec![], &[f32s(&[1, 2], &[-1., 1.]), f32s(&[1], &[0.5])])
            .gives(&[f32s(&[1, 2], &[-0.5, 1.])]),
        row("Gemm", 6, vec![int("broadcast", 1), float("beta", 2.)], &[f32s(&[1, 1], &[3.])])
            .with(&[f32s(&[1, 2], &[1., 2.]), f32s(&[2], &[1., 1.])])
            .gives(&[f32s(&[1, 2], &[5., 8.])]),
    ]);
}

#[test]
fn defaults_that_changed() {
    let x = f32s(&[1, 2, 2], &[0., 0., 0., 3f32.ln()]);
    let (all, last) = (f32s(&[1, 2, 2], &[1. / 6., 1. / 6., 1. / 6., 0.5]), [0.5, 0.5, 0.25, 0.75]);
    check(&[
        row("Softmax", 11, vec![], &[x.clone()]).gives(&[all.clone()]),
        row("Softmax", 1, vec![int("axis", 0)], &[x.clone()]).gives(&[all]),
        row("Softmax", 13, vec![], &[x.clone()]).gives(&[f32s(&[1, 2, 2], &last)]),
        row("Softmax", 11, vec![int("axis", -1)], &[x.clone()]).gives(&[f32s(&[1, 2, 2], &last)]),
        row("LogSoftmax", 13, vec![], &[x]).gives(&[f32s(&[1, 2, 2], &last.map(f32::ln))]),
        row("Concat", 1, vec![], &[count(&[1, 1]), count(&[1, 2])]).gives(&[f32s(&[1, 3], &[0., 0., 1.])]),
        row("Selu", 1, vec![], &[f32s(&[1], &[1.])]).gives(&[f32s(&[1], &[1.0507])]),
        row("Selu", 6, vec![], &[f32s(&[1], &[1.])]).gives(&[f32s(&[1], &[1.050_701])]),
        row("Cast", 1, vec![word("to", "INT32")], &[f32s(&[2], &[1.5, -2.])])
            .gives(&[Tensor::vector(&[1i32, -2])]),
        row("Cast", 6, vec![int("to", 6)], &[f32s(&[2], &[1.5, -2.])]).gives(&[Tensor::vector(&[1i32, -2])]),
        row("LpPool", 1, vec![float("p", 2.), ints("kernel_shape", &[2])], &[f32s(&[1, 1, 2], &[3., 4.])])
            .gives(&[f32s(&[1, 1, 1], &[5.])]),
    ]);
}

#[test]
fn resizing_before_version_11_rounds_down() {
    let (x, pair) = (count(&[1, 1, 1, 4]), f32s(&[1, 1, 1, 2], &[1., 2.]));
    let scales = [1., 1., 1., 1.5];
    let nearest = f32s(&[1, 1, 1, 6], &[0., 0., 1., 2., 2., 3.]);
    let linear = f32s(&[1, 1, 1, 4], &[1., 1.5, 2., 2.]);
    let double = f32s(&[4], &[1., 1., 1., 2.]);
    check(&[
        row("Resize", 10, vec![], &[x.clone()]).with(&[f32s(&[4], &scales)]).gives(&[nearest.clone()]),
        row("Upsample", 7, vec![floats("scales", &scales)], &[x.clone()]).gives(&[nearest.clone()]),
        row("Upsample", 9, vec![word("mode", "nearest")], &[x.clone()])
            .with(&[f32s(&[4], &scales)])
            .gives(&[nearest]),
        row("Resize", 10, vec![word("mode", "linear")], &[pair.clone()])
            .with(&[double.clone()])
            .gives(&[linear.clone()]),
        row(
            "Upsample",
            1,
            vec![word("mode", "bilinear"), float("height_scale", 1.), float("width_scale", 2.)],
            &[pair.clone()],
        )
        .gives(&[linear]),
        row("Resize", 11, vec![word("mode", "linear")], &[pair])
            .with(&[f32s(&[0], &[]), double])
            .gives(&[f32s(&[1, 1, 1, 4], &[1., 1.25, 1.75, 2.])]),
    ]);
}

#[test]
fn an_empty_vector_of_scales_gives_way_to_sizes() {
    let empty = f32s(&[0], &[]);
    let row = row(
        "Resize",
        13,
        vec![word("coordinate_transformation_mode", "asymmetric")],
        &[count(&[1, 1, 1, 2])],
    )
    .with(&[empty.clone(), empty, i64s(&[1, 1, 1, 4])])
    .gives(&[f32s(&[1, 1, 1, 4], &[0., 0., 1., 1.])]);
    check(&[row]);
}

#[test]
fn training_only_parts_fall_away() {
    let x = count(&[1, 2, 1]);
    let statistics =
        [f32s(&[2], &[1., 2.]), f32s(&[2], &[0., 1.]), f32s(&[2], &[0., 1.]), f32s(&[2], &[1., 4.])];
    let normal = f32s(&[1, 2, 1], &[0., 1.]);
    let epsilon = || float("epsilon", 0.);
    check(&[
        row(
            "BatchNormalization",
            1,
            vec![
                ints("consumed_inputs", &[0, 0, 0, 1, 1]),
                int("is_test", 1),
                float("momentum", 0.9),
                epsilon(),
            ],
            &[x.clone()],
        )
        .with(&statistics)
        .gives(&[normal.clone()]),
        row("BatchNormalization", 7, vec![epsilon()], &[x.clone()])
            .with(&statistics)
            .gives(&[normal.clone()]),
        row("BatchNormalization", 15, vec![int("training_mode", 0), epsilon()], &[x.clone()])
            .with(&statistics)
            .gives(&[normal]),
        row("Dropout", 1, vec![float("ratio", 0.5), int("is_test", 1)], &[x.clone()]).gives(&[x.clone()]),
        row("Dropout", 7, vec![], &[x.clone()]).gives(&[x.clone(), f32s(&[1, 2, 1], &[1., 1.])]),
        row("Dropout", 12, vec![], &[x.clone()])
            .with(&[Tensor::scalar(0.5f32)])
            .gives(&[x, Tensor::new([1, 2, 1], &[Bool(1), Bool(1)]).unwrap()]),
    ]);
}

#[test]
fn operators_that_become_several() {
    let a = f32s(&[2], &[1., 6.]);
    let three = [a.clone(), f32s(&[2], &[2., 2.]), f32s(&[2], &[3., 1.])];
    let squares = [1f32, 5., 14., 13.].map(|s| s / 3.);
    let local: Vec<f32> =
        [0., 1., 2., 3.].iter().zip(squares).map(|(x, s): (&f32, f32)| x / (1. + s)).collect();
    // The squares of the neighbours of channels 0 to 3 of 0, 1, 2, 3 add up to 1, 5, 14 and 13.
    check(&[
        row("Max", 6, vec![], &three).gives(&[f32s(&[2], &[3., 6.])]),
        row("Min", 13, vec![], &three).gives(&[f32s(&[2], &[1., 1.])]),
        row("Sum", 8, vec![], &three).gives(&[f32s(&[2], &[6., 9.])]),
        row("Mean", 8, vec![], &three).gives(&[f32s(&[2], &[2., 3.])]),
        row("Mean", 8, vec![], &[a.clone()]).gives(&[a.clone()]),
        row("Sum", 8, vec![], &[a.clone()]).gives(&[a]),
        row("LRN", 13, vec![int("size", 3), float("alpha", 1.), float("beta", 1.)], &[count(&[1, 4, 1])])
            .gives(&[f32s(&[1, 4, 1], &local)]),
        row("LpNormalization", 1, vec![int("axis", 1)], &[f32s(&[2, 2], &[3., 4., 0., 0.])])
            .gives(&[f32s(&[2, 2], &[0.6, 0.8, 0., 0.])]),
        row("MeanVarianceNormalization", 13, vec![ints("axes", &[0])], &[f32s(&[2], &[1., 3.])])
            .gives(&[f32s(&[2], &[-1., 1.])]),
        row("Hardmax", 13, vec![], &[f32s(&[2, 2], &[1., 3., 2., 2.])])
            .gives(&[f32s(&[2, 2], &[0., 1., 1., 0.])]),
        row("Compress", 11, vec![int("axis", 1)], &[count(&[2, 2])])
            .with(&[Tensor::vector(&[Bool(0), Bool(1)])])
            .gives(&[f32s(&[2, 1], &[1., 3.])]),
        row(
            "GroupNormalization",
            18,
            vec![int("num_groups", 1), float("epsilon", 0.)],
            &[f32s(&[1, 2], &[1., 3.])],
        )
        .with(&[f32s(&[1], &[2.]), f32s(&[1], &[1.])])
        .gives(&[f32s(&[1, 2], &[-1., 3.])]),
        row("EyeLike", 9, vec![int("k", 1)], &[count(&[2, 2])]).gives(&[f32s(&[2, 2], &[0., 1., 0., 0.])]),
    ]);
}

#[test]
fn sums_of_products_by_an_equation() {
    let (a, b) = (f32s(&[2, 2], &[1., 2., 3., 4.]), f32s(&[2, 2], &[5., 6., 7., 8.]));
    let of = |equation: &str, inputs: &[Tensor], shape: &[usize], values: &[f32]| {
        row("Einsum", 12, vec![word("equation", equation)], inputs).gives(&[f32s(shape, values)])
    };
    let pair = [a.clone(), b.clone()];
    check(&[
        of("ij,jk->ik", &pair, &[2, 2], &[19., 22., 43., 50.]),
        of("ij, jk", &pair, &[2, 2], &[19., 22., 43., 50.]),
        of("ij,kj->ki", &pair, &[2, 2], &[17., 39., 23., 53.]),
        of("ij,ij->", &pair, &[], &[70.]),
        of("ij,ij->j", &pair, &[2], &[26., 44.]),
        of("ij,kl->", &pair, &[], &[260.]),
        of("ij->ji", &[a.clone()], &[2, 2], &[1., 3., 2., 4.]),
        of("ij->i", &[a.clone()], &[2], &[3., 7.]),
        of("...j,j", &[a.clone(), f32s(&[2], &[1., 10.])], &[2], &[21., 43.]),
        of(
            "...i,...j->...ij",
            &[a.clone(), f32s(&[1, 2], &[1., 2.])],
            &[2, 2, 2],
            &[1., 2., 2., 4., 3., 6., 4., 8.],
        ),
        of("ij,jk,k->i", &[a, b, f32s(&[2], &[1., -1.])], &[2], &[-3., -7.]),
    ]);
}

#[test]
fn constants_in_every_form() {
    let words = AttributeProto {
        strings: vec!["a".to_owned().into(), "b".to_owned().into()],
        ..attribute("value_strings", kind::STRINGS)
    };
    let text = Tensor::from_strings([2], vec!["a".into(), "b".into()]).unwrap();
    for (form, wanted) in [
        (tensor_attribute("value", &count(&[2])), count(&[2])),
        (float("value_float", 1.5), Tensor::scalar(1.5f32)),
        (floats("value_floats", &[1., 2.]), Tensor::vector(&[1f32, 2.])),
        (int("value_int", 3), Tensor::scalar(3i64)),
        (ints("value_ints", &[3, 4]), i64s(&[3, 4])),
        (words, text),
    ] {
        let graph = graph(vec![], vec![node("Constant", &[], &["y"], vec![form])], &["y"]);
        let graph = imported(&model(13, graph)).graph;
        assert_eq!(graph.node_count(), 0);
        assert_eq!(graph.constant(graph.outputs()[0].value), Some(&wanted));
    }
}

#[test]
fn a_recurrent_layer_takes_its_size_from_its_weights() {
    let names = AttributeProto {
        strings: vec!["Affine".to_owned().into()],
        ..attribute("activations", kind::STRINGS)
    };
    let attributes = vec![names, floats("activation_alpha", &[2.]), floats("activation_beta", &[1.])];
    let row = row("RNN", 7, attributes, &[f32s(&[1, 1, 1], &[3.])])
        .with(&[f32s(&[1, 1, 1], &[1.]), f32s(&[1, 1, 1], &[0.])])
        .gives(&[f32s(&[1, 1, 1, 1], &[7.])]);
    check(&[row]);
}

#[test]
fn words_and_coordinates_of_sampling() {
    let x = count(&[1, 1, 1, 3]);
    let grid = f32s(&[1, 1, 2, 2], &[-1., 0., 0.5, 0.]);
    let aligned = || int("align_corners", 1);
    let region = [count(&[1, 1, 2, 2]), f32s(&[1, 4], &[0., 0., 1., 1.])];
    let first = i64s(&[0]);
    check(&[
        row("GridSample", 16, vec![word("mode", "bilinear"), aligned()], &[x.clone(), grid.clone()])
            .gives(&[f32s(&[1, 1, 1, 2], &[0., 1.5])]),
        row("GridSample", 20, vec![word("mode", "linear"), aligned()], &[x, grid])
            .gives(&[f32s(&[1, 1, 1, 2], &[0., 1.5])]),
        // The centre of the region is the centre of the picture's first pixel, or the corner that four pixels share.
        row("RoiAlign", 10, vec![], &region).with(&[first.clone()]).gives(&[f32s(&[1, 1, 1, 1], &[1.5])]),
        row("RoiAlign", 16, vec![], &region).with(&[first]).gives(&[f32s(&[1, 1, 1, 1], &[0.])]),
    ]);
}

#[test]
fn the_axis_of_a_transform_became_an_input() {
    let x = f32s(&[1, 2, 2, 1], &[1., 2., 3., 5.]);
    let rows = f32s(&[1, 2, 2, 2], &[3., 0., -1., 0., 8., 0., -2., 0.]);
    let columns = f32s(&[1, 2, 2, 2], &[4., 0., 7., 0., -2., 0., -3., 0.]);
    check(&[
        row("DFT", 17, vec![], &[x.clone()]).gives(&[columns.clone()]),
        row("DFT", 17, vec![int("axis", 2)], &[x.clone()]).gives(&[rows.clone()]),
        row("DFT", 20, vec![], &[x.clone()]).gives(&[rows]),
        row("DFT", 20, vec![], &[x]).with(&[Tensor::scalar(2i64), Tensor::scalar(1i64)]).gives(&[columns]),
    ]);
}

#[test]
fn training_told_by_outputs_or_by_an_attribute() {
    let x = f32s(&[2, 1, 1], &[1., 3.]);
    let of_one = |value: f32| f32s(&[1], &[value]);
    let inputs = [x, of_one(1.), of_one(0.), of_one(10.), of_one(5.)];
    let normal = f32s(&[2, 1, 1], &[-1., 1.]);
    let half = || vec![float("momentum", 0.5), float("epsilon", 0.)];
    let mut told = half();
    told.push(int("training_mode", 1));
    let each = f32s(&[1, 2], &[1., 4.]);
    let statistics =
        [each, f32s(&[2], &[2., 2.]), f32s(&[2], &[1., 0.]), f32s(&[2], &[0., 2.]), f32s(&[2], &[1., 4.])];
    check(&[
        row("BatchNormalization", 9, half(), &inputs).gives(&[
            normal.clone(),
            of_one(6.),
            of_one(3.),
            of_one(2.),
            of_one(1.),
        ]),
        row("BatchNormalization", 14, told, &inputs).gives(&[normal, of_one(6.), of_one(3.)]),
        row("BatchNormalization", 7, vec![int("spatial", 0), float("epsilon", 0.)], &statistics)
            .gives(&[f32s(&[1, 2], &[3., 2.])]),
        row("Dropout", 12, vec![], &[count(&[3])])
            .with(&[Tensor::scalar(0.5f32), Tensor::scalar(Bool(0))])
            .gives(&[count(&[3])]),
        row("Dropout", 12, vec![], &[count(&[3])])
            .with(&[Tensor::scalar(0f32), Tensor::scalar(Bool(1))])
            .gives(&[count(&[3]), Tensor::vector(&[Bool(1); 3])]),
    ]);
}

#[test]
fn old_forms_of_norms_and_indicators() {
    check(&[
        row("GlobalLpPool", 1, vec![], &[f32s(&[1, 1, 2], &[3., 4.])]).gives(&[f32s(&[1, 1, 1], &[5.])]),
        row("Hardmax", 11, vec![], &[f32s(&[1, 2, 2], &[1., 2., 7., 3.])])
            .gives(&[f32s(&[1, 2, 2], &[0., 0., 1., 0.])]),
        row("Hardmax", 13, vec![], &[f32s(&[1, 2, 2], &[1., 2., 7., 3.])])
            .gives(&[f32s(&[1, 2, 2], &[0., 1., 1., 0.])]),
    ]);
}

#[test]
fn indices_that_repeat_in_a_term_are_a_diagonal() {
    let x = f32s(&[2, 2], &[1., f32::INFINITY, f32::NAN, 4.]);
    check(&[
        row("Einsum", 12, vec![word("equation", "ii->i")], &[x.clone()]).gives(&[f32s(&[2], &[1., 4.])]),
        row("Einsum", 12, vec![word("equation", "ii")], &[x]).gives(&[Tensor::scalar(5f32)]),
        row("Einsum", 12, vec![word("equation", "iii->i")], &[count(&[2, 2, 2])])
            .gives(&[f32s(&[2], &[0., 7.])]),
    ]);
}

#[test]
fn a_class_that_is_certain_is_always_drawn() {
    let row = row(
        "Multinomial",
        7,
        vec![int("sample_size", 3), int("dtype", 7)],
        &[f32s(&[1, 3], &[-1e9, 0., -1e9])],
    )
    .gives(&[Tensor::new([1, 3], &[1i64, 1, 1]).unwrap()]);
    check(&[row]);
}
