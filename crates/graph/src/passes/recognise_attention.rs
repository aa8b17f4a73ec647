//! Attention that exporters spell out (scores of queries and keys, a mask that is added or chosen by, softmax, weighted
//! values) becomes one node. Transposes that put heads before positions, and back, are left out where they can be: the
//! node takes heads beside each other. Keys and values that are repeated for several heads of queries are taken as they
//! were before. A query all of whose keys are hidden by minus infinity gives no number before and zeros after.

use armet_tensor::{ElementType, Shape};
use smallvec::SmallVec;

use super::heads::{Source, heads_and_size, is_transpose, side_by_side, source, transposed};
use super::{PassContext, facts, rewrite};
use crate::ops::{Attention, BinaryKind, MatMul, Reshape, Where};
use crate::{Dim, Graph, GraphError, Node, NodeId, Op, TensorType, ValueId};

/// A score that is added to a number like this is rounded away.
const NO_SCORE: f64 = -1e9;

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    let ids = facts::node_ids(graph);
    Ok(ids.into_iter().filter(|id| recognise(graph, *id).is_some()).count())
}

/// What hides keys from queries.
#[derive(Clone, Copy)]
enum Hiding {
    Nothing,
    Added(ValueId),
    /// Where the condition is `hides`, the constant stands in place of the score.
    Chosen {
        condition: ValueId,
        constant: ValueId,
        hides: bool,
    },
}

/// Spelled-out attention.
struct Found {
    q: ValueId,
    k: ValueId,
    /// Keys are the columns of `k`.
    columns: bool,
    v: ValueId,
    alpha: f32,
    hiding: Hiding,
}

fn recognise(graph: &mut Graph, id: NodeId) -> Option<()> {
    let found = find(graph, graph.get_node(id)?)?;
    let output = graph.node(id).output()?;
    let rank = facts::rank(graph, output)?;
    let dims = axes(graph, &found, rank)?;
    check_hiding(graph, found.hiding, &dims)?;
    let mut op = Attention { scale: Some(found.alpha), ..Attention::PLAIN };
    let keys = rows_of_keys(graph, &found)?;
    let (mut q, mut k, mut v) = (Source::plain(found.q), keys, source(graph, found.v));
    let mut back = None;
    if rank == 3 {
        // Without an axis of heads all leading positions are batch items of one head.
        if k.beside.is_some() {
            return None;
        }
        (op.query_heads, op.key_heads) = (Some(1), Some(1));
        v = Source::plain(found.v);
    } else {
        if let (Some(shared_k), Some(shared_v)) = (repeated(graph, k), repeated(graph, v)) {
            (k, v) = (shared_k, shared_v);
        }
        let queries = source(graph, found.q);
        if let Some((heads, _)) = queries.beside
            && let Some((_, size)) = heads_and_size(graph, output, [1, 3])
            && let Some(next) = facts::only_consumer(graph, output)
            && is_transpose(&graph.node(next).op, &[0, 2, 1, 3])
        {
            q = queries;
            op.query_heads = Some(heads);
            back = Some((next, heads, size));
        }
        op.key_heads = k.beside.or(v.beside).map(|(heads, _)| heads);
    }
    // From here on nothing can fail.
    let name = graph.node(id).name.clone();
    let mut inputs: SmallVec<[Option<ValueId>; 4]> =
        [q, k, v].iter().map(|source| Some(side_by_side(graph, *source))).collect();
    inputs.extend(mask(graph, &name, found.hiding).map(Some));
    let Some((next, heads, size)) = back else {
        rewrite::become_op(graph, id, op, &inputs);
        return Some(());
    };
    let flat =
        TensorType::new(ElementType::F32, [dims[0].clone(), dims[2].clone(), Dim::Fixed(heads * size)]);
    let flat = graph.add_value(format!("{name}_beside"), flat);
    graph.set_output(id, 0, Some(flat));
    rewrite::become_op(graph, id, op, &inputs);
    let apart = rewrite::int_vector(graph, format!("{name}_heads"), &[0, 0, heads as i64, size as i64]);
    rewrite::become_op(graph, next, Reshape { allow_zero: false }, &[Some(flat), Some(apart)]);
    Some(())
}

/// A product of two inputs and nothing else.
fn product<'a>(graph: &'a Graph, node: &'a Node) -> Option<(&'a MatMul, ValueId, ValueId)> {
    let Op::MatMul(op) = &node.op else { return None };
    let alone = node.inputs.iter().skip(2).all(Option::is_none) && op.activation.is_none();
    let (a, b) = (node.input(0)?, node.input(1)?);
    let plain = |value: ValueId| {
        facts::element(graph, value) == Some(ElementType::F32)
            && facts::quantization(graph, value).is_none()
            && !facts::producer(graph, value).is_some_and(|(_, n)| matches!(n.op, Op::DequantizeLinear(_)))
    };
    (alone && !op.transpose_a && plain(a) && plain(b) && plain(node.output()?)).then_some((op, a, b))
}

fn find(graph: &Graph, node: &Node) -> Option<Found> {
    let (op, weights, v) = product(graph, node)?;
    if op.transpose_b || op.alpha != 1.0 {
        return None;
    }
    let (_, softmax) = facts::sole_producer(graph, weights)?;
    let Op::Softmax(op) = &softmax.op else { return None };
    let rank = facts::rank(graph, weights)?;
    if op.log || (op.axis != -1 && op.axis != rank as i64 - 1) {
        return None;
    }
    let (_, before) = facts::sole_producer(graph, softmax.input(0)?)?;
    let (scores, hiding) = match &before.op {
        Op::MatMul(_) => (before, Hiding::Nothing),
        Op::Binary(op) if op.kind == BinaryKind::Add => {
            let (a, b) = (before.input(0)?, before.input(1)?);
            match (scores_of(graph, a), scores_of(graph, b)) {
                (Some(scores), _) => (scores, Hiding::Added(b)),
                (None, Some(scores)) => (scores, Hiding::Added(a)),
                _ => return None,
            }
        }
        Op::Where(_) => {
            let (condition, a, b) = (before.input(0)?, before.input(1)?, before.input(2)?);
            match (scores_of(graph, a), scores_of(graph, b)) {
                (Some(scores), None) => (scores, Hiding::Chosen { condition, constant: b, hides: false }),
                (None, Some(scores)) => (scores, Hiding::Chosen { condition, constant: a, hides: true }),
                _ => return None,
            }
        }
        _ => return None,
    };
    let (op, q, k) = product(graph, scores)?;
    Some(Found { q, k, columns: !op.transpose_b, v, alpha: op.alpha, hiding })
}

fn scores_of(graph: &Graph, value: ValueId) -> Option<&Node> {
    let (_, node) = facts::sole_producer(graph, value)?;
    matches!(node.op, Op::MatMul(_)).then_some(node)
}

/// Batch, heads (as an axis, one where there is none), queries, keys, when no operand is widened by another.
fn axes(graph: &Graph, found: &Found, rank: usize) -> Option<[Dim; 4]> {
    let [q, k, v] = [found.q, found.k, found.v].map(|value| facts::dims(graph, value));
    let (q, k, v) = (q?, k?, v?);
    if !(rank == 3 || rank == 4) || [q, k, v].iter().any(|dims| dims.len() != rank) {
        return None;
    }
    let keys = &k[if found.columns { rank - 1 } else { rank - 2 }];
    let lead = ..rank - 2;
    if !facts::same_dims(&q[lead], &k[lead])
        || !facts::same_dims(&q[lead], &v[lead])
        || !facts::same_dim(keys, &v[rank - 2])
        || q.contains(&Dim::Unknown)
        || v.contains(&Dim::Unknown)
    {
        return None;
    }
    let heads = if rank == 4 { q[1].clone() } else { Dim::Fixed(1) };
    Some([q[0].clone(), heads, q[rank - 2].clone(), keys.clone()])
}

/// A mask must tell of every key, and must not widen the scores.
fn check_hiding(graph: &Graph, hiding: Hiding, scores: &[Dim; 4]) -> Option<()> {
    let value = match hiding {
        Hiding::Nothing => return Some(()),
        Hiding::Added(value) => value,
        Hiding::Chosen { condition, constant, .. } => {
            facts::scalar(graph, constant).filter(|low| *low <= NO_SCORE)?;
            if facts::rank(graph, constant)? > facts::rank(graph, condition)? {
                return None;
            }
            condition
        }
    };
    let wanted = if matches!(hiding, Hiding::Added(_)) { ElementType::F32 } else { ElementType::Bool };
    let dims = facts::dims(graph, value)?;
    let lead = 4usize.checked_sub(dims.len())?;
    let fits = dims.iter().zip(&scores[lead..]).all(|(own, whole)| own.is(1) || facts::same_dim(own, whole));
    (facts::element(graph, value)? == wanted
        && facts::quantization(graph, value).is_none()
        && fits
        && facts::same_dim(dims.last()?, &scores[3]))
    .then_some(())
}

/// Keys with the elements of each side by side.
fn rows_of_keys(graph: &Graph, found: &Found) -> Option<Source> {
    if !found.columns {
        return Some(source(graph, found.k));
    }
    if let Some(beside) = transposed(graph, found.k, &[0, 2, 3, 1]) {
        return Some(beside);
    }
    let (_, node) = facts::producer(graph, found.k)?;
    let rows = node.input(0)?;
    match &node.op {
        op if is_transpose(op, &[0, 1, 3, 2]) => Some(source(graph, rows)),
        op if is_transpose(op, &[0, 2, 1]) => Some(Source::plain(rows)),
        _ => None,
    }
}

/// What was repeated for each of several heads: an axis behind that of the heads is made, widened and joined with it.
fn repeated(graph: &Graph, whole: Source) -> Option<Source> {
    if whole.beside.is_some() {
        return None;
    }
    let (_, joined) = facts::producer(graph, whole.value)?;
    let widened = joined.input(0)?;
    let (_, expand) = facts::producer(graph, widened)?;
    let narrow = expand.input(0)?;
    let (_, made) = facts::producer(graph, narrow)?;
    let reshapes = [&joined.op, &made.op].iter().all(|op| matches!(op, Op::Reshape(_) | Op::Unsqueeze(_)));
    if !reshapes || !matches!(expand.op, Op::Expand(_)) {
        return None;
    }
    let value = made.input(0)?;
    let [before, narrow, wide, after] =
        [value, narrow, widened, whole.value].map(|value| facts::dims(graph, value));
    let ([b, h, s, d], [b1, h1, one, s1, d1]) = (before?, narrow?) else { return None };
    let ([b2, h2, n, s2, d2], [b3, h3, s3, d3]) = (wide?, after?) else { return None };
    let all_same = |dims: [&Dim; 4]| dims.iter().all(|dim| facts::same_dim(dim, dims[0]));
    let heads = h.fixed()?.checked_mul(n.fixed()?)?;
    (all_same([b, b1, b2, b3])
        && all_same([s, s1, s2, s3])
        && all_same([d, d1, d2, d3])
        && all_same([h, h1, h2, h])
        && one.is(1)
        && h3.is(heads))
    .then(|| source(graph, value))
}

/// The mask as numbers to add.
fn mask(graph: &mut Graph, name: &str, hiding: Hiding) -> Option<ValueId> {
    let (condition, constant, hides) = match hiding {
        Hiding::Nothing => return None,
        Hiding::Added(value) => return Some(value),
        Hiding::Chosen { condition, constant, hides } => (condition, constant, hides),
    };
    let zero = rewrite::constant(graph, format!("{name}_seen"), ElementType::F32, Shape::scalar(), &[0.0])?;
    let (yes, no) = if hides { (constant, zero) } else { (zero, constant) };
    let dims = facts::dims(graph, condition)?.to_vec();
    let ty = TensorType::new(ElementType::F32, dims);
    Some(rewrite::insert(graph, format!("{name}_mask"), Where, &[Some(condition), Some(yes), Some(no)], ty).1)
}

#[cfg(test)]
mod tests {
    use armet_tensor::Tensor;

    use super::*;
    use crate::ops::{Binary, Expand, Softmax, Transpose, Unsqueeze};
    use crate::passes::testing::{Build, becomes, binary, matmul, stays};

    const PASS: &[&str] = &["recognise_attention"];
    const SOFTMAX: Softmax = Softmax { axis: -1, log: false, flatten: false };

    fn scaled() -> MatMul {
        MatMul { alpha: 0.5, transpose_b: true, ..matmul() }
    }

    fn turn(perm: &[usize]) -> Transpose {
        Transpose { perm: perm.to_vec() }
    }

    fn truths(shape: [usize; 2], bytes: &[u8]) -> Tensor {
        Tensor::from_bytes(ElementType::Bool, shape, bytes).unwrap()
    }

    fn add() -> Binary {
        binary(BinaryKind::Add)
    }

    /// Attention of three inputs with an axis of heads; `between` makes of scores what the softmax reads.
    fn plain(between: impl Fn(&mut Build, ValueId) -> ValueId) -> Graph {
        let mut b = Build::new();
        let [q, k, v] = [("q", 3), ("k", 5), ("v", 5)].map(|(name, n)| b.input(name, &[2, 2, n, 4]));
        let scores = b.node("scores", scaled(), &[q, k]);
        let scores = between(&mut b, scores);
        let weights = b.node("weights", SOFTMAX, &[scores]);
        let y = b.node("y", matmul(), &[weights, v]);
        b.finish(&[y])
    }

    #[test]
    fn with_a_mask_that_is_added() {
        let graph = plain(|b, scores| {
            let mask = b.input("mask", &[2, 1, 1, 5]);
            b.node("masked", add(), &[mask, scores])
        });
        becomes!(graph, PASS, @r"
        graph test
          input q: float32[2,2,3,4]
          input k: float32[2,2,5,4]
          input v: float32[2,2,5,4]
          input mask: float32[2,1,1,5]
          y: float32[2,2,3,4] = Attention(q, k, v, mask) is_causal=0, softcap=0, scale=0.5, qk_matmul_output_mode=0 // y + scores + masked + weights
          output y
        ");
    }

    #[test]
    fn with_a_mask_that_chooses() {
        let condition = || truths([3, 5], &[1, 1, 0, 1, 1].repeat(3));
        let graph = plain(|b, scores| {
            let (condition, low) = (b.constant(condition()), b.number(f32::NEG_INFINITY));
            b.node("masked", Where, &[condition, scores, low])
        });
        becomes!(graph, PASS, @r"
        graph test
          input q: float32[2,2,3,4]
          input k: float32[2,2,5,4]
          input v: float32[2,2,5,4]
          y_mask: float32[3,5] = Where(c1 bool[3,5] {1, 1, 0, ..}, y_seen float32[] {0}, c2 float32[] {-inf})
          y: float32[2,2,3,4] = Attention(q, k, v, y_mask) is_causal=0, softcap=0, scale=0.5, qk_matmul_output_mode=0 // y + scores + masked + weights
          output y
        ");
        let graph = plain(|b, scores| {
            let (condition, low) = (b.constant(condition()), b.number(f32::MIN));
            b.node("masked", Where, &[condition, low, scores])
        });
        becomes!(graph, PASS, @r"
        graph test
          input q: float32[2,2,3,4]
          input k: float32[2,2,5,4]
          input v: float32[2,2,5,4]
          y_mask: float32[3,5] = Where(c1 bool[3,5] {1, 1, 0, ..}, c2 float32[] {-340282350000000000000000000000000000000}, y_seen float32[] {0})
          y: float32[2,2,3,4] = Attention(q, k, v, y_mask) is_causal=0, softcap=0, scale=0.5, qk_matmul_output_mode=0 // y + scores + masked + weights
          output y
        ");
    }

    /// Heads that were beside each other, with the keys transposed by `perm` or by a flag.
    fn projected(lone: bool, columns: bool) -> Graph {
        let mut b = Build::new();
        let apart = b.ints(&[0, 0, 2, 4]);
        let [q, k, v] = [("q", 3), ("k", 5), ("v", 5)].map(|(name, n)| {
            let x = b.input(name, &[2, n, 8]);
            b.node(&format!("{name}_apart"), Reshape { allow_zero: false }, &[x, apart])
        });
        let perm: &[usize] = if columns { &[0, 2, 3, 1] } else { &[0, 2, 1, 3] };
        let q = b.node("q_heads", turn(&[0, 2, 1, 3]), &[q]);
        let k = b.node("k_heads", turn(perm), &[k]);
        let v = b.node("v_heads", turn(&[0, 2, 1, 3]), &[v]);
        let scores = b.node("scores", MatMul { transpose_b: !columns, ..scaled() }, &[q, k]);
        let weights = b.node("weights", SOFTMAX, &[scores]);
        let heads = b.node("heads", matmul(), &[weights, v]);
        let y = b.node("y", turn(&[0, 2, 1, 3]), &[heads]);
        if lone { b.finish(&[y]) } else { b.finish(&[y, heads]) }
    }

    #[test]
    fn heads_stay_beside_each_other() {
        becomes!(projected(true, true), PASS, @r"
        graph test
          input q: float32[2,3,8]
          input k: float32[2,5,8]
          input v: float32[2,5,8]
          heads_beside: float32[2,3,8] = Attention(q, k, v) is_causal=0, softcap=0, q_num_heads=2, kv_num_heads=2, scale=0.5, qk_matmul_output_mode=0 // heads + q_apart + k_apart + v_apart + q_heads + k_heads + v_heads + scores + weights
          y: float32[2,3,2,4] = Reshape(heads_beside, heads_heads int64[4] {0, 0, 2, 4}) allowzero=0
          output y
        ");
        becomes!(projected(true, false), PASS, @r"
        graph test
          input q: float32[2,3,8]
          input k: float32[2,5,8]
          input v: float32[2,5,8]
          heads_beside: float32[2,3,8] = Attention(q, k, v) is_causal=0, softcap=0, q_num_heads=2, kv_num_heads=2, scale=0.5, qk_matmul_output_mode=0 // heads + q_apart + k_apart + v_apart + q_heads + k_heads + v_heads + scores + weights
          y: float32[2,3,2,4] = Reshape(heads_beside, heads_heads int64[4] {0, 0, 2, 4}) allowzero=0
          output y
        ");
    }

    #[test]
    fn heads_that_others_read_are_given_apart() {
        becomes!(projected(false, true), PASS, @r"
        graph test
          input q: float32[2,3,8]
          input k: float32[2,5,8]
          input v: float32[2,5,8]
          q_apart: float32[2,3,2,4] = Reshape(q, c1 int64[4] {0, 0, 2, 4}) allowzero=0
          q_heads: float32[2,2,3,4] = Transpose(q_apart) perm=[0, 2, 1, 3]
          heads: float32[2,2,3,4] = Attention(q_heads, k, v) is_causal=0, softcap=0, kv_num_heads=2, scale=0.5, qk_matmul_output_mode=0 // heads + k_apart + v_apart + k_heads + v_heads + scores + weights
          y: float32[2,3,2,4] = Transpose(heads) perm=[0, 2, 1, 3]
          output y
          output heads
        ");
    }

    #[test]
    fn keys_that_are_repeated() {
        let mut b = Build::new();
        let q = b.input("q", &[1, 4, 3, 8]);
        let (axis, wide, joined) = (b.ints(&[2]), b.ints(&[1, 2, 2, 5, 8]), b.ints(&[1, 4, 5, 8]));
        let [k, v] = ["k", "v"].map(|name| {
            let x = b.input(name, &[1, 2, 5, 8]);
            let x = b.node(&format!("{name}_axis"), Unsqueeze, &[x, axis]);
            let x = b.node(&format!("{name}_wide"), Expand, &[x, wide]);
            b.node(&format!("{name}_joined"), Reshape { allow_zero: false }, &[x, joined])
        });
        let scores = b.node("scores", scaled(), &[q, k]);
        let weights = b.node("weights", SOFTMAX, &[scores]);
        let y = b.node("y", matmul(), &[weights, v]);
        becomes!(b.finish(&[y]), PASS, @r"
        graph test
          input q: float32[1,4,3,8]
          input k: float32[1,2,5,8]
          input v: float32[1,2,5,8]
          y: float32[1,4,3,8] = Attention(q, k, v) is_causal=0, softcap=0, scale=0.5, qk_matmul_output_mode=0 // y + k_axis + k_wide + k_joined + v_axis + v_wide + v_joined + scores + weights
          output y
        ");
    }

    #[test]
    fn without_an_axis_of_heads() {
        let mut b = Build::new();
        let [q, k, v] = [("q", 3), ("k", 5), ("v", 5)].map(|(name, n)| b.input(name, &[6, n, 4]));
        let k = b.node("columns", turn(&[0, 2, 1]), &[k]);
        let scores = b.node("scores", matmul(), &[q, k]);
        let mask = b.weights(&[3, 5]);
        let scores = b.node("masked", add(), &[scores, mask]);
        let weights = b.node("weights", SOFTMAX, &[scores]);
        let y = b.node("y", matmul(), &[weights, v]);
        becomes!(b.finish(&[y]), PASS, @r"
        graph test
          input q: float32[6,3,4]
          input k: float32[6,5,4]
          input v: float32[6,5,4]
          y: float32[6,3,4] = Attention(q, k, v, c1 float32[3,5] {0.8165615, 0.9957817, 1.2210027, ..}) is_causal=0, softcap=0, q_num_heads=1, kv_num_heads=1, scale=1, qk_matmul_output_mode=0 // y + columns + scores + masked + weights
          output y
        ");
    }

    #[test]
    fn not_where_another_axis_is_normalized() {
        let mut b = Build::new();
        let [q, k, v] = ["q", "k", "v"].map(|name| b.input(name, &[2, 3, 5, 5]));
        let scores = b.node("scores", scaled(), &[q, k]);
        let weights = b.node("weights", Softmax { axis: 2, ..SOFTMAX }, &[scores]);
        let y = b.node("y", matmul(), &[weights, v]);
        stays(&b.finish(&[y]), PASS);
    }

    #[test]
    fn not_where_a_value_between_is_read() {
        for read in ["scores", "weights"] {
            let mut b = Build::new();
            let [q, k, v] = ["q", "k", "v"].map(|name| b.input(name, &[2, 3, 5, 5]));
            let scores = b.node("scores", scaled(), &[q, k]);
            let weights = b.node("weights", SOFTMAX, &[scores]);
            let y = b.node("y", matmul(), &[weights, v]);
            stays(&b.finish(&[y, if read == "scores" { scores } else { weights }]), PASS);
        }
    }

    #[test]
    fn not_where_something_is_widened() {
        // A mask that widens, one that tells of one key for all, a score that is no small number, and one batch of keys.
        stays(
            &plain(|b, s| {
                let m = b.input("m", &[2, 2, 3, 1]);
                b.node("masked", add(), &[s, m])
            }),
            PASS,
        );
        stays(
            &plain(|b, s| {
                let (condition, low) = (truths([1, 5], &[1, 0, 1, 1, 1]), b.number(-100.0));
                let condition = b.constant(condition);
                b.node("masked", Where, &[condition, s, low])
            }),
            PASS,
        );
        let mut b = Build::new();
        let q = b.input("q", &[2, 2, 3, 4]);
        let [k, v] = ["k", "v"].map(|name| b.input(name, &[1, 2, 5, 4]));
        let scores = b.node("scores", scaled(), &[q, k]);
        let weights = b.node("weights", SOFTMAX, &[scores]);
        let y = b.node("y", matmul(), &[weights, v]);
        stays(&b.finish(&[y]), PASS);
    }
}
