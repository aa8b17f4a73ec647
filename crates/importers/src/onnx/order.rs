//! The order of nodes. Files should have it right; some do not.

use std::collections::{BinaryHeap, HashMap, HashSet};

use super::error::ImportError;
use super::importer::node_name;
use super::proto::{GraphProto, NodeProto};

/// Positions of the nodes in an order in which every value is given before it is read; the file's own where it is one.
///
/// `given` tells which names are there before any node runs. Names that nothing gives are left to be found later.
pub(super) fn order(nodes: &[NodeProto], given: &dyn Fn(&str) -> bool) -> Result<Vec<usize>, ImportError> {
    let mut producers: HashMap<&str, usize> = HashMap::new();
    for (at, node) in nodes.iter().enumerate() {
        for output in node.output.iter().filter(|o| !o.is_empty()) {
            producers.entry(output).or_insert(at);
        }
    }
    let mut waiting = vec![0usize; nodes.len()];
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut sorted = true;
    for (at, node) in nodes.iter().enumerate() {
        let mut names: HashSet<&str> = node.input.iter().map(String::as_str).collect();
        for graph in node.attribute.iter().flat_map(|a| a.g.as_deref().into_iter().chain(&a.graphs)) {
            free_names(graph, &mut names);
        }
        for producer in names.into_iter().filter(|n| !given(n)).filter_map(|n| producers.get(n)) {
            sorted &= *producer < at;
            waiting[at] += 1;
            readers[*producer].push(at);
        }
    }
    if sorted {
        return Ok((0..nodes.len()).collect());
    }
    let mut ready: BinaryHeap<_> =
        (0..nodes.len()).filter(|&i| waiting[i] == 0).map(std::cmp::Reverse).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(std::cmp::Reverse(at)) = ready.pop() {
        order.push(at);
        for &reader in &readers[at] {
            waiting[reader] -= 1;
            if waiting[reader] == 0 {
                ready.push(std::cmp::Reverse(reader));
            }
        }
    }
    match waiting.iter().position(|&count| count > 0) {
        Some(at) => Err(ImportError::Cycle(node_name(&nodes[at]))),
        None => Ok(order),
    }
}

/// Adds the names that a graph takes from outside.
fn free_names<'g>(graph: &'g GraphProto, found: &mut HashSet<&'g str>) {
    let mut used: HashSet<&str> = graph.output.iter().map(|o| o.name.as_str()).collect();
    for node in &graph.node {
        used.extend(node.input.iter().map(String::as_str));
        for inner in node.attribute.iter().flat_map(|a| a.g.as_deref().into_iter().chain(&a.graphs)) {
            free_names(inner, &mut used);
        }
    }
    for own in graph.initializer.iter().map(|t| &t.name).chain(graph.input.iter().map(|i| &i.name)) {
        used.remove(own.as_str());
    }
    for own in graph.node.iter().flat_map(|n| &n.output) {
        used.remove(own.as_str());
    }
    found.extend(used);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(input: &str, output: &str) -> NodeProto {
        NodeProto { input: vec![input.into()], output: vec![output.into()], ..NodeProto::default() }
    }

    #[test]
    fn nodes_are_sorted_when_the_file_has_not() {
        let nodes = [node("b", "c"), node("x", "a"), node("a", "b")];
        assert_eq!(order(&nodes, &|n| n == "x").unwrap(), [1, 2, 0]);
    }

    #[test]
    fn a_subgraph_waits_for_what_it_captures() {
        let body = GraphProto { node: vec![node("b", "c")], ..GraphProto::default() };
        let attribute = super::super::proto::AttributeProto { g: Some(Box::new(body)), ..Default::default() };
        let user = NodeProto { attribute: vec![attribute], ..node("x", "y") };
        assert_eq!(order(&[user, node("x", "b")], &|n| n == "x").unwrap(), [1, 0]);
    }

    #[test]
    fn rings_are_refused() {
        let nodes = [node("b", "a"), node("a", "b")];
        assert!(matches!(order(&nodes, &|_| false), Err(ImportError::Cycle(_))));
    }
}
