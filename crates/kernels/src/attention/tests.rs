use super::{Attention, Distances, Extras, Mask, MaskValues, Prepared, Rows, Sizes};
use crate::dispatch::variants;
use crate::threads::Team;

fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}

fn plain(heads: usize, rows: usize, size: usize) -> Distances {
    Distances { batch: heads * rows * size, head: rows * size, row: size }
}

/// Heads beside each other in a row.
fn flat(heads: usize, rows: usize, size: usize) -> Distances {
    Distances { batch: heads * rows * size, head: size, row: heads * size }
}

/// The same in obvious loops and double precision.
fn reference(
    attention: &Attention,
    [q, k, v]: [Rows<'_>; 3],
    y: &mut [f64],
    y_distances: Distances,
    extras: Extras<'_>,
) {
    let Attention { sizes, .. } = *attention;
    let group = sizes.query_heads / sizes.key_heads;
    for batch in 0..sizes.batch {
        let (offset, count) = (extras.places)(batch);
        for head in 0..sizes.query_heads {
            for query in 0..sizes.queries {
                let at = offset + query as i64;
                let mut weights = vec![0.0; sizes.keys];
                for (key, weight) in weights.iter_mut().enumerate() {
                    let product: f64 = (0..sizes.head_size)
                        .map(|i| {
                            let q = q.data[q.distances.at(batch, head, query) + i];
                            f64::from(q) * f64::from(k.data[k.distances.at(batch, head / group, key) + i])
                        })
                        .sum();
                    let mut score = product * f64::from(attention.scale);
                    if attention.softcap > 0.0 {
                        let cap = f64::from(attention.softcap);
                        score = cap * (score / cap).tanh();
                    }
                    let far = |limit: Option<usize>, distance: i64| {
                        limit.is_some_and(|limit| distance > limit as i64 && distance > 0)
                    };
                    let mut shown = key < count
                        && (!attention.causal || key as i64 <= at)
                        && !far(attention.left, at - key as i64)
                        && !far(attention.right, key as i64 - at);
                    if let Some(mask) = &extras.mask {
                        let at = mask.distances.at(batch, head, query) + key;
                        match mask.values {
                            _ if key >= mask.keys => shown = false,
                            MaskValues::Added(values) => score += f64::from(values[at]),
                            MaskValues::Shown(values) => shown &= values[at] != 0,
                        }
                    }
                    *weight = if shown { score } else { f64::NEG_INFINITY };
                }
                let largest = weights.iter().fold(f64::NEG_INFINITY, |most, w| most.max(*w));
                let start = y_distances.at(batch, head, query);
                let y = &mut y[start..start + sizes.value_size];
                y.fill(0.0);
                if largest == f64::NEG_INFINITY {
                    continue;
                }
                let sink = extras.sinks.map_or(0.0, |sinks| (f64::from(sinks[head]) - largest).exp());
                let sum: f64 = weights.iter().map(|w| (w - largest).exp()).sum::<f64>() + sink;
                for (key, weight) in weights.iter().enumerate() {
                    let weight = (weight - largest).exp() / sum;
                    let v = &v.data[v.distances.at(batch, head / group, key)..];
                    y.iter_mut().zip(v).for_each(|(y, v)| *y += weight * f64::from(*v));
                }
            }
        }
    }
}

/// Compares all kernels, layouts and teams on one problem.
fn hold(attention: Attention, mask: Option<(MaskValues<'_>, Distances, usize)>, offset: i64, sinks: bool) {
    let sizes = attention.sizes;
    let Sizes { batch, query_heads, key_heads, queries, keys, head_size, value_size } = sizes;
    let q = numbers(batch * query_heads * queries * head_size, 1);
    let k = numbers(batch * key_heads * keys * head_size, 2);
    let v = numbers(batch * key_heads * keys * value_size, 3);
    let sinks = sinks.then(|| numbers(query_heads, 4));
    let places = |item: usize| (offset, keys - item.min(keys));
    for layout in [plain, flat] {
        let rows = |data, heads, count, size| Rows { data, distances: layout(heads, count, size) };
        let operands = [
            rows(&q[..], query_heads, queries, head_size),
            rows(&k[..], key_heads, keys, head_size),
            rows(&v[..], key_heads, keys, value_size),
        ];
        let y_distances = layout(query_heads, queries, value_size);
        let mask = mask.map(|(values, distances, keys)| Mask { values, distances, keys });
        let extras = Extras { mask, places: &places, sinks: sinks.as_deref() };
        let count = batch * query_heads * queries * value_size;
        let mut wanted = vec![0.0; count];
        reference(&attention, operands, &mut wanted, y_distances, extras);
        for isas in variants() {
            for threads in [1, 3] {
                let team = Team::new(threads);
                let prepared = Prepared::new(isas, attention);
                let mut scratch = vec![f32::NAN; prepared.scratch_len(threads)];
                let mut y = vec![f32::NAN; count];
                prepared.run(&team, operands, &mut y, y_distances, extras, &mut scratch);
                for (index, (found, wanted)) in y.iter().zip(&wanted).enumerate() {
                    assert!(
                        (f64::from(*found) - wanted).abs() < 2e-5,
                        "{attention:?} {isas} {threads} threads: {index} is {found}, not {wanted}"
                    );
                }
            }
        }
    }
}

fn attention(
    [batch, query_heads, key_heads]: [usize; 3],
    [queries, keys]: [usize; 2],
    [head_size, value_size]: [usize; 2],
) -> Attention {
    Attention {
        sizes: Sizes { batch, query_heads, key_heads, queries, keys, head_size, value_size },
        scale: 0.4,
        softcap: 0.0,
        causal: false,
        left: None,
        right: None,
    }
}

#[test]
fn of_odd_sizes() {
    for heads in [[1, 1, 1], [2, 3, 3], [2, 4, 2], [1, 6, 1]] {
        for lengths in [[1, 1], [1, 37], [3, 70], [17, 5], [64, 64], [130, 131], [2, 0]] {
            for sizes in [[1, 1], [8, 16], [33, 7], [64, 64]] {
                hold(attention(heads, lengths, sizes), None, 0, false);
            }
        }
    }
}

#[test]
fn of_keys_that_are_seen() {
    for lengths in [[1, 40], [2, 40], [70, 90]] {
        let plain = attention([2, 4, 2], lengths, [16, 8]);
        let offset = lengths[1] as i64 - lengths[0] as i64;
        for window in [None, Some(0), Some(5), Some(1000)] {
            hold(Attention { causal: true, left: window, ..plain }, None, offset, false);
            hold(Attention { left: window, right: window, ..plain }, None, offset, true);
            hold(Attention { causal: true, softcap: 2.0, ..plain }, None, -3, true);
        }
    }
}

#[test]
fn of_masks() {
    for queries in [1, 3, 20] {
        let keys = 19;
        let added = numbers(2 * 4 * queries * keys, 9);
        let mut hidden = added.clone();
        hidden[..keys].fill(f32::NEG_INFINITY);
        let shown: Vec<u8> = added.iter().map(|v| u8::from(*v > 0.0)).collect();
        let whole = Distances { batch: 4 * queries * keys, head: queries * keys, row: keys };
        let shared = Distances { batch: keys, head: 0, row: 0 };
        for values in [MaskValues::Added(&added), MaskValues::Added(&hidden), MaskValues::Shown(&shown)] {
            for distances in [whole, shared] {
                for told in [keys, 7] {
                    let problem = attention([2, 4, 2], [queries, keys], [8, 8]);
                    hold(problem, Some((values, distances, told)), 0, false);
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "rows of the result must not overlap")]
fn results_that_meet_are_refused() {
    let problem = attention([1, 2, 2], [3, 3], [4, 4]);
    let data = vec![0.0; 24];
    let rows = Rows { data: &data, distances: plain(2, 3, 4) };
    let prepared = Prepared::new(variants()[0], problem);
    let mut scratch = vec![0.0; prepared.scratch_len(1)];
    let places = |_| (0, 3);
    let extras = Extras { mask: None, places: &places, sinks: None };
    let meeting = Distances { batch: 24, head: 2, row: 4 };
    prepared.run(&Team::new(1), [rows; 3], &mut [0.0; 24], meeting, extras, &mut scratch);
}
