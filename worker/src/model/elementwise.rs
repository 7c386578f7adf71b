//! Own `exp`, `tanh`, `sigmoid` and `ln`: the same bits on every processor, and sums in one fixed order.
//!
//! Library functions differ between processors and versions; these are polynomials of exact operations. Largest errors,
//! tested against f64: `exp` 1.5, `tanh` 3, `sigmoid` 2.5 units in the last place of an f32.

use super::instructions::kernel;

const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// ln 2 in two parts; products of the first with small whole numbers are exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;
/// Adding it rounds to a whole number, which then lies in the low bits.
const ROUND: f32 = 12_582_912.0;

/// exp(x) = 2^n (1 + p): returns (2^n, p) with p = exp(r) - 1, |r| <= ln 2 / 2. For |x| <= 88.
#[inline(always)]
fn exp_parts(x: f32) -> (f32, f32) {
    let shifted = x.mul_add(LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(-LN_2_LOW, n.mul_add(-LN_2_HIGH, x));
    // The Taylor series; the first term left out is below 2^-25 of p.
    let mut p = 1.0f32 / 5040.0;
    p = p.mul_add(r, 1.0 / 720.0);
    p = p.mul_add(r, 1.0 / 120.0);
    p = p.mul_add(r, 1.0 / 24.0);
    p = p.mul_add(r, 1.0 / 6.0);
    p = p.mul_add(r, 0.5);
    let p = p.mul_add(r * r, r);
    (f32::from_bits(shifted.to_bits().wrapping_add(127) << 23), p)
}

/// Arguments beyond -87 and 88 are taken as these: the result is never zero, infinite or subnormal.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let x = if x < -87.0 { -87.0 } else { x };
    let x = if x > 88.0 { 88.0 } else { x };
    let (scale, p) = exp_parts(x);
    scale.mul_add(p, scale)
}

#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let size = x.abs();
    // From here on the nearest f32 is 1.
    let size = if size > 9.1 { 9.1 } else { size };
    let (scale, p) = exp_parts(2.0 * size);
    let e = scale.mul_add(p, scale - 1.0);
    (e / (e + 2.0)).copysign(x)
}

#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

// The f64 functions below do without fused operations: outside of a kernel these are calls on many processors.

/// Natural logarithm of a positive, finite, normal number; error below 2 units in the last place of an f64.
pub fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    let exponent = exponent as f64;
    // ln 2 in two parts; products of the first with an exponent are exact.
    let (high, low) = (0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10);
    exponent * high + (exponent * low + ln_of_ratio(mantissa - 1.0, mantissa + 1.0))
}

/// ln((b + a) / (b - a)) = 2 artanh(a / b) for |a / b| <= 1/3, exact to the last places however small a is.
pub fn ln_of_ratio(a: f64, b: f64) -> f64 {
    let z = a / b;
    let square = z * z;
    let mut sum = 0.0;
    for n in (1..18).rev() {
        sum = square * sum + 1.0 / f64::from(2 * n + 1);
    }
    2.0 * (z * square * sum + z)
}

/// exp in f64, for |x| <= 700.
pub fn exp_f64(x: f64) -> f64 {
    let n = (x * std::f64::consts::LOG2_E).round_ties_even();
    let (high, low) = (0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10);
    let r = (x - n * high) - n * low;
    let mut sum = 1.0;
    for divisor in (1..14).rev() {
        sum = r * sum * (1.0 / f64::from(divisor)) + 1.0;
    }
    sum * f64::from_bits(((n as i64 + 1023) as u64) << 52)
}

/// Adds sixteen lanes in a fixed tree.
#[inline(always)]
fn join(lanes: [f32; 16]) -> f32 {
    let eight: [f32; 8] = std::array::from_fn(|i| lanes[i] + lanes[i + 8]);
    let four: [f32; 4] = std::array::from_fn(|i| eight[i] + eight[i + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

/// Product sum: element i goes into lane i mod 16, the lanes are joined by a fixed tree.
#[inline(always)]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    let mut lanes = [0.0f32; 16];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..16 {
            lanes[lane] = a[lane].mul_add(b[lane], lanes[lane]);
        }
    }
    for (lane, (a, b)) in lanes.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *lane = a.mul_add(*b, *lane);
    }
    join(lanes)
}

/// Sum in the order of [`dot`].
#[inline(always)]
pub fn sum(values: &[f32]) -> f32 {
    let (whole, rest) = values.as_chunks::<16>();
    let mut lanes = [0.0f32; 16];
    for chunk in whole {
        for lane in 0..16 {
            lanes[lane] += chunk[lane];
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        *lane += value;
    }
    join(lanes)
}

/// Largest value; -infinity for none. The order of comparisons does not matter for numbers.
#[inline(always)]
pub fn largest(values: &[f32]) -> f32 {
    let (whole, rest) = values.as_chunks::<16>();
    let mut lanes = [f32::NEG_INFINITY; 16];
    for chunk in whole {
        for lane in 0..16 {
            lanes[lane] = if chunk[lane] > lanes[lane] { chunk[lane] } else { lanes[lane] };
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        *lane = if *value > *lane { *value } else { *lane };
    }
    lanes.into_iter().fold(f32::NEG_INFINITY, |a, b| if b > a { b } else { a })
}

kernel! {
    /// Copies `bias` into each row of `out`, whose rows are `step` apart.
    pub fn fill_rows(bias: &[f32], out: &mut [f32], step: usize) {
        for row in out.chunks_exact_mut(step) {
            row[..bias.len()].copy_from_slice(bias);
        }
    }
}

kernel! {
    pub fn add_assign(left: &mut [f32], right: &[f32]) {
        for (left, right) in left.iter_mut().zip(right) {
            *left += right;
        }
    }
}

/// Sums of the columns over all rows in order.
pub fn column_sums(instructions: super::instructions::Instructions, rows: super::gemm::Rows<'_>, out: &mut [f32]) {
    out.fill(0.0);
    for row in 0..rows.count {
        add_assign(instructions, out, rows.row(row));
    }
}

kernel! {
    /// [`dot`] for callers outside of a kernel.
    pub fn dot_product(a: &[f32], b: &[f32]) -> f32 {
        dot(a, b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::instructions::Instructions;

    kernel! {
        fn all(values: &[f32], out: &mut [Vec<f32>; 3]) {
            out[0].extend(values.iter().map(|x| exp(*x)));
            out[1].extend(values.iter().map(|x| tanh(*x)));
            out[2].extend(values.iter().map(|x| sigmoid(*x)));
        }
    }

    /// Every 997th f32 of either sign up to 87, and the neighbourhood of zero.
    fn arguments() -> Vec<f32> {
        let top = 87.0f32.to_bits();
        let positive = (0..=top).step_by(9973).map(f32::from_bits).chain((0..5000).map(|i| i as f32 * 1e-3));
        positive.flat_map(|x| [x, -x]).collect()
    }

    fn error_in_last_places(value: f32, exact: f64) -> f64 {
        let nearest = exact as f32;
        let place = f64::from(f32::from_bits(nearest.abs().to_bits() + 1)) - f64::from(nearest.abs());
        (f64::from(value) - exact).abs() / place
    }

    #[test]
    fn functions_stay_within_their_documented_errors() {
        let values = arguments();
        let mut out = [const { Vec::new() }; 3];
        all(Instructions::best(), &values, &mut out);
        let exact: [fn(f64) -> f64; 3] = [f64::exp, f64::tanh, |x| 1.0 / (1.0 + (-x).exp())];
        let limits = [1.5, 3.0, 2.5];
        for function in 0..3 {
            let worst = values
                .iter()
                .zip(&out[function])
                .map(|(x, y)| error_in_last_places(*y, exact[function](f64::from(*x))))
                .fold(0.0, f64::max);
            assert!(worst <= limits[function], "function {function}: {worst}");
        }
        for x in [1e-300, 0.1, 0.999_999, 1.0, 1.000_001, 1.5, 2.0, 10.0, 1e300] {
            assert!((ln(x) - x.ln()).abs() <= 4e-16 * x.ln().abs(), "ln {x}: {} {}", ln(x), x.ln());
        }
        for x in [-700.0, -20.5, -1e-9, 0.0, 0.3, 0.35, 1.0, 10.7, 700.0] {
            assert!((exp_f64(x) - x.exp()).abs() <= 4e-16 * x.exp(), "exp {x}: {} {}", exp_f64(x), x.exp());
        }
    }

    #[test]
    fn functions_give_the_same_bits_on_every_instruction_set_and_at_every_position() {
        let mut values = arguments();
        values.extend([f32::INFINITY, f32::NEG_INFINITY, 1e30, -1e30, -87.5, 88.5]);
        let bits = |instructions, values: &[f32]| {
            let mut out = [const { Vec::new() }; 3];
            all(instructions, values, &mut out);
            out.concat().into_iter().map(f32::to_bits).collect::<Vec<_>>()
        };
        let expected: Vec<u32> = (0..3)
            .flat_map(|function| values.iter().map(move |x| [exp(*x), tanh(*x), sigmoid(*x)][function].to_bits()))
            .collect();
        for instructions in Instructions::supported() {
            assert!(bits(instructions, &values) == expected, "{}", instructions.name());
        }
        assert_eq!(tanh(f32::INFINITY), 1.0);
        assert_eq!(sigmoid(1e30), 1.0);
    }

    #[test]
    fn sums_of_a_row_have_the_same_bits_on_every_instruction_set() {
        for length in [0, 1, 15, 16, 17, 31, 100, 513] {
            let a: Vec<f32> = (0..length).map(|i| (i as f32 * 0.7).sin()).collect();
            let b: Vec<f32> = (0..length).map(|i| (i as f32 * 1.3).cos()).collect();
            let exact: f64 = a.iter().zip(&b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            for instructions in Instructions::supported() {
                let value = dot_product(instructions, &a, &b);
                assert_eq!(value.to_bits(), dot(&a, &b).to_bits());
                assert!((f64::from(value) - exact).abs() < 1e-5);
            }
            let total: f64 = a.iter().map(|a| f64::from(*a)).sum();
            assert!((f64::from(sum(&a)) - total).abs() < 1e-5);
            assert_eq!(largest(&a), a.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        }
    }
}
