use smallvec::SmallVec;

use super::*;
use crate::dispatch::variants;
use crate::layout::ChannelOrder;
use crate::threads::Team;

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|index| ((index * 7919) % 401) as f32 / 100.0 - 2.0).collect()
}

/// One result of linear sampling with zeros outside, by the definition.
fn linear(plane: &[f32], [height, width]: [usize; 2], place: &[f32]) -> f32 {
    let at = |place: f32, len: usize| ((f64::from(place) + 1.0) * len as f64 - 1.0) / 2.0;
    let (x, y) = (at(place[0], width), at(place[1], height));
    let mut sum = 0.0;
    for row in 0..height {
        for column in 0..width {
            let share = (1.0 - (y - row as f64).abs()).max(0.0) * (1.0 - (x - column as f64).abs()).max(0.0);
            sum += share * f64::from(plane[row * width + column]);
        }
    }
    sum as f32
}

#[test]
fn linear_grids_equal_their_definition_in_both_orders() {
    let (batch, channels, size, places) = (2, 19, [5, 7], 75);
    let x = numbers(batch * channels * 35);
    let grid: Vec<f32> = numbers(batch * places * 2).iter().map(|v| v * 0.7).collect();
    let lengths = SmallVec::from_slice(&size);
    let first = GridSample {
        batch,
        channels,
        lengths,
        places,
        interpolation: GridInterpolation::Linear,
        padding: GridPadding::Zeros,
        align_corners: false,
        order: ChannelOrder::First,
    };
    let last = GridSample { order: ChannelOrder::Last, ..first.clone() };
    let mut turned = vec![0.0; x.len()];
    for (index, &value) in x.iter().enumerate() {
        let (item, channel, place) = (index / 35 / channels, index / 35 % channels, index % 35);
        turned[(item * 35 + place) * channels + channel] = value;
    }
    for isas in variants() {
        let team = Team::new(2);
        let mut y = vec![f32::NAN; batch * channels * places];
        let mut y_last = y.clone();
        first.run(isas, &team, &x, &grid, &mut y, &mut vec![0; first.scratch_length()]);
        last.run(isas, &team, &turned, &grid, &mut y_last, &mut []);
        for (index, &value) in y.iter().enumerate() {
            let (plane, place) = (index / places, index % places);
            let (item, channel) = (plane / channels, plane % channels);
            let wanted = linear(&x[plane * 35..][..35], size, &grid[(item * places + place) * 2..][..2]);
            assert!((value - wanted).abs() < 1e-5, "{value} instead of {wanted} at {index}");
            let other = y_last[(item * places + place) * channels + channel];
            assert!((value - other).abs() < 1e-5, "{value} and {other} at {index}");
        }
    }
}

#[test]
fn elements_outside_are_not_looked_at() {
    let sample = GridSample {
        batch: 1,
        channels: 1,
        lengths: SmallVec::from_slice(&[2, 2]),
        places: 3,
        interpolation: GridInterpolation::Linear,
        padding: GridPadding::Zeros,
        align_corners: true,
        order: ChannelOrder::First,
    };
    let x = [f32::NAN, 1.0, 2.0, 3.0];
    let mut y = [0.0; 3];
    let grid = [1.0, 1.0, 5.0, 5.0, f32::NAN, 0.0];
    sample.run(crate::isa::Isas::scalar(), &Team::new(1), &x, &grid, &mut y, &mut [0; 12]);
    assert_eq!(y, [3.0, 0.0, 0.0]);
}

#[test]
fn regions_are_means_of_their_bins() {
    // A plane that rises evenly has the value of its place everywhere.
    let (height, width) = (8, 9);
    let x: Vec<f32> = (0..2 * 40 * height * width)
        .map(|index| (index % width) as f32 + 10.0 * (index / width % height) as f32)
        .collect();
    let align = RegionAlign {
        batch: 2,
        channels: 40,
        size: [height, width],
        output: [2, 3],
        sampling_ratio: 0,
        scale: 1.0,
        max: false,
        half_pixel: true,
        order: ChannelOrder::First,
    };
    let regions = [
        Region { picture: 1, corners: [1.5, 1.5, 7.5, 5.5] },
        Region { picture: -2, corners: [2.0, 0.5, 5.0, 2.5] },
    ];
    for isas in variants() {
        let mut y = vec![f32::NAN; 2 * 40 * 6];
        align.run(isas, &Team::new(2), (2, &|index| regions[index]), &x, &mut y).unwrap();
        let mut turned = vec![0.0; x.len()];
        for (index, &value) in x.iter().enumerate() {
            let (picture, channel, place) = (index / 72 / 40, index / 72 % 40, index % 72);
            turned[(picture * 72 + place) * 40 + channel] = value;
        }
        for max in [false, true] {
            let (first, last) =
                (RegionAlign { max, ..align }, RegionAlign { max, order: ChannelOrder::Last, ..align });
            let (mut plain, mut pixels) = (vec![f32::NAN; 480], vec![f32::NAN; 480]);
            first.run(isas, &Team::new(2), (2, &|index| regions[index]), &x, &mut plain).unwrap();
            last.run(isas, &Team::new(2), (2, &|index| regions[index]), &turned, &mut pixels).unwrap();
            for (index, value) in plain.iter().enumerate() {
                let (region, channel, bin) = (index / 240, index / 6 % 40, index % 6);
                let other = pixels[(region * 6 + bin) * 40 + channel];
                assert!((value - other).abs() < 1e-3, "{value} and {other} at {index}");
            }
        }
        for (index, value) in y.iter().enumerate() {
            let [left, top, right, bottom] = regions[index / 240].corners;
            let (row, column) = ((index % 6 / 3) as f32, (index % 3) as f32);
            let at_x = left - 0.5 + (column + 0.5) * (right - left) / 3.0;
            let at_y = top - 0.5 + (row + 0.5) * (bottom - top) / 2.0;
            assert!((value - (at_x + 10.0 * at_y)).abs() < 1e-3, "{value} at {index}");
        }
    }
}

#[test]
fn regions_that_cannot_be_are_errors() {
    let align = RegionAlign {
        batch: 1,
        channels: 1,
        size: [2, 2],
        output: [1, 1],
        sampling_ratio: 0,
        scale: 1.0,
        max: false,
        half_pixel: true,
        order: ChannelOrder::First,
    };
    let run = |region: Region| {
        align.run(crate::isa::Isas::scalar(), &Team::new(1), (1, &|_| region), &[0.0; 4], &mut [0.0])
    };
    assert_eq!(run(Region { picture: 1, corners: [0.0; 4] }), Err(RegionError::Picture(1)));
    let large = Region { picture: 0, corners: [0.0, 0.0, 1e30, 1.0] };
    assert_eq!(run(large), Err(RegionError::Size(0.0, 1e30)));
}

#[test]
fn taps_that_do_not_move_read_windows() {
    let taps = DeformTaps {
        channels: 4,
        size: [4, 5],
        output: [2, 4],
        kernel: [3, 2],
        strides: [2, 1],
        dilations: [1, 1],
        begins: [1, 0],
        groups: 2,
        offset_groups: 1,
    };
    let x = numbers(4 * 5 * 4);
    let mut y = vec![f32::NAN; 8 * taps.row()];
    let mask = vec![2.0; 6 * 8];
    taps.read(crate::isa::Isas::detect(), &Team::new(2), 0, &x, (&[0.0; 12 * 8], Some(&mask)), &mut y);
    for (index, &value) in y.iter().enumerate() {
        let (window, place) = (index / taps.row(), index % taps.row());
        let (group, tap, channel) = (place / 12, place / 2 % 6, place % 2);
        let row = (window / 4 * 2 + tap / 2).checked_sub(1).filter(|row| *row < 4);
        let column = window % 4 + tap % 2;
        let wanted = row.map_or(0.0, |row| 2.0 * x[(row * 5 + column) * 4 + group * 2 + channel]);
        assert_eq!(value, wanted, "{index}");
    }
}

#[test]
fn offsets_move_taps_between_pixels() {
    let taps = DeformTaps {
        channels: 1,
        size: [2, 2],
        output: [1, 1],
        kernel: [1, 1],
        strides: [1, 1],
        dilations: [1, 1],
        begins: [0, 0],
        groups: 1,
        offset_groups: 1,
    };
    let read = |offsets: [f32; 2]| {
        let mut y = [f32::NAN];
        let x = [1.0, 2.0, 3.0, 4.0];
        taps.read(crate::isa::Isas::scalar(), &Team::single(), 0, &x, (&offsets, None), &mut y);
        y[0]
    };
    assert_eq!(read([0.5, 0.5]), 2.5);
    assert_eq!(read([1.0, 0.25]), 3.25);
    assert_eq!(read([-0.5, 0.0]), 0.5);
    assert_eq!(read([-1.0, 0.0]), 0.0);
    assert_eq!(read([f32::NAN, 0.0]), 0.0);
}
