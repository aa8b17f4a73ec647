//! `ai.onnx.ml`: ensembles of decision trees, in their old forms and in the one of version 5.

use std::collections::{HashMap, HashSet};

use armet_graph::ops::{
    BinaryKind, Cast, Concat, Gather, TreeAggregate, TreeBranch, TreeEnsemble, TreeNode, TreeTest, Unary,
    UnaryKind, numbers,
};
use armet_tensor::{ElementType, Tensor};

use super::learning::{PostTransform, best_label, binary, class_labels, finish, post_transform};
use super::{Entry, learning};
use crate::onnx::error::Invalid;
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[
    learning("TreeEnsembleRegressor", 1, regress),
    learning("TreeEnsembleClassifier", 1, classify),
    learning("TreeEnsemble", 5, ensemble),
];

fn wrong(text: impl Into<String>) -> crate::onnx::node::Problem {
    Invalid::Other(text.into()).into()
}

/// Numbers from a tensor, or else from a list.
fn reals(n: &mut NodeReader<'_, '_>, tensor: &'static str, list: &'static str) -> Read<Vec<f64>> {
    if let Some(tensor) = n.tensor(tensor)? {
        return numbers::to_f64(&tensor).map_err(|error| wrong(error.to_string()));
    }
    Ok(n.floats(list)?.unwrap_or_default().into_iter().map(f64::from).collect())
}

fn test(mode: &str, value: f64) -> Option<TreeTest> {
    Some(match mode {
        "BRANCH_LEQ" => TreeTest::LessOrEqual(value),
        "BRANCH_LT" => TreeTest::Less(value),
        "BRANCH_GTE" => TreeTest::GreaterOrEqual(value),
        "BRANCH_GT" => TreeTest::Greater(value),
        "BRANCH_EQ" => TreeTest::Equal(value),
        "BRANCH_NEQ" => TreeTest::NotEqual(value),
        _ => return None,
    })
}

/// The old form: nodes and leaves in one list, each with the number of its tree and its own number there. `names` are those of
/// the lists that say what leaves add to which targets.
fn listed(n: &mut NodeReader<'_, '_>, names: [&'static str; 5], targets: usize) -> Read<TreeEnsemble> {
    n.ignore(&["nodes_hitrates", "nodes_hitrates_as_tensor"]);
    let list = |name: &'static str| n.ints(name).map(Option::unwrap_or_default);
    let (trees, own) = (list("nodes_treeids")?, list("nodes_nodeids")?);
    let (features, yes, no) =
        (n.sizes("nodes_featureids")?, list("nodes_truenodeids")?, list("nodes_falsenodeids")?);
    let missing = list("nodes_missing_value_tracks_true")?;
    let modes = n.words("nodes_modes")?.unwrap_or_default();
    let [tree_name, node_name, id_name, weight_tensor, weight_list] = names;
    let (leaf_trees, leaf_nodes, leaf_targets) = (list(tree_name)?, list(node_name)?, n.sizes(id_name)?);
    let values = reals(n, "nodes_values_as_tensor", "nodes_values")?;
    let weights = reals(n, weight_tensor, weight_list)?;
    let base = reals(n, "base_values_as_tensor", "base_values")?;
    let count = own.len();
    let lengths = [trees.len(), features.len(), yes.len(), no.len(), modes.len(), values.len()];
    if lengths.iter().any(|&len| len != count) || (!missing.is_empty() && missing.len() != count) {
        return Err(wrong("the lists of its nodes differ in length"));
    }
    let leaf_lengths = [leaf_nodes.len(), leaf_targets.len(), weights.len()];
    if leaf_lengths.iter().any(|&len| len != leaf_trees.len()) {
        return Err(wrong("the lists of its leaves differ in length"));
    }
    if let Some(target) = leaf_targets.iter().find(|&&target| target >= targets) {
        return Err(wrong(format!("a leaf adds to target {target} of {targets}")));
    }
    let mut added: HashMap<(i64, i64), Vec<(usize, f64)>> = HashMap::new();
    for (index, &target) in leaf_targets.iter().enumerate() {
        added.entry((leaf_trees[index], leaf_nodes[index])).or_default().push((target, weights[index]));
    }
    // Where each listed node is: among questions or among leaves.
    let mut places: HashMap<(i64, i64), TreeBranch> = HashMap::new();
    let (mut questions, mut leaves) = (0, Vec::new());
    for index in 0..count {
        let key = (trees[index], own[index]);
        let place = if modes[index] == "LEAF" {
            leaves.push(added.remove(&key).unwrap_or_default());
            TreeBranch::Leaf(leaves.len() - 1)
        } else {
            questions += 1;
            TreeBranch::Node(questions - 1)
        };
        if places.insert(key, place).is_some() {
            return Err(wrong(format!("node {} of tree {} is there twice", key.1, key.0)));
        }
    }
    let mut nodes = Vec::with_capacity(questions);
    let mut roots = Vec::new();
    let mut begun = HashSet::new();
    for index in 0..count {
        // The first node of a tree that is listed is its root.
        if begun.insert(trees[index]) {
            roots.push(places[&(trees[index], own[index])]);
        }
        if modes[index] == "LEAF" {
            continue;
        }
        let find = |id: i64| {
            let place = places.get(&(trees[index], id)).copied();
            place.ok_or_else(|| wrong(format!("tree {} has no node {id}", trees[index])))
        };
        nodes.push(TreeNode {
            feature: features[index],
            test: test(&modes[index], values[index]).ok_or_else(|| n.unsupported("nodes_modes"))?,
            missing_is_yes: missing.get(index).is_some_and(|m| *m != 0),
            yes: find(yes[index])?,
            no: find(no[index])?,
        });
    }
    Ok(TreeEnsemble {
        roots,
        nodes,
        leaves,
        base,
        targets,
        aggregate: TreeAggregate::Sum,
        element: ElementType::F32,
    })
}

fn regress(n: &mut NodeReader<'_, '_>) -> Read {
    let aggregates = [
        ("SUM", TreeAggregate::Sum),
        ("AVERAGE", TreeAggregate::Average),
        ("MIN", TreeAggregate::Min),
        ("MAX", TreeAggregate::Max),
    ];
    let aggregate = n.choice("aggregate_function", TreeAggregate::Sum, &aggregates)?;
    let targets = n.size_or("n_targets", 1)?;
    let transform = post_transform(n)?;
    let names =
        ["target_treeids", "target_nodeids", "target_ids", "target_weights_as_tensor", "target_weights"];
    let op = TreeEnsemble { aggregate, ..listed(n, names, targets)? };
    scored(n, op, transform)
}

fn scored(n: &mut NodeReader<'_, '_>, op: TreeEnsemble, transform: PostTransform) -> Read {
    let x = n.input(0)?;
    if transform == PostTransform::None {
        return n.emit(op, vec![Some(x)]);
    }
    let scores = n.step("scores", op, vec![Some(x)]);
    let output = n.output(0)?;
    finish(n, scores, transform, output)
}

fn classify(n: &mut NodeReader<'_, '_>) -> Read {
    let transform = post_transform(n)?;
    let labels = class_labels(n, "classlabels_int64s", "classlabels_strings")?;
    let classes = labels.len();
    let names = ["class_treeids", "class_nodeids", "class_ids", "class_weights_as_tensor", "class_weights"];
    let mut op = listed(n, names, classes)?;
    let mut used = op.leaves.iter().flatten().map(|(target, _)| *target);
    let first = used.next().unwrap_or(0);
    let one_score = classes == 2 && used.all(|target| target == first);
    let x = n.input(0)?;
    if !one_score {
        let scores = n.step("scores", op, vec![Some(x)]);
        best_label(n, scores, labels)?;
        let output = n.output(1)?;
        return finish(n, scores, transform, output);
    }
    // All leaves speak of one score, which is for the second class: a probability where no leaf is negative.
    let is_probability = op.leaves.iter().flatten().all(|(_, weight)| *weight >= 0.0);
    for (target, _) in op.leaves.iter_mut().flatten() {
        *target = 0;
    }
    op.base = op.base.last().copied().into_iter().collect();
    op.targets = 1;
    let score = n.step("score", op, vec![Some(x)]);
    let is_plain = matches!(transform, PostTransform::None | PostTransform::Probit);
    let against = if is_probability && is_plain {
        let one = n.add_constant("one", Tensor::scalar(1f32));
        n.step("against", binary(BinaryKind::Sub), vec![Some(one), Some(score)])
    } else {
        n.step("against", Unary { kind: UnaryKind::Neg }, vec![Some(score)])
    };
    let limit = n.add_constant("limit", Tensor::scalar(if is_probability { 0.5f32 } else { 0.0 }));
    let second = n.step("second", binary(BinaryKind::Greater), vec![Some(score), Some(limit)]);
    let index = n.step("index", Cast { to: ElementType::I64, saturate: true }, vec![Some(second)]);
    let flat = n.vector("flat", &[-1i64]);
    let reshape = armet_graph::ops::Reshape { allow_zero: false };
    let index = n.step("row", reshape, vec![Some(index), Some(flat)]);
    let labels = n.add_constant("labels", labels);
    let label = n.output(0)?;
    n.emit_to(Gather { axis: 0 }, vec![Some(labels), Some(index)], &[label]);
    let output = n.output(1)?;
    let scores = n.step("scores", Concat { axis: 1 }, vec![Some(against), Some(score)]);
    finish(n, scores, transform, output)
}

/// The form of version 5.
fn ensemble(n: &mut NodeReader<'_, '_>) -> Read {
    n.ignore(&["nodes_hitrates"]);
    let aggregate = match n.int_or("aggregate_function", 1)? {
        0 => TreeAggregate::Average,
        1 => TreeAggregate::Sum,
        2 => TreeAggregate::Min,
        3 => TreeAggregate::Max,
        _ => return Err(n.unsupported("aggregate_function")),
    };
    let transform = match n.int_or("post_transform", 0)? {
        0 => PostTransform::None,
        1 => PostTransform::Softmax,
        2 => PostTransform::Logistic,
        3 => PostTransform::SoftmaxZero,
        4 => PostTransform::Probit,
        _ => return Err(n.unsupported("post_transform")),
    };
    let targets = n.size_or("n_targets", 1)?;
    let (features, leaf_targets, roots) =
        (n.sizes("nodes_featureids")?, n.sizes("leaf_targetids")?, n.sizes("tree_roots")?);
    let [yes, no] = [("nodes_truenodeids", "nodes_trueleafs"), ("nodes_falsenodeids", "nodes_falseleafs")]
        .map(|(ids, leaves)| Ok::<_, crate::onnx::node::Problem>((n.sizes(ids)?, n.sizes(leaves)?)));
    let (yes, no) = (yes?, no?);
    let missing = n.ints("nodes_missing_value_tracks_true")?.unwrap_or_default();
    let numbers_of = |n: &mut NodeReader<'_, '_>, name: &'static str| match n.tensor(name)? {
        Some(tensor) => numbers::to_f64(&tensor).map_err(|error| wrong(error.to_string())),
        None => Ok(Vec::new()),
    };
    let modes = numbers_of(n, "nodes_modes")?;
    let splits = numbers_of(n, "nodes_splits")?;
    let weights = numbers_of(n, "leaf_weights")?;
    let members = numbers_of(n, "membership_values")?;
    let count = features.len();
    let lengths = [modes.len(), splits.len(), yes.0.len(), yes.1.len(), no.0.len(), no.1.len()];
    if lengths.iter().any(|&len| len != count) || weights.len() != leaf_targets.len() {
        return Err(wrong("the lists of its nodes or leaves differ in length"));
    }
    if roots.iter().any(|&root| root >= count) || leaf_targets.iter().any(|&target| target >= targets) {
        return Err(wrong("a root or a target is not there"));
    }
    let mut sets = members.split(|v| v.is_nan());
    let branch = |side: &(Vec<usize>, Vec<usize>), index: usize| {
        if side.1[index] != 0 { TreeBranch::Leaf(side.0[index]) } else { TreeBranch::Node(side.0[index]) }
    };
    let mut nodes = Vec::with_capacity(count);
    for index in 0..count {
        let split = splits[index];
        let test = match modes[index] as i64 {
            0 => TreeTest::LessOrEqual(split),
            1 => TreeTest::Less(split),
            2 => TreeTest::GreaterOrEqual(split),
            3 => TreeTest::Greater(split),
            4 => TreeTest::Equal(split),
            5 => TreeTest::NotEqual(split),
            6 => TreeTest::Member(sets.next().unwrap_or_default().to_vec()),
            _ => return Err(n.unsupported("nodes_modes")),
        };
        nodes.push(TreeNode {
            feature: features[index],
            test,
            missing_is_yes: missing.get(index).is_some_and(|m| *m != 0),
            yes: branch(&yes, index),
            no: branch(&no, index),
        });
    }
    let x = n.input(0)?;
    let element = n.type_of(x).map(|ty| ty.element).filter(|element| element.is_float());
    let op = TreeEnsemble {
        roots: roots.into_iter().map(TreeBranch::Node).collect(),
        nodes,
        leaves: leaf_targets.into_iter().zip(weights).map(|leaf| vec![leaf]).collect(),
        base: Vec::new(),
        targets,
        aggregate,
        element: element.unwrap_or(ElementType::F32),
    };
    scored(n, op, transform)
}
