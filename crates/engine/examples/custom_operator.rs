//! An operator of one's own, in Rust: `example.SoftSign(x) = x / (alpha + |x|)`.

use armet::{
    CompileSettings, CustomFailure, CustomNode, CustomOperator, CustomOperators, ElementType, Engine,
    InferError, InferInputs, LoadOptions, Model, Tensor, ValueType,
};

#[derive(Debug)]
struct SoftSign;

impl CustomOperator for SoftSign {
    fn infer(&self, _: &CustomNode, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        if inputs.element(0)? != ElementType::F32 {
            return Err(InferError::Mismatch("the input must be of float32".into()));
        }
        // Also where dimensions are names.
        Ok(vec![inputs.tensor(0)?.clone().into()])
    }

    fn run(&self, node: &CustomNode, inputs: &[Option<&Tensor>]) -> Result<Vec<Tensor>, CustomFailure> {
        let input = inputs.first().copied().flatten().ok_or("the input is missing")?;
        let alpha = node.float("alpha").unwrap_or(1.0);
        let values: Vec<f32> = input.values::<f32>()?.iter().map(|x| x / (alpha + x.abs())).collect();
        Ok(vec![Tensor::new(input.shape().clone(), &values)?])
    }
}

/// Runs the one node of a small model on three numbers.
pub(crate) fn run() -> Result<Vec<f32>, Box<dyn std::error::Error>> {
    let operators = CustomOperators::new().with("example", "SoftSign", SoftSign);
    let model = Model::from_bytes_with(model(), &LoadOptions { operators, ..LoadOptions::default() })?;
    let compiled = Engine::builder().threads(1).build()?.compile(&model, &CompileSettings::default())?;
    let mut session = compiled.session();
    let given = Tensor::vector(&[-1.0f32, 0.0, 3.0]);
    let outputs = session.run(&[("x", (&given).into())])?;
    Ok(outputs.tensor("y").ok_or("the model has no y")?.values::<f32>()?.into_owned())
}

/// A field of a Protobuf message.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
}

/// An ONNX file with the node `y = example.SoftSign(x)`, written by hand to be all in one place.
fn model() -> Vec<u8> {
    let value = |name: &str| {
        let any_length = field(1, &field(2, b"n"));
        let tensor = [&[8, 1], &field(2, &any_length)[..]].concat();
        [field(1, name.as_bytes()), field(2, &field(1, &tensor))].concat()
    };
    let node = [field(1, b"x"), field(2, b"y"), field(4, b"SoftSign"), field(7, b"example")].concat();
    let graph = [field(1, &node), field(2, b"g"), field(11, &value("x")), field(12, &value("y"))].concat();
    let opset =
        |domain: &str, version: u8| field(8, &[&field(1, domain.as_bytes())[..], &[16, version]].concat());
    [vec![8, 10], field(7, &graph), opset("", 21), opset("example", 1)].concat()
}

#[cfg_attr(test, expect(dead_code, reason = "the test calls what is below"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use std::io::Write as _;
    writeln!(std::io::stdout(), "{:?}", run()?)?;
    Ok(())
}
