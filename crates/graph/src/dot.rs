//! A graph in the language of `GraphViz`, for `dot -Tsvg`.

use std::fmt::Write as _;

use crate::text::{self, Names};
use crate::{Graph, ValueId};

/// The text for `GraphViz`: nodes with their operators and attributes, edges with their types.
pub fn to_dot(graph: &Graph) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut out, graph);
    out
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

fn write(out: &mut String, graph: &Graph) -> std::fmt::Result {
    let names = Names::new(graph);
    writeln!(out, "digraph {} {{", quoted(&graph.name))?;
    writeln!(out, "  rankdir=TB; node [shape=box, fontname=\"sans-serif\"]; edge [fontsize=9];")?;
    for (index, &input) in graph.inputs().iter().enumerate() {
        let label = quoted(names.get(input));
        writeln!(out, "  input{index} [label={label}, shape=ellipse];")?;
    }
    let edge = |value: ValueId| {
        let value = graph.value(value);
        quoted(&text::type_text(&value.ty, value.layout))
    };
    let source = |value: ValueId| -> Option<String> {
        if let Some(producer) = graph.producer(value) {
            return Some(format!("node{}", producer.index()));
        }
        let input = graph.inputs().iter().position(|&input| input == value)?;
        Some(format!("input{input}"))
    };
    for id in text::order(graph) {
        let node = graph.node(id);
        let mut label = format!("{}\n{}", node.op.name(), node.name);
        let attributes = node.op.attributes().to_string();
        if !attributes.is_empty() {
            write!(label, "\n{attributes}")?;
        }
        for constant in node.inputs.iter().flatten().filter(|v| graph.constant(**v).is_some()) {
            write!(label, "\n{} {}", names.get(*constant), graph.value(*constant).ty)?;
        }
        writeln!(out, "  node{} [label={}];", id.index(), quoted(&label))?;
        for &input in node.inputs.iter().flatten() {
            if let Some(from) = source(input) {
                writeln!(out, "  {from} -> node{} [label={}];", id.index(), edge(input))?;
            }
        }
    }
    for (index, output) in graph.outputs().iter().enumerate() {
        writeln!(out, "  output{index} [label={}, shape=ellipse];", quoted(&output.name))?;
        if let Some(from) = source(output.value) {
            writeln!(out, "  {from} -> output{index} [label={}];", edge(output.value))?;
        }
    }
    writeln!(out, "}}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TensorType;
    use crate::ops::Identity;
    use armet_tensor::ElementType;

    #[test]
    fn edges_join_inputs_nodes_and_outputs() {
        let mut graph = Graph::new("a \"b\"");
        let x = graph.add_input("x", TensorType::fixed(ElementType::F32, &[2]));
        let y = graph.add("y", Identity, [Some(x)]);
        graph.add_output("y", y);
        let dot = to_dot(&graph);
        assert!(dot.starts_with("digraph \"a \\\"b\\\"\" {"), "{dot}");
        assert!(dot.contains("input0 -> node0 [label=\"float32[2]\"];"), "{dot}");
        assert!(dot.contains("node0 -> output0"), "{dot}");
    }
}
