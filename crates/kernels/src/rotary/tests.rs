use super::{Angles, Sizes, rotary};
use crate::dispatch::variants;
use crate::threads::Team;

#[test]
fn rotary_equals_turned_pairs() {
    for (rows, heads, size, half) in
        [(1, 1, 2, 1), (7, 3, 64, 32), (200, 2, 40, 12), (3, 5, 33, 16), (4, 2, 8, 0)]
    {
        let x: Vec<f32> =
            (0..rows * heads * size).map(|i| ((i * 7919) % 4001) as f32 / 1000.0 - 2.0).collect();
        let angles: Vec<f32> = (0..9 * half).map(|i| i as f32 * 0.37).collect();
        let cos: Vec<f32> = angles.iter().map(|a| a.cos()).collect();
        let sin: Vec<f32> = angles.iter().map(|a| a.sin()).collect();
        for interleaved in [false, true] {
            let sizes = Sizes { rows, heads, size, half, interleaved };
            let angle = |row: usize| row * 5 % 9;
            for isas in variants() {
                let mut y = vec![f32::NAN; x.len()];
                rotary(isas, &Team::new(2), sizes, &x, &mut y, Angles { cos: &cos, sin: &sin }, &angle);
                for (index, found) in y.iter().enumerate() {
                    let (start, at) = (index / size * size, index % size);
                    let row = angle(index / (heads * size)) * half;
                    let wanted = if at >= 2 * half {
                        x[index]
                    } else {
                        let (pair, second) =
                            if interleaved { (at / 2, at % 2 == 1) } else { (at % half, at >= half) };
                        let (a, b) = if interleaved { (2 * pair, 2 * pair + 1) } else { (pair, pair + half) };
                        let (a, b) = (x[start + a], x[start + b]);
                        let (cos, sin) = (cos[row + pair], sin[row + pair]);
                        if second { sin * a + cos * b } else { cos * a - sin * b }
                    };
                    assert!(
                        (found - wanted).abs() < 1e-5,
                        "{sizes:?} {isas}: {index} is {found}, not {wanted}"
                    );
                }
            }
        }
    }
}
