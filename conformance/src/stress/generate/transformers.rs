//! What language and vision models are made of, as exporters spell it.

use armet_graph::ops::{
    Binary, BinaryKind, Concat, Expand, MatMul, Reduce, ReduceKind, Reshape, Slice, Softmax, Split,
    Transpose, Unary, UnaryKind, Unsqueeze, Where,
};
use armet_tensor::{ElementType, Tensor};

use super::Builder;

const PLAIN: MatMul = MatMul { transpose_a: false, transpose_b: false, alpha: 1.0, activation: None };

fn binary(kind: BinaryKind) -> Binary {
    Binary { kind }
}

fn unary(kind: UnaryKind) -> Unary {
    Unary { kind }
}

impl Builder {
    fn ints(&mut self, numbers: &[i64]) -> usize {
        self.add_constant(Tensor::vector(numbers))
    }

    fn coin(&mut self) -> bool {
        self.random.int(0, 1) == 0
    }

    fn transpose(&mut self, x: usize, perm: &[usize]) -> Option<usize> {
        self.one(Transpose { perm: perm.to_vec() }, &[x])
    }

    fn reshape(&mut self, x: usize, shape: &[i64]) -> Option<usize> {
        let shape = self.ints(shape);
        self.one(Reshape { allow_zero: false }, &[x, shape])
    }

    /// Heads of a value `[batch, length, width]`, apart; another value now and then lies so already.
    fn heads(&mut self, batch: usize, heads: usize, length: usize, size: usize) -> Option<usize> {
        if self.random.int(0, 3) == 0 {
            let value = self.quarters(&[batch, heads, length, size]);
            return Some(self.add_input(value));
        }
        let value = self.quarters(&[batch, length, heads * size]);
        let x = self.add_input(value);
        let apart = self.reshape(x, &[0, 0, heads as i64, size as i64])?;
        self.transpose(apart, &[0, 2, 1, 3])
    }

    /// Heads repeated for each of several.
    fn repeated(&mut self, x: usize, times: usize) -> Option<usize> {
        let [batch, heads, length, size] = <[usize; 4]>::try_from(self.shape(x)).ok()?;
        let axis = self.ints(&[2]);
        let x = self.one(Unsqueeze, &[x, axis])?;
        let wide = [batch, heads, times, length, size].map(|n| n as i64);
        let shape = self.ints(&wide);
        let x = self.one(Expand, &[x, shape])?;
        self.reshape(x, &[batch as i64, (heads * times) as i64, length as i64, size as i64])
    }

    /// Attention over heads, with a factor at one of its places and perhaps a mask.
    pub(super) fn attention(&mut self) -> Option<()> {
        let (batch, heads, size) = (self.pick(&[1, 2]), self.pick(&[1, 2, 4]), self.pick(&[2, 4, 8]));
        let (queries, keys) = (self.pick(&[1, 3, 6, 20]), self.pick(&[1, 4, 5, 18]));
        let times = if heads == 4 && self.coin() { 2 } else { 1 };
        let mut q = self.heads(batch, heads, queries, size)?;
        let mut k = self.heads(batch, heads / times, keys, size)?;
        let mut v = self.heads(batch, heads / times, keys, size)?;
        if self.coin() {
            q = self.turned(q).unwrap_or(q);
        }
        if times > 1 {
            (k, v) = (self.repeated(k, times)?, self.repeated(v, times)?);
        }
        let place = self.random.int(0, 2);
        let factor = self.number(0.5);
        if place == 0 {
            q = self.one(binary(BinaryKind::Mul), &[q, factor])?;
            k = self.one(binary(BinaryKind::Mul), &[k, factor])?;
        }
        let columns = self.transpose(k, &[0, 1, 3, 2])?;
        let mut scores = self.one(PLAIN, &[q, columns])?;
        if place == 1 {
            let root = self.number(2.0);
            scores = self.one(binary(BinaryKind::Div), &[scores, root])?;
        }
        let shape =
            *self.pick(&[&[1, 1, queries, keys], &[batch, 1, 1, keys], &[batch, heads, queries, keys]]);
        match self.random.int(0, 3) {
            0 => {
                let mask = self.quarters(&shape);
                let mask = self.add_input(mask);
                scores = self.one(binary(BinaryKind::Add), &[mask, scores])?;
            }
            1 => {
                // The first key is always seen: what no key is seen by has no meaning before.
                let shown = (0..shape.iter().product())
                    .map(|i: usize| u8::from(i.is_multiple_of(keys) || self.random.int(0, 2) > 0))
                    .collect::<Vec<u8>>();
                let shown = Tensor::from_bytes(ElementType::Bool, shape, &shown).ok()?;
                let shown = self.add_constant(shown);
                let low = self.number(f32::MIN);
                let inputs = [Some(shown), Some(scores), Some(low)];
                scores = *self.sure_node(Where.into(), &inputs, 1)?.first()?;
            }
            _ => {}
        }
        let weights = self.one(Softmax { axis: -1, log: false, flatten: false }, &[scores])?;
        let y = self.one(PLAIN, &[weights, v])?;
        if self.coin() {
            let y = self.transpose(y, &[0, 2, 1, 3])?;
            self.reshape(y, &[batch as i64, queries as i64, (heads * size) as i64])?;
        }
        Some(())
    }

    /// Rotary embedding in one of its spellings.
    pub(super) fn turned(&mut self, x: usize) -> Option<usize> {
        let [batch, _, length, size] = <[usize; 4]>::try_from(self.shape(x)).ok()?;
        if size % 2 != 0 {
            return None;
        }
        let half = size / 2;
        let angles = [&[length, half][..], &[1, 1, length, half], &[batch, 1, length, half]];
        let shape = self.pick(&angles);
        let angles = self.quarters(shape);
        let angles = self.add_input(angles);
        let kind = self.random.int(0, 2);
        let join = Concat { axis: -1 };
        let angles = if kind == 0 { self.one(join.clone(), &[angles, angles])? } else { angles };
        let cos = self.one(unary(UnaryKind::Cos), &[angles])?;
        let sin = self.one(unary(UnaryKind::Sin), &[angles])?;
        let slice = |b: &mut Self, from: i64, to: i64, step: i64| {
            let [from, to, axis, step] = [from, to, 3, step].map(|number| b.ints(&[number]));
            b.one(Slice, &[x, from, to, axis, step])
        };
        let (middle, end) = (half as i64, size as i64);
        let [first, second] = match kind {
            2 => [slice(self, 0, end, 2)?, slice(self, 1, end, 2)?],
            1 => <[usize; 2]>::try_from(self.node(Split { axis: 3, parts: 2 }, &[Some(x)], 2)?).ok()?,
            _ => [slice(self, 0, middle, 1)?, slice(self, middle, i64::MAX, 1)?],
        };
        let times = |b: &mut Self, a: usize, angle: usize| b.one(binary(BinaryKind::Mul), &[a, angle]);
        if kind == 0 {
            let negative = self.one(unary(UnaryKind::Neg), &[second])?;
            let crossed = self.one(join, &[negative, first])?;
            let (a, b) = (times(self, x, cos)?, times(self, crossed, sin)?);
            return self.one(binary(BinaryKind::Add), &[a, b]);
        }
        let (a, b) = (times(self, first, cos)?, times(self, second, sin)?);
        let left = self.one(binary(BinaryKind::Sub), &[a, b])?;
        let (a, b) = (times(self, first, sin)?, times(self, second, cos)?);
        let right = self.one(binary(BinaryKind::Add), &[a, b])?;
        if kind == 1 {
            return self.one(join, &[left, right]);
        }
        let axis = self.ints(&[-1]);
        let (left, right) = (self.one(Unsqueeze, &[left, axis])?, self.one(Unsqueeze, &[right, axis])?);
        let pairs = self.one(join, &[left, right])?;
        let shape: Vec<i64> = self.shape(x).iter().map(|n| *n as i64).collect();
        self.reshape(pairs, &shape)
    }

    /// A normalization without a mean, in one of its spellings.
    pub(super) fn root_mean_square(&mut self, x: usize) -> Option<usize> {
        let last = *self.shape(x).last()?;
        let axes = self.ints(&[-1]);
        let square = if self.coin() {
            self.one(binary(BinaryKind::Mul), &[x, x])?
        } else {
            let two = self.number(2.0);
            self.one(binary(BinaryKind::Pow), &[x, two])?
        };
        let mean = Reduce { kind: ReduceKind::Mean, keep_dims: true, noop_with_empty_axes: false };
        let mean = self.one(mean, &[square, axes])?;
        let epsilon = self.number(1e-2);
        let sum = self.one(binary(BinaryKind::Add), &[mean, epsilon])?;
        let sure = |b: &mut Self, kind, x| Some(*b.sure_node(unary(kind).into(), &[Some(x)], 1)?.first()?);
        let root = sure(self, UnaryKind::Sqrt, sum)?;
        let unit = if self.coin() {
            let inverse = sure(self, UnaryKind::Reciprocal, root)?;
            self.one(binary(BinaryKind::Mul), &[x, inverse])?
        } else {
            self.one(binary(BinaryKind::Div), &[x, root])?
        };
        let scale = self.weights(&[last]);
        self.one(binary(BinaryKind::Mul), &[scale, unit])
    }

    /// Channels of groups exchanged.
    pub(super) fn shuffled(&mut self, x: usize) -> Option<usize> {
        let [batch, channels, height, width] = <[usize; 4]>::try_from(self.shape(x)).ok()?;
        let groups = self.pick(&[2, 4]);
        if channels % groups != 0 {
            return None;
        }
        let [n, c, h, w, g] = [batch, channels, height, width, groups].map(|n| n as i64);
        let apart = self.reshape(x, &[n, g, c / g, h, w])?;
        let turned = self.transpose(apart, &[0, 2, 1, 3, 4])?;
        self.reshape(turned, &[n, c, h, w])
    }
}
