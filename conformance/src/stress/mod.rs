//! Long checks with random work: graphs, sizes that change, sessions at once. Everything follows from seeds.

mod exact;
pub mod generate;
pub mod graphs;
pub mod mutants;
pub mod sessions;
pub mod sizes;

use armet_graph::Value;
use armet_graph::ops::numbers;

/// The largest gap between two results as a share of the largest number in them; infinite where they differ in kind, shape
/// or element type, in text, or in what is not finite. Integers count as equal or not.
pub fn gap(wanted: &Value, found: &Value) -> f64 {
    let (wanted, found) = match (wanted, found) {
        (Value::Tensor(wanted), Value::Tensor(found)) => (wanted, found),
        (Value::Sequence(wanted), Value::Sequence(found)) if wanted.len() == found.len() => {
            return wanted.iter().zip(found).map(|(a, b)| gap(a, b)).fold(0.0, f64::max);
        }
        (Value::Optional(Some(wanted)), Value::Optional(Some(found))) => return gap(wanted, found),
        _ => return if wanted == found { 0.0 } else { f64::INFINITY },
    };
    if wanted == found {
        return 0.0;
    }
    if (wanted.element(), wanted.shape()) != (found.element(), found.shape()) || !wanted.element().is_float()
    {
        return f64::INFINITY;
    }
    let (Ok(wanted), Ok(found)) = (numbers::to_f64(wanted), numbers::to_f64(found)) else {
        return f64::INFINITY;
    };
    let largest = wanted.iter().filter(|v| v.is_finite()).fold(0.0f64, |most, v| most.max(v.abs()));
    let one = |(a, b): (&f64, &f64)| {
        if a == b || (a.is_nan() && b.is_nan()) {
            0.0
        } else if a.is_finite() && b.is_finite() {
            (a - b).abs() / largest
        } else {
            f64::INFINITY
        }
    };
    wanted.iter().zip(&found).map(one).fold(0.0, f64::max)
}

/// The angle between two results, one minus their cosine; 2 where they differ in kind, shape or element type, or hold what
/// is not finite.
pub fn angle(wanted: &Value, found: &Value) -> f64 {
    const APART: f64 = 2.0;
    let (Value::Tensor(wanted), Value::Tensor(found)) = (wanted, found) else {
        return if wanted == found { 0.0 } else { APART };
    };
    if wanted == found {
        return 0.0;
    }
    let (Ok(a), Ok(b)) = (numbers::to_f64(wanted), numbers::to_f64(found)) else { return APART };
    if (wanted.element(), wanted.shape()) != (found.element(), found.shape()) {
        return APART;
    }
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let cosine = dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt();
    if cosine.is_finite() { 1.0 - cosine } else { APART }
}

/// Bytes of memory that this process occupies.
///
/// # Errors
/// Where the system does not say.
pub fn resident_bytes() -> Result<usize, String> {
    let text = std::fs::read_to_string("/proc/self/status").map_err(|e| e.to_string())?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("there is no VmRSS")?;
    let kib = line.trim().trim_end_matches("kB").trim().parse::<usize>().map_err(|e| e.to_string())?;
    Ok(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use armet_tensor::Tensor;

    #[test]
    fn angles_pass_over_lengths() {
        let v = |x: &[f32]| Value::from(Tensor::vector(x));
        assert!(angle(&v(&[1.0, 2.0]), &v(&[2.0, 4.0])).abs() < 1e-12);
        assert_eq!(angle(&v(&[1.0, 0.0]), &v(&[0.0, 1.0])), 1.0);
        assert_eq!(angle(&v(&[1.0, 0.0]), &v(&[f32::NAN, 1.0])), 2.0);
        assert_eq!(angle(&v(&[1.0]), &v(&[1.0, 1.0])), 2.0);
    }

    #[test]
    fn gaps_are_shares_of_the_largest_number() {
        let v = |x: &[f32]| Value::from(Tensor::vector(x));
        assert_eq!(gap(&v(&[0.0, 4.0]), &v(&[1.0, 4.0])), 0.25);
        assert_eq!(gap(&v(&[f32::NAN]), &v(&[f32::NAN])), 0.0);
        assert_eq!(gap(&v(&[f32::INFINITY]), &v(&[1.0])), f64::INFINITY);
        assert_eq!(gap(&v(&[1.0]), &v(&[1.0, 1.0])), f64::INFINITY);
        assert_eq!(gap(&Tensor::vector(&[1i32]).into(), &Tensor::vector(&[2i32]).into()), f64::INFINITY);
    }
}
