use proptest::prelude::{prop, prop_assert_eq, proptest};

use super::{
    BlockTuples, Cumulate, ElementPairs, IndexError, ScatterReduction, cumulate, gather, gather_elements,
    gather_nd, scatter_elements, scatter_nd,
};
use crate::threads::Team;
use crate::transpose::LayoutError;

proptest! {
    #[test]
    fn gather_takes_blocks(
        (outer, axis, inner) in (0_usize..4, 1_usize..9, 1_usize..20),
        seeds in prop::collection::vec(0_i64..1000, 0..12),
    ) {
        let x: Vec<u8> = (0..outer * axis * inner).map(|index| index as u8).collect();
        let indices: Vec<i64> = seeds.iter().map(|seed| seed % (2 * axis as i64) - axis as i64).collect();
        let mut y = vec![0; outer * indices.len() * inner];
        gather(&Team::new(2), (outer, axis, inner), &indices, &x, &mut y).unwrap();
        let mut expected = Vec::new();
        for position in 0..outer {
            for index in &indices {
                let index = index.rem_euclid(axis as i64) as usize;
                expected.extend_from_slice(&x[(position * axis + index) * inner..][..inner]);
            }
        }
        prop_assert_eq!(&y, &expected);
        let narrow: Vec<i32> = indices.iter().map(|&index| index as i32).collect();
        gather(&Team::single(), (outer, axis, inner), &narrow, &x, &mut y).unwrap();
        prop_assert_eq!(&y, &expected);
    }

    #[test]
    fn elements_are_gathered_and_scattered_along_an_axis(
        shape in prop::collection::vec(1_usize..6, 1..4), less in prop::collection::vec(0_usize..5, 3), which in 0_usize..3,
    ) {
        let axis = which % shape.len();
        let indices_shape: Vec<usize> = shape
            .iter()
            .enumerate()
            .map(|(other, &extent)| if other == axis { less[other] } else { extent - less[other] % extent })
            .collect();
        let count: usize = indices_shape.iter().product();
        let x: Vec<u16> = (0..shape.iter().product::<usize>() as u16).map(|x| x + 1).collect();
        let extent = shape[axis] as i64;
        let indices: Vec<i64> = (0..count as i64).map(|place| place * 31 % (2 * extent) - extent).collect();
        let pairs = ElementPairs::new(&shape, &indices_shape, axis).unwrap();
        // Place of the data element that each index names.
        let places: Vec<usize> = (0..count)
            .map(|flat| {
                let (mut rest, mut place, mut stride) = (flat, 0, 1);
                for other in (0..shape.len()).rev() {
                    let own = rest % indices_shape[other];
                    rest /= indices_shape[other];
                    place += stride * if other == axis { indices[flat].rem_euclid(extent) as usize } else { own };
                    stride *= shape[other];
                }
                place
            })
            .collect();
        let mut y = vec![0; count];
        gather_elements(&Team::new(2), &pairs, &indices, &x, &mut y).unwrap();
        prop_assert_eq!(&y, &places.iter().map(|&place| x[place]).collect::<Vec<_>>());
        for reduction in [ScatterReduction::None, ScatterReduction::Add, ScatterReduction::Max] {
            let updates: Vec<u16> = (0..count as u16).map(|x| x * 7 % 40).collect();
            let mut expected = x.clone();
            for (&place, &update) in places.iter().zip(&updates) {
                expected[place] = match reduction {
                    ScatterReduction::Add => expected[place] + update,
                    ScatterReduction::Max => expected[place].max(update),
                    _ => update,
                };
            }
            let mut y = x.clone();
            scatter_elements(&pairs, reduction, &indices, &updates, &mut y).unwrap();
            prop_assert_eq!(y, expected);
        }
    }

    #[test]
    fn running_sums(
        (outer, axis, inner) in (1_usize..4, 1_usize..7, 1_usize..5), exclusive: bool, reverse: bool,
    ) {
        let x: Vec<i32> = (0..(outer * axis * inner) as i32).map(|x| x * 7 % 11 - 5).collect();
        let mut y = vec![0; x.len()];
        let wanted = Cumulate { product: false, exclusive, reverse };
        cumulate(&Team::single(), wanted, (outer, axis, inner), &x, &mut y);
        let mut products = y.clone();
        let small: Vec<i32> = x.iter().map(|x| x % 3).collect();
        cumulate(&Team::single(), Cumulate { product: true, ..wanted }, (outer, axis, inner), &small, &mut products);
        for (place, &y) in y.iter().enumerate() {
            let (position, step, column) = (place / inner / axis, place / inner % axis, place % inner);
            let sum: i32 = (0..axis)
                .filter(|&other| if reverse { other > step } else { other < step } || (other == step && !exclusive))
                .map(|other| x[(position * axis + other) * inner + column])
                .sum();
            prop_assert_eq!(y, sum);
            let product: i32 = (0..axis)
                .filter(|&other| if reverse { other > step } else { other < step } || (other == step && !exclusive))
                .map(|other| small[(position * axis + other) * inner + column])
                .fold(1, i32::wrapping_mul);
            prop_assert_eq!(products[place], product);
        }
    }
}

#[test]
fn tuples_choose_blocks() {
    let x: Vec<u8> = (0..2 * 3 * 4 * 2).collect();
    let team = Team::single();
    // Two indices of the first two axes; blocks of eight.
    let tuples = BlockTuples::new(&[2, 3, 4, 2], &[3, 2], 0).unwrap();
    let indices: [i64; 6] = [1, 0, 0, -1, -2, 1];
    let mut y = vec![0; tuples.length()];
    gather_nd(&team, &tuples, 1, &indices, &x, &mut y).unwrap();
    assert_eq!(y, [&x[24..32], &x[16..24], &x[8..16]].concat());
    let mut data = x.clone();
    scatter_nd(&tuples, ScatterReduction::None, &indices, &[7; 24], &mut data).unwrap();
    let named = |place: usize| matches!(place / 8, 1..=3);
    assert!(data.iter().enumerate().all(|(place, &found)| found == if named(place) { 7 } else { x[place] }));
    // One batch axis.
    let tuples = BlockTuples::new(&[2, 3, 4, 2], &[2, 1], 1).unwrap();
    let mut y = vec![0; tuples.length()];
    gather_nd(&team, &tuples, 1, &[2_i32, 0], &x, &mut y).unwrap();
    assert_eq!(y, [&x[16..24], &x[24..32]].concat());
    // Whole elements: tuples as long as the rank.
    let tuples = BlockTuples::new(&[2, 2], &[3, 2], 0).unwrap();
    let mut sums = [1, 2, 3, 4];
    scatter_nd(&tuples, ScatterReduction::Add, &[0_i64, 0, 0, 0, 1, 1], &[10, 20, 5], &mut sums).unwrap();
    assert_eq!(sums, [31, 2, 3, 9]);
}

#[test]
fn bad_indices_are_errors() {
    let team = Team::single();
    let mut y = [0; 1];
    for index in [3_i64, -4, i64::MIN, i64::MAX] {
        assert_eq!(
            gather(&team, (1, 3, 1), &[index], &[1, 2, 3], &mut y),
            Err(IndexError { index, extent: 3 })
        );
    }
    let pairs = ElementPairs::new(&[3], &[1], 0).unwrap();
    assert!(gather_elements(&team, &pairs, &[5_i32], &[1, 2, 3], &mut y).is_err());
    assert!(scatter_elements(&pairs, ScatterReduction::None, &[-5_i32], &[1], &mut [1, 2, 3]).is_err());
    let tuples = BlockTuples::new(&[3], &[1, 1], 0).unwrap();
    assert!(gather_nd(&team, &tuples, 1, &[3_i64], &[1, 2, 3], &mut y).is_err());
    assert!(matches!(ElementPairs::new(&[3, 2], &[3, 3], 0), Err(LayoutError::OutOfBounds { axis: 1, .. })));
    assert!(matches!(BlockTuples::new(&[3], &[1, 2], 0), Err(LayoutError::Rank { .. })));
    assert!(gather::<i64>(&team, (2, 3, 1), &[], &[0; 6], &mut []).is_ok());
}
