//! Rotary embedding that exporters spell out becomes one node: `x * cos + rotated(x) * sin` with the halves of x exchanged
//! and the second negated, where both halves of the angles are surely alike; or the halves, or every other element, turned
//! apart and put together. Heads that were beside each other before stay so, and a Transpose follows.

use armet_tensor::ElementType;

use super::heads::{side_by_side, source};
use super::{PassContext, facts, rewrite};
use crate::ops::{BinaryKind, Reshape, RotaryEmbedding, Slice, Squeeze, Transpose};
use crate::{Dim, Graph, GraphError, NodeId, Op, TensorType, ValueId, ValueType};

/// Nodes between angles and the place where they were doubled.
const FARTHEST: usize = 8;
/// Constants up to this number of elements are searched.
const LONGEST: usize = 1 << 22;

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    let ids = facts::node_ids(graph);
    Ok(ids.into_iter().filter(|id| recognise(graph, *id).is_some()).count())
}

/// Which elements of the last axis.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    First,
    Second,
    Even,
    Odd,
}

/// Spelled-out rotary embedding.
struct Found {
    x: ValueId,
    cos: ValueId,
    sin: ValueId,
    /// Angles stand twice in the last axis.
    doubled: bool,
    interleaved: bool,
}

/// How angles lie beside `[a, b, c, size]` data.
struct Angles {
    /// Heads are the second axis, else the third.
    heads_first: bool,
    /// They differ between batch items.
    by_item: bool,
    length: Dim,
}

fn recognise(graph: &mut Graph, id: NodeId) -> Option<()> {
    let node = graph.get_node(id)?;
    let output = node.output()?;
    let found = match &node.op {
        Op::Binary(op) if op.kind == BinaryKind::Add => rotated(graph, node.input(0)?, node.input(1)?)
            .or_else(|| rotated(graph, node.input(1)?, node.input(0)?))?,
        Op::Concat(_) => turned_apart(graph, output, false)?,
        Op::Reshape(_) => turned_apart(graph, node.input(0)?, true)?,
        _ => return None,
    };
    let plain = |value: ValueId| {
        facts::element(graph, value) == Some(ElementType::F32) && facts::quantization(graph, value).is_none()
    };
    if ![found.x, found.cos, found.sin, output].into_iter().all(plain)
        || !facts::same_shape(graph, found.x, output)
        || !facts::same_shape(graph, found.cos, found.sin)
    {
        return None;
    }
    let dims: [Dim; 4] = facts::dims(graph, found.x)?.to_vec().try_into().ok()?;
    let size = dims[3].fixed().filter(|size| *size > 0 && size % 2 == 0)?;
    let angles = angles(graph, &found, &dims)?;
    if found.doubled && ![found.cos, found.sin].into_iter().all(|value| doubled(graph, value, FARTHEST)) {
        return None;
    }
    let heads =
        if angles.heads_first { source(graph, found.x).beside } else { Some((dims[2].fixed()?, size)) };
    // From here on nothing can fail.
    let name = graph.node(id).name.clone();
    let mut inputs = vec![];
    let x = match heads {
        None => found.x,
        Some(_) if angles.heads_first => side_by_side(graph, source(graph, found.x)),
        Some(beside) => side_by_side(graph, super::heads::Source { value: found.x, beside: Some(beside) }),
    };
    inputs.push(Some(x));
    for value in [found.cos, found.sin] {
        inputs.push(Some(rows_of_angles(graph, value, &angles, size / 2)));
    }
    if !angles.by_item {
        inputs.push(Some(rewrite::int_vector(graph, format!("{name}_first"), &[0])));
    }
    let mut op = RotaryEmbedding { heads: None, width: 0, interleaved: found.interleaved };
    let Some((count, _)) = heads else {
        rewrite::become_op(graph, id, op, &inputs);
        return Some(());
    };
    op.heads = Some(count);
    let [batch, second, third, _] = dims;
    let length = if angles.heads_first { third } else { second };
    let ty = TensorType::new(ElementType::F32, [batch.clone(), length.clone(), Dim::Fixed(count * size)]);
    let (_, turned) = rewrite::insert(graph, format!("{name}_turned"), op, &inputs, ty);
    let shape = rewrite::int_vector(graph, format!("{name}_heads"), &[0, 0, count as i64, size as i64]);
    let apart = Reshape { allow_zero: false };
    if angles.heads_first {
        let ty = TensorType::new(ElementType::F32, [batch, length, Dim::Fixed(count), Dim::Fixed(size)]);
        let (_, apart) =
            rewrite::insert(graph, format!("{name}_apart"), apart, &[Some(turned), Some(shape)], ty);
        rewrite::become_op(graph, id, Transpose { perm: vec![0, 2, 1, 3] }, &[Some(apart)]);
    } else {
        rewrite::become_op(graph, id, apart, &[Some(turned), Some(shape)]);
    }
    Some(())
}

/// The factors of a product of two values.
fn factors(graph: &Graph, value: ValueId) -> Option<[ValueId; 2]> {
    match sole_binary(graph, value)? {
        (BinaryKind::Mul, a, b) => Some([a, b]),
        _ => None,
    }
}

/// A function of two values that one place alone reads.
fn sole_binary(graph: &Graph, value: ValueId) -> Option<(BinaryKind, ValueId, ValueId)> {
    facts::only_consumer(graph, value)?;
    super::patterns::binary(graph, value)
}

/// `x * cos + rotated(x) * sin`.
fn rotated(graph: &Graph, straight: ValueId, crossed: ValueId) -> Option<Found> {
    let (straight, crossed) = (factors(graph, straight)?, factors(graph, crossed)?);
    for (x, cos) in [(straight[0], straight[1]), (straight[1], straight[0])] {
        for (rotated, sin) in [(crossed[0], crossed[1]), (crossed[1], crossed[0])] {
            if rotated_half(graph, rotated) == Some(x) {
                return Some(Found { x, cos, sin, doubled: true, interleaved: false });
            }
        }
    }
    None
}

/// What `concat(-second half, first half)` is of.
fn rotated_half(graph: &Graph, value: ValueId) -> Option<ValueId> {
    let [a, b] = joined(graph, value)?;
    let (crate::ops::UnaryKind::Neg, second) = super::patterns::unary(graph, a)? else { return None };
    let ((x, Part::Second), (same, Part::First)) = (part(graph, second)?, part(graph, b)?) else {
        return None;
    };
    (x == same).then_some(x)
}

/// The two values that a Concat along the last axis joins.
fn joined(graph: &Graph, value: ValueId) -> Option<[ValueId; 2]> {
    let (_, node) = facts::sole_producer(graph, value)?;
    join_of(graph, node, value)
}

fn join_of(graph: &Graph, node: &crate::Node, value: ValueId) -> Option<[ValueId; 2]> {
    let Op::Concat(op) = &node.op else { return None };
    let rank = facts::rank(graph, value)? as i64;
    let last = op.axis == -1 || op.axis == rank - 1;
    (last && node.inputs.len() == 2).then_some([node.input(0)?, node.input(1)?])
}

/// Two parts turned and then joined, side by side or, when interleaved, element by element.
fn turned_apart(graph: &Graph, value: ValueId, interleaved: bool) -> Option<Found> {
    let (_, node) = facts::producer(graph, value)?;
    let [mut a, mut b] = join_of(graph, node, value)?;
    if interleaved {
        facts::only_consumer(graph, value)?;
        // Each part has got a last axis of one.
        for side in [&mut a, &mut b] {
            let (_, node) = facts::sole_producer(graph, *side)?;
            let before = node.input(0)?;
            let made = facts::dims(graph, *side)?;
            if !matches!(node.op, Op::Unsqueeze(_) | Op::Reshape(_))
                || !made.last()?.is(1)
                || !facts::same_dims(&made[..made.len() - 1], facts::dims(graph, before)?)
            {
                return None;
            }
            *side = before;
        }
    }
    let (BinaryKind::Sub, straight, crossed) = sole_binary(graph, a)? else { return None };
    let (BinaryKind::Add, third, fourth) = sole_binary(graph, b)? else { return None };
    let wanted = if interleaved { (Part::Even, Part::Odd) } else { (Part::First, Part::Second) };
    let of = |value: ValueId, which: Part| {
        let [a, b] = factors(graph, value)?;
        [(a, b), (b, a)].into_iter().find_map(|(data, angle)| match part(graph, data) {
            Some((x, part)) if part == which => Some((x, angle)),
            _ => None,
        })
    };
    let ((x, cos), (same, sin)) = (of(straight, wanted.0)?, of(crossed, wanted.1)?);
    let both = |first: ValueId, second: ValueId| Some((of(first, wanted.0)?, of(second, wanted.1)?));
    let second = both(third, fourth).or_else(|| both(fourth, third))?;
    (x == same && second == ((x, sin), (x, cos))).then_some(Found {
        x,
        cos,
        sin,
        doubled: false,
        interleaved,
    })
}

/// Which elements of which value these are.
fn part(graph: &Graph, value: ValueId) -> Option<(ValueId, Part)> {
    let (_, node) = facts::producer(graph, value)?;
    let half = facts::dims(graph, value)?.last()?.fixed()?;
    let x = node.input(0)?;
    match &node.op {
        Op::Slice(_) => {
            let size = facts::dims(graph, x)?.last()?.fixed().filter(|size| *size == 2 * half)?;
            let one = |index: usize| match &facts::ints(graph, node.input(index)?)?[..] {
                [number] => Some(*number),
                _ => None,
            };
            let rank = facts::rank(graph, x)? as i64;
            let axis = one(3)?;
            let step = if node.input(4).is_some() { one(4)? } else { 1 };
            let start = one(1)?;
            if axis != -1 && axis != rank - 1 {
                return None;
            }
            let start = if start < 0 { start + size as i64 } else { start };
            let part = match (step, start) {
                (1, 0) => Part::First,
                (1, start) if start == half as i64 => Part::Second,
                (2, 0) => Part::Even,
                (2, 1) => Part::Odd,
                _ => return None,
            };
            Some((x, part))
        }
        Op::Split(op) => {
            let rank = facts::rank(graph, x)? as i64;
            let at = node.outputs.iter().position(|output| *output == Some(value))?;
            let halves = facts::dims(graph, x)?.last()?.is(2 * half) && node.outputs.len() == 2;
            let last = op.axis == -1 || op.axis == rank - 1;
            (halves && last).then_some((x, if at == 0 { Part::First } else { Part::Second }))
        }
        _ => None,
    }
}

fn angles(graph: &Graph, found: &Found, dims: &[Dim; 4]) -> Option<Angles> {
    let own = facts::dims(graph, found.cos)?;
    let size = dims[3].fixed()?;
    let width = if found.doubled { size } else { size / 2 };
    let one = Dim::Fixed(1);
    let at = |axis: usize| axis.checked_sub(4 - own.len().min(4)).map_or(&one, |axis| &own[axis]);
    if own.len() > 4 || own.len() < 2 || !at(3).is(width) {
        return None;
    }
    let by_item = !at(0).is(1);
    if by_item && (own.len() != 4 || !facts::same_dim(at(0), &dims[0])) {
        return None;
    }
    let (heads_first, length) = if at(1).is(1) && facts::same_dim(at(2), &dims[2]) {
        (true, at(2))
    } else if at(2).is(1) && facts::same_dim(at(1), &dims[1]) {
        (false, at(1))
    } else {
        return None;
    };
    Some(Angles { heads_first, by_item, length: length.clone() })
}

/// Whether the first half of the last axis is surely the second one too.
fn doubled(graph: &Graph, value: ValueId, farthest: usize) -> bool {
    if let Some(tensor) = facts::plain_constant(graph, value) {
        let Some(&size) = tensor.shape().last() else { return false };
        let bytes = tensor.element().byte_size().unwrap_or(0) * size;
        return bytes > 0
            && size % 2 == 0
            && tensor.len() <= LONGEST
            && tensor.bytes().chunks_exact(bytes).all(|row| row[..bytes / 2] == row[bytes / 2..]);
    }
    let Some((_, node)) = facts::producer(graph, value).filter(|_| farthest > 0) else { return false };
    let Some(input) = node.input(0) else { return false };
    let last = |value: ValueId| facts::dims(graph, value).and_then(<[Dim]>::last).and_then(Dim::fixed);
    let follow = |value: ValueId| doubled(graph, value, farthest - 1);
    match &node.op {
        Op::Unary(_) | Op::Cast(_) => follow(input),
        Op::Binary(_) => match node.input(1) {
            Some(other) if facts::scalar(graph, other).is_some() => follow(input),
            Some(other) if facts::scalar(graph, input).is_some() => follow(other),
            _ => false,
        },
        Op::Unsqueeze(_) | Op::Squeeze(_) | Op::Reshape(_) => {
            last(input).is_some_and(|size| size > 1) && last(input) == last(value) && follow(input)
        }
        Op::Gather(op) => {
            op.axis == 0 && facts::rank(graph, input).is_some_and(|rank| rank > 1) && follow(input)
        }
        Op::Slice(_) => last(input).is_some() && last(input) == last(value) && follow(input),
        Op::Concat(_) => join_of(graph, node, value).is_some_and(|[a, b]| a == b),
        _ => false,
    }
}

/// Angles as the operator takes them: once, and in rows, of each batch item or of all.
fn rows_of_angles(graph: &mut Graph, value: ValueId, angles: &Angles, half: usize) -> ValueId {
    let mut dims = facts::dims(graph, value).unwrap_or_default().to_vec();
    let mut value = value;
    if dims.last().is_some_and(|own| !own.is(half)) {
        let name = rewrite::derived(graph, value, "once");
        let [from, to, axis] = [("from", 0i64), ("to", half as i64), ("axis", dims.len() as i64 - 1)]
            .map(|(end, at)| rewrite::int_vector(graph, format!("{name}_{end}"), &[at]));
        dims.pop();
        dims.push(Dim::Fixed(half));
        let ty: ValueType = TensorType::new(ElementType::F32, dims.clone()).into();
        value = rewrite::insert(graph, name, Slice, &[Some(value), Some(from), Some(to), Some(axis)], ty).1;
    }
    let name = rewrite::derived(graph, value, "rows");
    let rows = [angles.length.clone(), Dim::Fixed(half)];
    if angles.by_item {
        let axis = if angles.heads_first { 1 } else { 2 };
        let axes = rewrite::int_vector(graph, format!("{name}_axes"), &[axis]);
        let ty = TensorType::new(ElementType::F32, [dims[0].clone()].into_iter().chain(rows));
        return rewrite::insert(graph, name, Squeeze, &[Some(value), Some(axes)], ty).1;
    }
    if dims.len() == 2 {
        return value;
    }
    let shape = rewrite::int_vector(graph, format!("{name}_shape"), &[-1, half as i64]);
    let ty = TensorType::new(ElementType::F32, rows);
    rewrite::insert(graph, name, Reshape { allow_zero: false }, &[Some(value), Some(shape)], ty).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::{Concat, Split, UnaryKind, Unsqueeze};
    use crate::passes::testing::{Build, becomes, binary, stays, unary};

    const PASS: &[&str] = &["recognise_rotary_embedding"];
    const JOIN: Concat = Concat { axis: -1 };

    /// Cosines and sines of the same angles twice, or of other angles in the second half.
    fn angles(b: &mut Build, shape: &[usize], twice: bool) -> [ValueId; 2] {
        let angles = b.input("angles", shape);
        let other = if twice { angles } else { b.node("other", unary(UnaryKind::Neg), &[angles]) };
        let both = b.node("both", JOIN, &[angles, other]);
        [("cos", UnaryKind::Cos), ("sin", UnaryKind::Sin)]
            .map(|(name, kind)| b.node(name, unary(kind), &[both]))
    }

    fn slice(b: &mut Build, name: &str, x: ValueId, range: [i64; 2], step: i64) -> ValueId {
        let [from, to, axis, step] = [range[0], range[1], -1, step].map(|number| b.ints(&[number]));
        b.node(name, Slice, &[x, from, to, axis, step])
    }

    fn half_turned(b: &mut Build, x: ValueId, [cos, sin]: [ValueId; 2], middle: i64) -> [ValueId; 2] {
        let second = slice(b, "second", x, [middle, i64::MAX], 1);
        let first = slice(b, "first", x, [0, middle], 1);
        let negative = b.node("negative", unary(UnaryKind::Neg), &[second]);
        let crossed = b.node("crossed", JOIN, &[negative, first]);
        let straight = b.node("straight", binary(BinaryKind::Mul), &[x, cos]);
        let turned = b.node("turned", binary(BinaryKind::Mul), &[sin, crossed]);
        [crossed, b.node("y", binary(BinaryKind::Add), &[straight, turned])]
    }

    #[test]
    fn with_halves_exchanged() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 3, 5, 8]);
        let angles = angles(&mut b, &[5, 4], true);
        let [_, y] = half_turned(&mut b, x, angles, 4);
        becomes!(b.finish(&[y]), PASS, @r"
        graph test
          input x: float32[2,3,5,8]
          input angles: float32[5,4]
          both: float32[5,8] = Concat(angles, angles) axis=-1
          cos: float32[5,8] = Cos(both)
          sin: float32[5,8] = Sin(both)
          cos_once: float32[5,4] = Slice(cos, cos_once_from int64[1] {0}, cos_once_to int64[1] {4}, cos_once_axis int64[1] {1})
          sin_once: float32[5,4] = Slice(sin, sin_once_from int64[1] {0}, sin_once_to int64[1] {4}, sin_once_axis int64[1] {1})
          y: float32[2,3,5,8] = RotaryEmbedding(x, cos_once, sin_once, y_first int64[1] {0}) num_heads=0, rotary_embedding_dim=0, interleaved=0 // y + second + first + negative + crossed + straight + turned
          output y
        ");
    }

    #[test]
    fn of_heads_that_were_beside_each_other() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 5, 24]);
        let shape = b.ints(&[0, 0, 3, 8]);
        let x = b.node("apart", Reshape { allow_zero: false }, &[x, shape]);
        let x = b.node("heads", Transpose { perm: vec![0, 2, 1, 3] }, &[x]);
        let angles = angles(&mut b, &[2, 1, 5, 4], true);
        let [_, y] = half_turned(&mut b, x, angles, 4);
        becomes!(b.finish(&[y]), PASS, @r"
        graph test
          input x: float32[2,5,24]
          input angles: float32[2,1,5,4]
          both: float32[2,1,5,8] = Concat(angles, angles) axis=-1
          cos: float32[2,1,5,8] = Cos(both)
          sin: float32[2,1,5,8] = Sin(both)
          cos_once: float32[2,1,5,4] = Slice(cos, cos_once_from int64[1] {0}, cos_once_to int64[1] {4}, cos_once_axis int64[1] {3})
          cos_once_rows: float32[2,5,4] = Squeeze(cos_once, cos_once_rows_axes int64[1] {1})
          sin_once: float32[2,1,5,4] = Slice(sin, sin_once_from int64[1] {0}, sin_once_to int64[1] {4}, sin_once_axis int64[1] {3})
          sin_once_rows: float32[2,5,4] = Squeeze(sin_once, sin_once_rows_axes int64[1] {1})
          y_turned: float32[2,5,24] = RotaryEmbedding(x, cos_once_rows, sin_once_rows) num_heads=3, rotary_embedding_dim=0, interleaved=0
          y_apart: float32[2,5,3,8] = Reshape(y_turned, y_heads int64[4] {0, 0, 3, 8}) allowzero=0
          y: float32[2,3,5,8] = Transpose(y_apart) perm=[0, 2, 1, 3] // y + apart + heads + second + first + negative + crossed + straight + turned
          output y
        ");
    }

    #[test]
    fn of_heads_that_are_beside_each_other() {
        let mut b = Build::new();
        let x = b.input("x", &[1, 5, 3, 8]);
        let angles = angles(&mut b, &[1, 5, 1, 4], true);
        let [_, y] = half_turned(&mut b, x, angles, 4);
        becomes!(b.finish(&[y]), PASS, @r"
        graph test
          input x: float32[1,5,3,8]
          input angles: float32[1,5,1,4]
          both: float32[1,5,1,8] = Concat(angles, angles) axis=-1
          cos: float32[1,5,1,8] = Cos(both)
          sin: float32[1,5,1,8] = Sin(both)
          x_beside: float32[1,5,24] = Reshape(x, x_beside_shape int64[3] {0, 0, 24}) allowzero=0
          cos_once: float32[1,5,1,4] = Slice(cos, cos_once_from int64[1] {0}, cos_once_to int64[1] {4}, cos_once_axis int64[1] {3})
          cos_once_rows: float32[5,4] = Reshape(cos_once, cos_once_rows_shape int64[2] {-1, 4}) allowzero=0
          sin_once: float32[1,5,1,4] = Slice(sin, sin_once_from int64[1] {0}, sin_once_to int64[1] {4}, sin_once_axis int64[1] {3})
          sin_once_rows: float32[5,4] = Reshape(sin_once, sin_once_rows_shape int64[2] {-1, 4}) allowzero=0
          y_turned: float32[1,5,24] = RotaryEmbedding(x_beside, cos_once_rows, sin_once_rows, y_first int64[1] {0}) num_heads=3, rotary_embedding_dim=0, interleaved=0
          y: float32[1,5,3,8] = Reshape(y_turned, y_heads int64[4] {0, 0, 3, 8}) allowzero=0 // y + second + first + negative + crossed + straight + turned
          output y
        ");
    }

    #[test]
    fn with_halves_turned_apart() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 3, 5, 8]);
        let (cos, sin) = (b.input("cos", &[5, 4]), b.input("sin", &[5, 4]));
        let halves = b.graph.add_value("second", TensorType::unranked(ElementType::F32));
        let first = b.graph.add_value("first", TensorType::unranked(ElementType::F32));
        b.graph.add_node("halves", Split { axis: -1, parts: 2 }, [Some(x)], [Some(first), Some(halves)]);
        let y = apart(&mut b, [first, halves], [cos, sin]);
        let y = b.node("y", JOIN, &y);
        becomes!(b.finish(&[y]), PASS, @r"
        graph test
          input x: float32[2,3,5,8]
          input cos: float32[5,4]
          input sin: float32[5,4]
          y: float32[2,3,5,8] = RotaryEmbedding(x, cos, sin, y_first int64[1] {0}) num_heads=0, rotary_embedding_dim=0, interleaved=0 // y + halves + a + b + c + d + left + right
          output y
        ");
    }

    fn apart(b: &mut Build, [first, second]: [ValueId; 2], [cos, sin]: [ValueId; 2]) -> [ValueId; 2] {
        let mut times = |name: &str, a, angle| b.node(name, binary(BinaryKind::Mul), &[a, angle]);
        let (a, c) = (times("a", first, cos), times("b", second, sin));
        let (d, e) = (times("c", second, cos), times("d", first, sin));
        [b.node("left", binary(BinaryKind::Sub), &[a, c]), b.node("right", binary(BinaryKind::Add), &[d, e])]
    }

    fn every_other(read: bool) -> Graph {
        let mut b = Build::new();
        let x = b.input("x", &[2, 3, 5, 8]);
        let (cos, sin) = (b.input("cos", &[1, 1, 5, 4]), b.input("sin", &[1, 1, 5, 4]));
        let even = slice(&mut b, "even", x, [0, 8], 2);
        let odd = slice(&mut b, "odd", x, [1, 8], 2);
        let parts = apart(&mut b, [even, odd], [cos, sin]);
        let axis = b.ints(&[-1]);
        let wide = parts.map(|part| b.node("wide", Unsqueeze, &[part, axis]));
        let pairs = b.node("pairs", JOIN, &wide);
        let shape = b.ints(&[2, 3, 5, 8]);
        let y = b.node("y", Reshape { allow_zero: false }, &[pairs, shape]);
        if read { b.finish(&[y, parts[0]]) } else { b.finish(&[y]) }
    }

    #[test]
    fn of_every_other_element() {
        becomes!(every_other(false), PASS, @r"
        graph test
          input x: float32[2,3,5,8]
          input cos: float32[1,1,5,4]
          input sin: float32[1,1,5,4]
          cos_rows: float32[5,4] = Reshape(cos, cos_rows_shape int64[2] {-1, 4}) allowzero=0
          sin_rows: float32[5,4] = Reshape(sin, sin_rows_shape int64[2] {-1, 4}) allowzero=0
          y: float32[2,3,5,8] = RotaryEmbedding(x, cos_rows, sin_rows, y_first int64[1] {0}) num_heads=0, rotary_embedding_dim=0, interleaved=1 // y + even + odd + a + b + c + d + left + right + wide + wide + pairs
          output y
        ");
        stays(&every_other(true), PASS);
    }

    #[test]
    fn not_with_other_angles_or_parts() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 3, 5, 8]);
        let two = angles(&mut b, &[5, 4], false);
        let [_, y] = half_turned(&mut b, x, two, 4);
        stays(&b.finish(&[y]), PASS);
        for (middle, shape) in [(3, [5, 4]), (4, [1, 4])] {
            let mut b = Build::new();
            let x = b.input("x", &[2, 3, 5, 8]);
            let two = angles(&mut b, &shape, true);
            let [_, y] = half_turned(&mut b, x, two, middle);
            stays(&b.finish(&[y]), PASS);
        }
    }

    #[test]
    fn not_where_a_value_between_is_read() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 3, 5, 8]);
        let two = angles(&mut b, &[5, 4], true);
        let [crossed, y] = half_turned(&mut b, x, two, 4);
        stays(&b.finish(&[y, crossed]), PASS);
    }
}
