//! Models built in Rust, imported, and evaluated by meaning.

mod compositions;
mod control;
mod einsum;
mod external;
mod hostile;
mod learning;
mod quantized;
mod reports;
mod upgrades;

use armet_graph::ops::numbers;
use armet_graph::{Graph, Value, evaluate_graph};
use armet_tensor::{ElementType, Tensor};
use prost::Message as _;

use super::proto::{
    AttributeProto, DimensionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
    TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto, attribute_type as kind,
};
use super::{ImportError, ImportOptions, Imported, import, types};

fn number(element: ElementType) -> i32 {
    (1..=26).find(|n| types::element(*n) == Some(element)).expect("every element type has a number")
}

fn attribute(name: &str, r#type: i32) -> AttributeProto {
    AttributeProto { name: name.into(), r#type, ..AttributeProto::default() }
}

fn int(name: &str, i: i64) -> AttributeProto {
    AttributeProto { i: Some(i), ..attribute(name, kind::INT) }
}

fn ints(name: &str, ints: &[i64]) -> AttributeProto {
    AttributeProto { ints: ints.to_vec(), ..attribute(name, kind::INTS) }
}

fn float(name: &str, f: f32) -> AttributeProto {
    AttributeProto { f: Some(f), ..attribute(name, kind::FLOAT) }
}

fn floats(name: &str, floats: &[f32]) -> AttributeProto {
    AttributeProto { floats: floats.to_vec(), ..attribute(name, kind::FLOATS) }
}

fn word(name: &str, word: &str) -> AttributeProto {
    AttributeProto { s: Some(word.to_owned().into()), ..attribute(name, kind::STRING) }
}

fn graph_attribute(name: &str, graph: GraphProto) -> AttributeProto {
    AttributeProto { g: Some(Box::new(graph)), ..attribute(name, kind::GRAPH) }
}

fn tensor_attribute(name: &str, tensor: &Tensor) -> AttributeProto {
    AttributeProto { t: Some(Box::new(tensor_proto("", tensor))), ..attribute(name, kind::TENSOR) }
}

fn tensor_proto(name: &str, tensor: &Tensor) -> TensorProto {
    TensorProto {
        name: name.into(),
        dims: tensor.shape().iter().map(|&d| d as i64).collect(),
        data_type: number(tensor.element()),
        raw_data: Some(tensor.bytes().to_vec().into()),
        ..TensorProto::default()
    }
}

fn dimension(n: usize) -> DimensionProto {
    DimensionProto { dim_value: Some(n as i64), dim_param: None }
}

fn info(name: &str, element: ElementType, dims: Vec<DimensionProto>) -> ValueInfoProto {
    let shape = Some(TensorShapeProto { dim: dims });
    let tensor = TensorTypeProto { elem_type: number(element), shape };
    let r#type = Some(TypeProto { tensor_type: Some(tensor), ..TypeProto::default() });
    ValueInfoProto { name: name.into(), r#type }
}

fn info_like(name: &str, tensor: &Tensor) -> ValueInfoProto {
    info(name, tensor.element(), tensor.shape().iter().map(|&d| dimension(d)).collect())
}

fn untyped(name: &str) -> ValueInfoProto {
    ValueInfoProto { name: name.into(), r#type: None }
}

fn node(op: &str, inputs: &[&str], outputs: &[&str], attributes: Vec<AttributeProto>) -> NodeProto {
    NodeProto {
        op_type: op.into(),
        input: inputs.iter().map(|&s| s.into()).collect(),
        output: outputs.iter().map(|&s| s.into()).collect(),
        attribute: attributes,
        ..NodeProto::default()
    }
}

fn graph(inputs: Vec<ValueInfoProto>, nodes: Vec<NodeProto>, outputs: &[&str]) -> GraphProto {
    GraphProto {
        name: "graph".into(),
        node: nodes,
        input: inputs,
        output: outputs.iter().map(|o| untyped(o)).collect(),
        ..GraphProto::default()
    }
}

fn opset(domain: &str, version: i64) -> OperatorSetIdProto {
    OperatorSetIdProto { domain: domain.into(), version }
}

fn model(version: i64, graph: GraphProto) -> ModelProto {
    ModelProto {
        ir_version: 8,
        graph: Some(graph),
        opset_import: vec![opset("", version), opset("com.microsoft", 1)],
        ..ModelProto::default()
    }
}

fn try_import(model: &ModelProto) -> Result<Imported, ImportError> {
    import(model.encode_to_vec().into(), &ImportOptions::default())
}

fn imported(model: &ModelProto) -> Imported {
    try_import(model).unwrap_or_else(|e| panic!("{e}"))
}

fn evaluate(graph: &Graph, inputs: &[Tensor]) -> Vec<Tensor> {
    let inputs: Vec<Value> = inputs.iter().cloned().map(Value::from).collect();
    let outputs = evaluate_graph(graph, &inputs, 0).unwrap_or_else(|e| panic!("{e}"));
    outputs.into_iter().map(|v| v.tensor().cloned().expect("results are tensors")).collect()
}

/// Fails when tensors differ in type, shape, or by more than rounding.
fn assert_close(what: &str, found: &Tensor, wanted: &Tensor) {
    assert_eq!(found.element(), wanted.element(), "{what}: element type");
    assert_eq!(found.shape(), wanted.shape(), "{what}: shape");
    let (a, b) = (numbers::to_f64(found).unwrap(), numbers::to_f64(wanted).unwrap());
    let near = a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-5 * (1.0 + b.abs()));
    assert!(near, "{what}: {a:?} is not {b:?}");
}

fn f32s(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::new(shape, values).unwrap()
}

fn i64s(values: &[i64]) -> Tensor {
    Tensor::vector(values)
}
