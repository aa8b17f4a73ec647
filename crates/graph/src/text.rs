//! A graph as text: one node a line, in an order in which values are given before they are read. The same graph always
//! gives the same text; it is meant for people, for `--dump-after` and for tests, and is not read back.
//!
//! ```text
//! graph tiny
//!   input x: float32[1,3,8,8]
//!   y: float32[1,4,8,8] @channels-last = Conv(x, w float32[4,3,1,1] {0.5, -1, 2, ..}, _) group=1 // conv1 + relu1
//!   output y
//! ```

use std::collections::HashMap;
use std::fmt::Write as _;

use armet_tensor::{ElementType, Layout, Tensor};

use crate::ops::numbers;
use crate::{AttributeValue, Graph, Node, NodeId, Op, ValueId, ValueType};

/// Constants with more elements than this are cut.
const LONGEST_SHOWN: usize = 8;
/// Elements shown of a constant that is cut.
const SHOWN_OF_LONG: usize = 3;

/// The text of a graph.
pub fn to_text(graph: &Graph) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_graph(&mut out, graph, 0);
    out
}

/// A name out of a file, which may not end the line it stands in.
fn one_line(name: &str) -> String {
    name.replace('\n', "\\n")
}

/// Short names of values that are unique in their graph.
pub(crate) struct Names(HashMap<ValueId, String>);

impl Names {
    pub(crate) fn new(graph: &Graph) -> Self {
        let mut count: HashMap<&str, usize> = HashMap::new();
        let used: std::collections::HashSet<ValueId> = graph.outputs().iter().map(|o| o.value).collect();
        for id in graph.value_ids() {
            let read = !graph.consumers(id).is_empty() || used.contains(&id);
            if read || graph.producer(id).is_some() || graph.inputs().contains(&id) {
                *count.entry(graph.value(id).name.as_str()).or_default() += 1;
            }
        }
        let name = |id: ValueId| {
            let name = &graph.value(id).name;
            match count.get(name.as_str()) {
                _ if name.is_empty() => format!("%{}", id.index()),
                Some(1) => one_line(name),
                _ => format!("{}%{}", one_line(name), id.index()),
            }
        };
        Self(graph.value_ids().map(|id| (id, name(id))).collect())
    }

    pub(crate) fn get(&self, id: ValueId) -> &str {
        self.0.get(&id).map_or("?", String::as_str)
    }
}

/// The nodes in order; a graph with a ring is shown in order of creation.
pub(crate) fn order(graph: &Graph) -> Vec<NodeId> {
    graph.order().unwrap_or_else(|_| graph.nodes().map(|(id, _)| id).collect())
}

/// The type of a value, and its layout where that is not the plain one.
pub(crate) fn type_text(ty: &ValueType, layout: Layout) -> String {
    match layout {
        Layout::Plain => ty.to_string(),
        Layout::ChannelsLast => format!("{ty} @{}", layout.name()),
    }
}

/// The first elements of a constant, all of them when there are few.
pub(crate) fn contents(tensor: &Tensor) -> String {
    let shown = if tensor.len() <= LONGEST_SHOWN { tensor.len() } else { SHOWN_OF_LONG };
    let mut parts: Vec<String> = match tensor.element() {
        ElementType::String => tensor.strings().iter().take(shown).map(|s| format!("{s:?}")).collect(),
        _ => first_numbers(tensor, shown),
    };
    if shown < tensor.len() {
        parts.push("..".into());
    }
    format!("{{{}}}", parts.join(", "))
}

/// Converts only what is shown: weights can be large.
fn first_numbers(tensor: &Tensor, count: usize) -> Vec<String> {
    let element = tensor.element();
    let Some(bytes) = element.bytes_for(count).and_then(|n| tensor.bytes().get(..n)) else {
        return Vec::new();
    };
    let Ok(head) = Tensor::from_bytes(element, [count], bytes) else { return Vec::new() };
    if element.is_float() {
        // Through f32 where that is exact, so that 0.1 is shown as 0.1.
        let text = |v: f64| if element == ElementType::F64 { v.to_string() } else { (v as f32).to_string() };
        numbers::to_f64(&head).map(|all| all.into_iter().map(text).collect()).unwrap_or_default()
    } else {
        numbers::to_i128(&head).map(|all| all.iter().map(ToString::to_string).collect()).unwrap_or_default()
    }
}

fn write_graph(out: &mut String, graph: &Graph, depth: usize) -> std::fmt::Result {
    let pad = "  ".repeat(depth);
    let names = Names::new(graph);
    writeln!(out, "{pad}graph {}", one_line(&graph.name))?;
    for &input in graph.inputs() {
        let value = graph.value(input);
        writeln!(out, "{pad}  input {}: {}", names.get(input), type_text(&value.ty, value.layout))?;
    }
    for id in order(graph) {
        write_node(out, graph, graph.node(id), &names, depth)?;
    }
    for output in graph.outputs() {
        let name = one_line(&output.name);
        write!(out, "{pad}  output {name}")?;
        if let Some(constant) = graph.constant(output.value) {
            write!(out, " = {} {}", graph.value(output.value).ty, contents(constant))?;
        } else if names.get(output.value) != name {
            write!(out, " = {}", names.get(output.value))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn write_node(out: &mut String, graph: &Graph, node: &Node, names: &Names, depth: usize) -> std::fmt::Result {
    write!(out, "{}  ", "  ".repeat(depth))?;
    for (index, output) in node.outputs.iter().enumerate() {
        let separator = if index > 0 { ", " } else { "" };
        match output {
            Some(id) => {
                let value = graph.value(*id);
                write!(out, "{separator}{}: {}", names.get(*id), type_text(&value.ty, value.layout))?;
            }
            None => write!(out, "{separator}_")?,
        }
    }
    write!(out, " = {}(", node.op.name())?;
    for (index, input) in node.inputs.iter().enumerate() {
        let separator = if index > 0 { ", " } else { "" };
        match input {
            None => write!(out, "{separator}_")?,
            Some(id) => {
                write!(out, "{separator}{}", names.get(*id))?;
                if let Some(constant) = graph.constant(*id) {
                    let value = graph.value(*id);
                    write!(out, " {} {}", type_text(&value.ty, value.layout), contents(constant))?;
                }
            }
        }
    }
    out.push(')');
    let mut attributes = node.op.attributes();
    // An empty list means that nothing was said.
    attributes.0.retain(|a| a.value != AttributeValue::Ints(Vec::new()));
    if !attributes.0.is_empty() {
        write!(out, " {attributes}")?;
    }
    let mut stands_for = node.absorbed.clone();
    let given = node.output().map_or("", |id| graph.value(id).name.as_str());
    if !stands_for.is_empty() || node.name != given {
        stands_for.insert(0, node.name.clone());
        write!(out, " // {}", one_line(&stands_for.join(" + ")))?;
    }
    writeln!(out)?;
    if let Op::If(conditional) = &node.op {
        write_graph(out, &conditional.then_branch, depth + 2)?;
        write_graph(out, &conditional.else_branch, depth + 2)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TensorType;
    use crate::ops::{Identity, Unary, UnaryKind};

    #[test]
    fn names_types_and_constants_are_shown() {
        let mut graph = Graph::new("tiny");
        let x = graph.add_input("x", TensorType::fixed(ElementType::F32, &[2]));
        let c = graph.add_constant("c", Tensor::vector(&[0.1f32, 2.0]));
        let long = graph.add_constant("long", Tensor::vector(&[1i64; 9]));
        let y = graph.add("y", Unary { kind: UnaryKind::Relu }, [Some(x)]);
        let twice = graph.add("y", Identity, [Some(y), Some(c), None, Some(long)]);
        graph.node_mut(graph.producer(y).unwrap()).absorbed.push("bias".into());
        graph.value_mut(y).layout = Layout::ChannelsLast;
        graph.add_output("result", twice);
        let text = to_text(&graph);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "graph tiny");
        assert_eq!(lines[1], "  input x: float32[2]");
        assert!(lines[2].starts_with("  y%3: float32[..] @channels-last = Relu(x)"), "{}", lines[2]);
        assert!(lines[2].ends_with("// y + bias"), "{}", lines[2]);
        assert_eq!(
            lines[3],
            "  y%4: float32[..] = Identity(y%3, c float32[2] {0.1, 2}, _, long int64[9] {1, 1, 1, ..})"
        );
        assert_eq!(lines[4], "  output result = y%4");
    }
}
