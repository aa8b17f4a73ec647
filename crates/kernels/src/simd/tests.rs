//! Every operation of every vector type against the same on single floats.

use super::{Operation, Vector, dispatch};
use crate::isa::{Isa, Isas};

/// The values that operations are tried on, in all pairs.
const VALUES: [f32; 17] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    -2.5,
    3.75,
    1e-3,
    8_388_607.5,
    -4_194_303.5,
    16_777_216.0,
    3e9,
    -3e9,
    1e30,
    -1e-30,
    7.0,
];

struct Every;

impl Operation for Every {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        for a in VALUES {
            for b in VALUES {
                // SAFETY: the machine has the instruction set, says the caller of `run`.
                let (x, y) = unsafe { (V::splat(a), V::splat(b)) };
                same(x + y, a + b, "add", a, b);
                same(x - y, a - b, "sub", a, b);
                same(x * y, a * b, "mul", a, b);
                same(-x, -a, "neg", a, b);
                same(x.max(y), a.max(b), "max", a, b);
                same(x.min(y), a.min(b), "min", a, b);
                same(x.abs(), a.abs(), "abs", a, b);
                same(x.copy_sign(y), a.copysign(b), "copy_sign", a, b);
                same(x.round(), a.round_ties_even(), "round", a, b);
                same(V::select(x.less(y), x, y), if a < b { a } else { b }, "select", a, b);
                if b != 0.0 {
                    same(x / y, a / b, "div", a, b);
                }
            }
        }
    }
}

#[track_caller]
fn same<V: Vector>(vector: V, expected: f32, what: &str, a: f32, b: f32) {
    let mut lanes = [0.0_f32; 64];
    // SAFETY: no vector has more than 64 lanes.
    unsafe { vector.store(lanes.as_mut_ptr()) };
    for &lane in &lanes[..V::LANES] {
        assert!(lane == expected, "{what}({a}, {b}) = {lane}, not {expected}, with {} lanes", V::LANES);
    }
}

struct Exponents;

impl Operation for Exponents {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        for exponent in -252..=254 {
            for mantissa in [1.0_f32, 1.25, 1.999] {
                // SAFETY: the machine has the instruction set, says the caller of `run`.
                let (x, n) = unsafe { (V::splat(mantissa), V::splat(exponent as f32)) };
                let expected = (f64::from(mantissa) * 2.0_f64.powi(exponent)) as f32;
                if expected == 0.0 || expected.is_normal() || expected.is_infinite() {
                    same(x.scale(n), expected, "scale", mantissa, exponent as f32);
                }
                if expected.is_normal() {
                    let (found_exponent, found_mantissa) = x.constant(expected).split_exponent();
                    same(found_exponent, (exponent + 1) as f32, "exponent", expected, 0.0);
                    same(found_mantissa, mantissa / 2.0, "mantissa", expected, 0.0);
                }
                if expected.is_normal() && exponent.abs() < 100 {
                    let error = x.constant(expected).reciprocal() * x.constant(expected) - x.constant(1.0);
                    same(
                        V::select(error.abs().less(x.constant(3e-7)), x, -x),
                        mantissa,
                        "reciprocal",
                        expected,
                        0.0,
                    );
                }
            }
        }
    }
}

struct Partial;

impl Operation for Partial {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let source: Vec<f32> = (1..=V::LANES).map(|lane| lane as f32).collect();
        for count in 0..=V::LANES {
            let mut target = vec![-1.0_f32; V::LANES + 1];
            // SAFETY: the source has a whole vector, the targets as much and more, and the caller of `run` vouches for the
            // instruction set.
            unsafe {
                let vector = V::load_partial(source[..count].as_ptr(), count);
                vector.store_partial(target.as_mut_ptr(), count);
                let mut lanes = vec![-1.0_f32; V::LANES];
                vector.store(lanes.as_mut_ptr());
                assert!(lanes[count..].iter().all(|&lane| lane == 0.0), "other lanes are zero");
            }
            assert_eq!(target[..count], source[..count]);
            assert!(target[count..].iter().all(|&guard| guard == -1.0));
        }
    }
}

fn on_every_isa<O: Operation<Output = ()>>(operation: fn() -> O) {
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        dispatch(Isas::only(&[isa]), operation());
    }
}

#[test]
fn arithmetic_is_that_of_floats() {
    on_every_isa(|| Every);
}

#[test]
fn exponents_are_taken_off_and_put_back() {
    on_every_isa(|| Exponents);
}

#[test]
fn partial_loads_and_stores_touch_only_their_part() {
    on_every_isa(|| Partial);
}

#[test]
fn a_lane_that_is_not_a_number_stays_so() {
    struct Compare;
    impl Operation for Compare {
        type Output = ();
        #[inline(always)]
        unsafe fn run<V: Vector>(self) {
            // SAFETY: the machine has the instruction set, says the caller of `run`.
            let (bad, one) = unsafe { (V::splat(f32::NAN), V::splat(1.0)) };
            for result in [bad.max(one), bad.min(one), bad.abs(), bad + one] {
                let mut lanes = [0.0_f32; 64];
                // SAFETY: no vector has more than 64 lanes.
                unsafe { result.store(lanes.as_mut_ptr()) };
                assert!(lanes[..V::LANES].iter().all(|lane| lane.is_nan()));
            }
            same(V::select(bad.less(one), bad, one), 1.0, "less", f32::NAN, 1.0);
        }
    }
    on_every_isa(|| Compare);
}
