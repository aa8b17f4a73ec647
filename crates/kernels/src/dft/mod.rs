//! Discrete Fourier transforms of lines of a tensor.
//!
//! A length is divided into its prime factors, fours taken together; each factor is a level of butterflies, so a length
//! of small factors costs about `n log n` and a prime one `n^2`. Two lines of real numbers are transformed as one of
//! complex ones. Numbers are pairs of real and imaginary part.

#![expect(unsafe_code, reason = "lines of the output and scratch memory are handed to tasks")]

#[cfg(test)]
mod tests;

use crate::threads::{DisjointMut, Team};

/// Numbers worth a task of their own.
const GRAIN: usize = 4 * 1024;

type Complex = [f32; 2];

#[inline(always)]
fn multiply([a, b]: Complex, [c, d]: Complex) -> Complex {
    [a * c - b * d, a * d + b * c]
}

/// What is transformed, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lines {
    /// Slices before the axis.
    pub outer: usize,
    /// Length of the axis in the data.
    pub len: usize,
    /// Numbers in one entry of the axis.
    pub inner: usize,
    /// The data are complex.
    pub complex: bool,
    /// Length of the transform: data are cut, or filled up with zeros.
    pub n: usize,
    /// From frequencies to a signal.
    pub inverse: bool,
    /// The signal is real, and only the first half of the frequencies is given or read.
    pub onesided: bool,
}

/// A transform prepared for lines of one length.
#[derive(Debug, Clone)]
pub struct Dft {
    lines: Lines,
    /// The product is the length.
    factors: Vec<usize>,
    /// The unit circle in steps of one `n`-th, in the transform's direction.
    turns: Vec<Complex>,
}

/// Fours, then the prime factors.
fn factors(mut n: usize) -> Vec<usize> {
    let mut factors = Vec::new();
    while n.is_multiple_of(4) && n > 0 {
        factors.push(4);
        n /= 4;
    }
    let mut candidate = 2;
    while n > 1 {
        if candidate * candidate > n {
            candidate = n;
        }
        while n.is_multiple_of(candidate) {
            factors.push(candidate);
            n /= candidate;
        }
        candidate += 1;
    }
    factors
}

impl Dft {
    /// Prepares a transform.
    pub fn new(lines: Lines) -> Self {
        let direction = if lines.inverse { 1.0 } else { -1.0 };
        let turn = |i: usize| {
            let (sin, cos) = (std::f64::consts::TAU * i as f64 / lines.n as f64).sin_cos();
            [cos as f32, (direction * sin) as f32]
        };
        Self { lines, factors: factors(lines.n), turns: (0..lines.n).map(turn).collect() }
    }

    /// Entries of the result along the axis.
    fn count(&self) -> usize {
        if self.lines.onesided && !self.lines.inverse { self.lines.n / 2 + 1 } else { self.lines.n }
    }

    /// Whether results are real numbers.
    fn gives_real(&self) -> bool {
        self.lines.onesided && self.lines.inverse
    }

    /// Numbers of scratch memory for a team of so many threads.
    pub fn scratch_length(&self, threads: usize) -> usize {
        6 * self.lines.n * threads
    }

    /// Transforms all lines.
    ///
    /// # Panics
    /// When a slice does not have the length that the sizes imply.
    pub fn run(&self, team: &Team, x: &[f32], y: &mut [f32], scratch: &mut [f32]) {
        let Lines { outer, len, inner, complex, n, .. } = self.lines;
        let (parts, result_parts) = (if complex { 2 } else { 1 }, if self.gives_real() { 1 } else { 2 });
        let count = self.count();
        assert_eq!(x.len(), outer * len * inner * parts, "the input's length differs from its shape's");
        assert_eq!(
            y.len(),
            outer * count * inner * result_parts,
            "the output's length differs from its shape's"
        );
        assert!(scratch.len() >= self.scratch_length(team.threads()), "the scratch memory is too small");
        if n == 0 || y.is_empty() {
            y.fill(0.0);
            return;
        }
        // Real lines go in pairs.
        let together = if complex { 1 } else { 2 };
        let lines = outer * inner;
        let tasks = lines.div_ceil(together);
        let step = GRAIN.div_ceil(n.max(1)).max(tasks.div_ceil(team.threads() * 4));
        let output = DisjointMut::new(y);
        let scratch = DisjointMut::new(scratch);
        team.run_with_thread(tasks.div_ceil(step), &|thread, task| {
            // SAFETY: every thread has a part of its own, and runs one task at a time.
            let own = unsafe { scratch.slice_mut(thread * 6 * n, 6 * n) };
            let (source, rest) = own.as_chunks_mut::<2>().0.split_at_mut(n);
            let (result, spare) = rest.split_at_mut(n);
            for first in task * step..((task + 1) * step).min(tasks) {
                let first = first * together;
                let second = (!complex && first + 1 < lines).then_some(first + 1);
                self.read(x, first, second, source);
                self.transform(result, source, (1, &self.factors, 1), spare);
                for (line, imaginary) in [(Some(first), false), (second, true)] {
                    let Some(line) = line else { continue };
                    for k in 0..count {
                        let at = ((line / inner * count + k) * inner + line % inner) * result_parts;
                        // SAFETY: every line belongs to one task.
                        let y = unsafe { output.slice_mut(at, result_parts) };
                        y.copy_from_slice(
                            &self.result(result, k, second.is_some(), imaginary)[..result_parts],
                        );
                    }
                }
            }
        });
    }

    /// Puts a line, or two real ones as real and imaginary parts, into `source`.
    fn read(&self, x: &[f32], first: usize, second: Option<usize>, source: &mut [Complex]) {
        let Lines { len, inner, complex, n, .. } = self.lines;
        let place = |line: usize, m: usize| (line / inner * len + m) * inner + line % inner;
        let wanted = if self.gives_real() { n / 2 + 1 } else { n };
        let read = wanted.min(len);
        for (m, number) in source[..read].iter_mut().enumerate() {
            *number = if complex {
                let at = 2 * place(first, m);
                [x[at], x[at + 1]]
            } else {
                [x[place(first, m)], second.map_or(0.0, |line| x[place(line, m)])]
            };
        }
        source[read..].fill([0.0; 2]);
        if self.gives_real() {
            // The frequencies of a real signal that are not given mirror those that are. Real frequencies come in pairs
            // of lines, which would each need a signal of their own.
            source[0][1] = 0.0;
            if n.is_multiple_of(2) {
                source[n / 2][1] = 0.0;
            }
            for m in 1..n.div_ceil(2) {
                let [real, imaginary] = source[m];
                source[n - m] = [real, -imaginary];
            }
        }
    }

    /// Number `k` of the result of a line.
    fn result(&self, result: &[Complex], k: usize, paired: bool, imaginary: bool) -> Complex {
        let n = self.lines.n;
        let [mut real, mut other] = result[k];
        if paired {
            // The transform of a real line is its own mirror image, so the two can be told apart.
            let [mirror_real, mirror_imaginary] = result[(n - k) % n];
            (real, other) = if imaginary {
                (0.5 * (other + mirror_imaginary), 0.5 * (mirror_real - real))
            } else {
                (0.5 * (real + mirror_real), 0.5 * (other - mirror_imaginary))
            };
        }
        let scale = if self.lines.inverse { 1.0 / n as f32 } else { 1.0 };
        [real * scale, other * scale]
    }

    /// The transform of every `stride`-th number of `source`, as many as the product of the factors; `turn` steps of the
    /// unit circle are one of this length.
    fn transform(
        &self,
        result: &mut [Complex],
        source: &[Complex],
        (stride, factors, turn): (usize, &[usize], usize),
        spare: &mut [Complex],
    ) {
        let Some((&radix, rest)) = factors.split_first() else {
            result[0] = source[0];
            return;
        };
        let part = result.len() / radix;
        for (index, result) in result.chunks_exact_mut(part).enumerate() {
            self.transform(result, &source[index * stride..], (stride * radix, rest, turn * radix), spare);
        }
        match radix {
            2 => {
                let (low, high) = result.split_at_mut(part);
                for (k, (a, b)) in low.iter_mut().zip(high).enumerate() {
                    let turned = multiply(*b, self.turns[k * turn]);
                    *b = [a[0] - turned[0], a[1] - turned[1]];
                    *a = [a[0] + turned[0], a[1] + turned[1]];
                }
            }
            4 => self.fours(result, turn),
            _ => self.level(result, radix, turn, spare),
        }
    }

    /// Butterflies of four.
    fn fours(&self, result: &mut [Complex], turn: usize) {
        let part = result.len() / 4;
        let (low, high) = result.split_at_mut(2 * part);
        let ((first, second), (third, fourth)) = (low.split_at_mut(part), high.split_at_mut(part));
        // A quarter turn in the transform's direction.
        let quarter = if self.lines.inverse { 1.0 } else { -1.0 };
        let numbers = first.iter_mut().zip(second).zip(third.iter_mut().zip(fourth));
        for (k, ((a, b), (c, d))) in numbers.enumerate() {
            let (x, y, z) = (
                multiply(*b, self.turns[k * turn]),
                multiply(*c, self.turns[2 * k * turn]),
                multiply(*d, self.turns[3 * k * turn]),
            );
            let (even, odd) = ([a[0] + y[0], a[1] + y[1]], [a[0] - y[0], a[1] - y[1]]);
            let sum = [x[0] + z[0], x[1] + z[1]];
            let turned = [-quarter * (x[1] - z[1]), quarter * (x[0] - z[0])];
            *a = [even[0] + sum[0], even[1] + sum[1]];
            *b = [odd[0] + turned[0], odd[1] + turned[1]];
            *c = [even[0] - sum[0], even[1] - sum[1]];
            *d = [odd[0] - turned[0], odd[1] - turned[1]];
        }
    }

    /// Butterflies of any size.
    fn level(&self, result: &mut [Complex], radix: usize, turn: usize, spare: &mut [Complex]) {
        let (length, part, n) = (result.len(), result.len() / radix, self.lines.n);
        let inputs = &mut spare[..radix];
        for k in 0..part {
            for (index, input) in inputs.iter_mut().enumerate() {
                *input = multiply(result[index * part + k], self.turns[index * k * turn]);
            }
            for output in 0..radix {
                // One step of the small transform is `part` steps of this one.
                let step = output * part % length * turn;
                let (mut sum, mut at) = ([0.0; 2], 0);
                for input in &*inputs {
                    let [real, imaginary] = multiply(*input, self.turns[at]);
                    sum = [sum[0] + real, sum[1] + imaginary];
                    at += step;
                    if at >= n {
                        at -= n;
                    }
                }
                result[output * part + k] = sum;
            }
        }
    }
}
