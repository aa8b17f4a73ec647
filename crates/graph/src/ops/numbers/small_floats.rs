//! Floats of eight and four bits: codes to numbers and back, as ONNX defines them.

use armet_tensor::ElementType;

/// How the codes of one format are read. The sign is the bit above the largest code.
#[derive(Debug, Clone, Copy)]
struct Format {
    mantissa_bits: u32,
    bias: i32,
    /// Code of the largest finite magnitude.
    largest: u8,
    /// Code of infinity, where there is one.
    infinity: Option<u8>,
    /// Code of NaN, where there is one.
    nan: Option<u8>,
    /// The sign bit; 0 for formats without sign.
    sign: u8,
    /// Zero has a sign of its own.
    signed_zero: bool,
}

fn format(element: ElementType) -> Option<Format> {
    let with_sign = |mantissa_bits, bias, largest, infinity, nan, signed_zero| Format {
        mantissa_bits,
        bias,
        largest,
        infinity,
        nan: Some(nan),
        sign: 0x80,
        signed_zero,
    };
    Some(match element {
        ElementType::F8E4M3Fn => with_sign(3, 7, 0x7e, None, 0x7f, true),
        ElementType::F8E4M3Fnuz => with_sign(3, 8, 0x7f, None, 0x80, false),
        ElementType::F8E5M2 => with_sign(2, 15, 0x7b, Some(0x7c), 0x7e, true),
        ElementType::F8E5M2Fnuz => with_sign(2, 16, 0x7f, None, 0x80, false),
        ElementType::F4E2M1 => Format { nan: None, sign: 8, ..with_sign(1, 1, 7, None, 0, true) },
        _ => return None,
    })
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from(exponent).exp2()
}

/// The number of a code; `None` for types that are no small floats.
pub(super) fn decode(element: ElementType, code: u8) -> Option<f64> {
    if element == ElementType::F8E8M0 {
        return Some(if code == 0xff { f64::NAN } else { power_of_two(i32::from(code) - 127) });
    }
    let format = format(element)?;
    let magnitude = code & (format.sign - 1);
    let negative = code & format.sign != 0;
    let exponent = i32::from(magnitude >> format.mantissa_bits);
    let mantissa = f64::from(magnitude & ((1 << format.mantissa_bits) - 1));
    let step = power_of_two(exponent.max(1) - format.bias - format.mantissa_bits as i32);
    let hidden = if exponent > 0 { f64::from(1 << format.mantissa_bits) } else { 0.0 };
    let value = if format.nan == Some(code) {
        f64::NAN
    } else if magnitude <= format.largest {
        (hidden + mantissa) * step
    } else if format.infinity == Some(magnitude) {
        f64::INFINITY
    } else {
        f64::NAN
    };
    Some(if negative { -value } else { value })
}

/// The code nearest to a number, of two the even one; `None` for types that are no small floats.
///
/// Numbers out of range become the largest when `saturate` is set, else infinity or NaN as the format has them.
pub(super) fn encode(element: ElementType, value: f64, saturate: bool) -> Option<u8> {
    if element == ElementType::F8E8M0 {
        return Some(encode_power(value, saturate));
    }
    let format = format(element)?;
    let sign = if value.is_sign_negative() { format.sign } else { 0 };
    if value.is_nan() {
        // A format without NaN gives negative zero, as ONNX's reference does.
        return Some(format.nan.unwrap_or(format.sign));
    }
    // Infinity is as far above these formats as any large number.
    let magnitude = value.abs().min(1e30);
    let smallest = 1 - format.bias;
    let exponent =
        if magnitude < power_of_two(smallest) { smallest } else { magnitude.log2().floor() as i32 };
    let step = power_of_two(exponent - format.mantissa_bits as i32);
    let steps = (magnitude / step).round_ties_even();
    // The hidden bit of normal numbers adds one to the exponent's field; so does rounding up to the next power.
    let code = steps + f64::from((exponent - smallest) << format.mantissa_bits);
    let code = if code <= f64::from(format.largest) {
        code as u8
    } else if saturate {
        format.largest
    } else {
        match (format.infinity, format.nan) {
            (Some(infinity), _) => infinity,
            (None, Some(nan)) => return Some(if format.signed_zero { sign | nan } else { nan }),
            (None, None) => format.largest,
        }
    };
    Some(if code == 0 && !format.signed_zero { 0 } else { sign | code })
}

/// The power of two not below the magnitude.
fn encode_power(value: f64, saturate: bool) -> u8 {
    if value.is_nan() {
        return 0xff;
    }
    let code = value.abs().log2().ceil() + 127.0;
    match code {
        code if code <= 254.0 => code.max(0.0) as u8,
        _ if saturate => 254,
        _ => 0xff,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [ElementType; 6] = [
        ElementType::F8E4M3Fn,
        ElementType::F8E4M3Fnuz,
        ElementType::F8E5M2,
        ElementType::F8E5M2Fnuz,
        ElementType::F8E8M0,
        ElementType::F4E2M1,
    ];

    #[test]
    fn every_number_is_its_own_nearest() {
        for element in ALL {
            let codes = if element == ElementType::F4E2M1 { 16 } else { 256 };
            for code in 0..codes {
                let value = decode(element, code as u8).unwrap();
                let back = encode(element, value, false).unwrap();
                if value.is_nan() {
                    assert!(decode(element, back).unwrap().is_nan(), "{element} {code}");
                } else {
                    assert_eq!(u16::from(back), code, "{element} {value}");
                }
            }
        }
    }

    #[test]
    fn the_largest_numbers_are_those_of_the_standard() {
        let largest = |element| decode(element, encode(element, 1e9, true).unwrap());
        let expected = [448.0, 240.0, 57344.0, 57344.0];
        for (element, expected) in ALL.into_iter().zip(expected) {
            assert_eq!(largest(element), Some(expected), "{element}");
        }
        assert_eq!(largest(ElementType::F4E2M1), Some(6.0));
        assert_eq!(encode(ElementType::F32, 1.0, true), None);
    }

    #[test]
    fn ties_go_to_the_even_code() {
        let near = |v| decode(ElementType::F4E2M1, encode(ElementType::F4E2M1, v, true).unwrap()).unwrap();
        assert_eq!([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0].map(near), [0.0, 1.0, 1.0, 2.0, 2.0, 4.0, 4.0]);
    }
}
