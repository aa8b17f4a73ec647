use proptest::prelude::{Just, Strategy, any, prop, prop_assert_eq, proptest};

use super::pad::source;
use super::{
    Concatenation, Expansion, LayoutError, Pad, PadMode, Permutation, Slice, StridedCopy, Tiling, reference,
    row_major,
};
use crate::threads::Team;

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|index| (index * 37 + index / 251 + 11) as u8).collect()
}

fn count(shape: &[usize]) -> usize {
    shape.iter().product()
}

fn signed(strides: &[usize]) -> Vec<isize> {
    strides.iter().map(|&stride| stride as isize).collect()
}

fn permute_by_reference(shape: &[usize], perm: &[usize], size: usize, x: &[u8]) -> Vec<u8> {
    let strides = row_major(shape, size).unwrap();
    let extents: Vec<usize> = perm.iter().map(|&axis| shape[axis]).collect();
    let from: Vec<isize> = perm.iter().map(|&axis| strides[axis] as isize).collect();
    let to = signed(&row_major(&extents, size).unwrap());
    let mut y = vec![0; x.len()];
    reference::strided_copy(size, &extents, &from, &to, x, &mut y);
    y
}

fn shape_and_permutation(extent: usize) -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
    prop::collection::vec(1..extent, 0..6).prop_flat_map(|shape| {
        let axes: Vec<usize> = (0..shape.len()).collect();
        (Just(shape), Just(axes).prop_shuffle())
    })
}

proptest! {
    #[test]
    fn permutation_equals_reference(
        (shape, perm) in shape_and_permutation(9),
        size in prop::sample::select(vec![1_usize, 2, 3, 4, 8, 16]),
        threads in 1_usize..3,
    ) {
        let x = bytes(count(&shape) * size);
        let mut y = vec![0; x.len()];
        Permutation::new(&shape, &perm, size).unwrap().run(&Team::new(threads), &x, &mut y);
        prop_assert_eq!(y, permute_by_reference(&shape, &perm, size, &x));
    }

    #[test]
    fn slice_equals_reference(
        shape in prop::collection::vec(1_usize..9, 1..5),
        seeds in prop::collection::vec((any::<u8>(), -3_isize..4, any::<u8>()), 5),
        size in prop::sample::select(vec![1_usize, 4, 8]),
    ) {
        let (mut starts, mut steps, mut extents) = (Vec::new(), Vec::new(), Vec::new());
        for (axis, &extent) in shape.iter().enumerate() {
            let (start, step, many) = seeds[axis];
            let step = if step == 0 { 1 } else { step };
            let start = start as usize % extent;
            let most = if step > 0 { (extent - 1 - start) / step as usize } else { start / step.unsigned_abs() } + 1;
            starts.push(start);
            steps.push(step);
            extents.push(many as usize % most + 1);
        }
        let x = bytes(count(&shape) * size);
        let mut y = vec![0; count(&extents) * size];
        Slice::new(&shape, &starts, &steps, &extents, size).unwrap().run(&Team::single(), &x, &mut y);
        let strides = row_major(&shape, 1).unwrap();
        for flat in 0..count(&extents) {
            let (mut rest, mut from) = (flat, 0);
            for axis in (0..shape.len()).rev() {
                let index = starts[axis] as isize + (rest % extents[axis]) as isize * steps[axis];
                rest /= extents[axis];
                from += index as usize * strides[axis];
            }
            prop_assert_eq!(&y[flat * size..(flat + 1) * size], &x[from * size..(from + 1) * size]);
        }
    }

    #[test]
    fn tiling_and_expansion_equal_their_meaning(
        shape in prop::collection::vec((1_usize..6, 0_usize..4), 1..5),
        size in prop::sample::select(vec![1_usize, 2, 4]),
    ) {
        let (shape, repeats): (Vec<usize>, Vec<usize>) = shape.into_iter().unzip();
        let x = bytes(count(&shape) * size);
        let output: Vec<usize> = shape.iter().zip(&repeats).map(|(e, r)| e * r).collect();
        let strides = row_major(&shape, 1).unwrap();
        let expected: Vec<u8> = (0..count(&output))
            .flat_map(|flat| {
                let (mut rest, mut from) = (flat, 0);
                for axis in (0..shape.len()).rev() {
                    from += rest % output[axis] % shape[axis] * strides[axis];
                    rest /= output[axis];
                }
                x[from * size..(from + 1) * size].to_vec()
            })
            .collect();
        let mut y = vec![0; expected.len()];
        Tiling::new(&shape, &repeats, size).unwrap().run(&Team::new(2), &x, &mut y);
        prop_assert_eq!(&y, &expected);

        // Expanding is tiling where extents are one.
        let ones: Vec<usize> = shape.iter().zip(&repeats).map(|(&e, &r)| if r == 1 { e } else { 1 }).collect();
        let target: Vec<usize> = ones.iter().zip(&repeats).map(|(e, r)| e * r).collect();
        let (mut tiled, mut expanded) = (vec![0; count(&target) * size], vec![1; count(&target) * size]);
        Tiling::new(&ones, &repeats, size).unwrap().run(&Team::single(), &x, &mut tiled);
        Expansion::new(&ones, &target, size).unwrap().run(&Team::single(), &x, &mut expanded);
        prop_assert_eq!(tiled, expanded);
    }

    #[test]
    fn pad_equals_its_meaning(
        axes in prop::collection::vec((1_usize..6, -2_isize..8, -2_isize..8), 1..5),
        mode in prop::sample::select(vec![PadMode::Constant, PadMode::Edge, PadMode::Reflect, PadMode::Wrap]),
        size in prop::sample::select(vec![1_usize, 4, 8]),
    ) {
        let shape: Vec<usize> = axes.iter().map(|axis| axis.0).collect();
        let before: Vec<isize> = axes.iter().map(|axis| axis.1).collect();
        let after: Vec<isize> = axes.iter().map(|axis| axis.2.max(-(axis.0 as isize) - axis.1)).collect();
        let output = Pad::output_shape(&shape, &before, &after).unwrap();
        let x = bytes(count(&shape) * size);
        let fill: Vec<u8> = (200..).take(size).collect();
        let strides = row_major(&shape, 1).unwrap();
        let expected: Vec<u8> = (0..count(&output))
            .flat_map(|flat| {
                let (mut rest, mut from) = (flat, Some(0));
                for axis in (0..shape.len()).rev() {
                    let (before, after) = (before[axis], after[axis]);
                    let index = source((rest % output[axis]) as isize - before, shape[axis], before, after, mode);
                    rest /= output[axis];
                    from = from.filter(|_| index != usize::MAX).map(|from| from + index * strides[axis]);
                }
                from.map_or(fill.clone(), |from| x[from * size..(from + 1) * size].to_vec())
            })
            .collect();
        let mut y = vec![0; expected.len()];
        let pad = Pad::new(&shape, &before, &after, mode, size);
        let left = |axis: usize| shape[axis] as isize > (-before[axis]).max(0) + (-after[axis]).max(0);
        if mode != PadMode::Constant && !y.is_empty() && !(0..shape.len()).all(left) {
            prop_assert_eq!(pad.err().map(|_| ()), Some(()), "there is nothing to take elements from");
            return Ok(());
        }
        pad.unwrap().run(&Team::new(2), &x, &fill, &mut y);
        prop_assert_eq!(y, expected);
    }
}

#[test]
fn large_transpositions_equal_reference() {
    let team = Team::new(2);
    for (shape, perm) in [
        (vec![2, 70, 33, 41], vec![0, 2, 3, 1]),
        (vec![2, 33, 41, 70], vec![0, 3, 1, 2]),
        (vec![3, 224, 224], vec![1, 2, 0]),
        (vec![130, 64, 12], vec![1, 0, 2]),
        (vec![257, 129], vec![1, 0]),
        (vec![4, 5, 6, 7, 8, 9], vec![5, 1, 3, 2, 0, 4]),
    ] {
        for size in [1, 2, 4, 8] {
            let x = bytes(count(&shape) * size);
            let mut y = vec![0; x.len()];
            Permutation::new(&shape, &perm, size).unwrap().run(&team, &x, &mut y);
            assert_eq!(y, permute_by_reference(&shape, &perm, size, &x), "{shape:?} {perm:?} {size}");
        }
    }
}

#[test]
fn source_indices_are_those_of_numpy() {
    let indices = |mode| (-5..9).map(|index| source(index, 4, 5, 5, mode)).collect::<Vec<_>>();
    assert_eq!(indices(PadMode::Edge), [0, 0, 0, 0, 0, 0, 1, 2, 3, 3, 3, 3, 3, 3]);
    assert_eq!(indices(PadMode::Reflect), [1, 2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0, 1, 2]);
    assert_eq!(indices(PadMode::Wrap), [3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0]);
}

#[test]
fn what_is_cropped_is_gone_before_anything_is_taken() {
    // Of 0 1 2 3 4 5 6 the ends are cropped; numpy pads what is left.
    let padded = |before: isize, after: isize, mode| {
        let end = 7 + before + after;
        (0..end).map(|index| source(index - before, 7, before, after, mode)).collect::<Vec<_>>()
    };
    assert_eq!(padded(2, -1, PadMode::Wrap), [4, 5, 0, 1, 2, 3, 4, 5]);
    assert_eq!(padded(-1, 2, PadMode::Wrap), [1, 2, 3, 4, 5, 6, 1, 2]);
    assert_eq!(padded(2, -5, PadMode::Reflect), [0, 1, 0, 1]);
    assert_eq!(padded(-5, 3, PadMode::Edge), [5, 6, 6, 6, 6]);
}

#[test]
fn concatenation_puts_pieces_side_by_side() {
    let team = Team::single();
    let (a, b, c) = (bytes(2 * 3 * 4), bytes(2 * 4), bytes(2 * 2 * 4));
    let concatenation = Concatenation::new(&[2, 0, 4], 1, &[3, 1, 2], 1).unwrap();
    assert_eq!(concatenation.pieces(), 3);
    let mut y = vec![0; 2 * 6 * 4];
    for (index, x) in [&a, &b, &c].into_iter().enumerate() {
        concatenation.run_piece(index, &team, x, &mut y);
    }
    let expected: Vec<u8> = (0..2)
        .flat_map(|row| [&a[row * 12..][..12], &b[row * 4..][..4], &c[row * 8..][..8]].concat())
        .collect();
    assert_eq!(y, expected);
}

#[test]
fn empty_tensors_move_nothing() {
    let team = Team::single();
    Permutation::new(&[2, 0, 3], &[2, 0, 1], 4).unwrap().run(&team, &[], &mut []);
    Slice::new(&[4], &[0], &[1], &[0], 4).unwrap().run(&team, &bytes(16), &mut []);
    Tiling::new(&[2], &[0], 4).unwrap().run(&team, &bytes(8), &mut []);
    Pad::new(&[2, 0], &[0, 0], &[0, 0], PadMode::Edge, 4).unwrap().run(&team, &[], &bytes(4), &mut []);
    let mut y = [0; 12];
    Pad::new(&[0], &[1], &[2], PadMode::Constant, 4).unwrap().run(&team, &[], &[1, 2, 3, 4], &mut y);
    assert_eq!(y, [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4]);
    let mut y = [0; 4];
    Permutation::new(&[], &[], 4).unwrap().run(&team, &[1, 2, 3, 4], &mut y);
    assert_eq!(y, [1, 2, 3, 4]);
    Pad::new(&[], &[], &[], PadMode::Edge, 4).unwrap().run(&team, &[5, 6, 7, 8], &bytes(4), &mut y);
    assert_eq!(y, [5, 6, 7, 8]);
}

#[test]
fn bad_descriptions_are_refused() {
    assert_eq!(Permutation::new(&[2, 3], &[0, 0], 4), Err(LayoutError::NotAPermutation(vec![0, 0])));
    assert!(matches!(Permutation::new(&[2, 3], &[0], 4), Err(LayoutError::Rank { .. })));
    assert!(matches!(Slice::new(&[4], &[2], &[1], &[3], 4), Err(LayoutError::OutOfBounds { index: 4, .. })));
    assert!(matches!(
        Slice::new(&[4], &[1], &[-1], &[3], 4),
        Err(LayoutError::OutOfBounds { index: -1, .. })
    ));
    assert!(matches!(Expansion::new(&[2], &[3], 4), Err(LayoutError::Broadcast { from: 2, to: 3, .. })));
    assert!(matches!(Pad::new(&[2], &[-3], &[0], PadMode::Edge, 4), Err(LayoutError::OutOfBounds { .. })));
    assert!(matches!(Permutation::new(&[2], &[0], 0), Err(LayoutError::Size)));
    let overlap = StridedCopy::new(1, &[2, 2], (&[2, 1], 0, 4), (&[1, 1], 0, 4));
    assert_eq!(overlap, Err(LayoutError::Overlap));
    let outside = StridedCopy::new(1, &[2], (&[1], 0, 4), (&[1], 3, 4));
    assert!(matches!(outside, Err(LayoutError::OutOfBounds { .. })));
}
