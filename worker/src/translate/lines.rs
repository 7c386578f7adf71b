//! The progress lines of the old program, to the letter: people and scripts read them.

/// exp(loss); `inf` for a loss of 300 or more.
pub fn perplexity(loss: f64) -> f64 {
    if loss < 300.0 { loss.exp() } else { f64::INFINITY }
}

/// `global step 200 learning rate 0.5000 step-time 1.39 perplexity 1720.62`
pub fn interval(step: u64, rate: f64, step_seconds: f64, mean_loss: f64) -> String {
    let perplexity = perplexity(mean_loss);
    format!("global step {step} learning rate {rate:.4} step-time {step_seconds:.2} perplexity {perplexity:.2}")
}

/// `  eval: bucket 0 perplexity 184.97`, or `  eval: empty bucket 0`.
pub fn evaluation(bucket: usize, mean_loss: Option<f64>) -> String {
    match mean_loss {
        Some(loss) => format!("  eval: bucket {bucket} perplexity {:.2}", perplexity(loss)),
        None => format!("  eval: empty bucket {bucket}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_old_form_to_the_letter() {
        let line = interval(200, 0.5, 1.389, 1720.62f64.ln());
        assert_eq!(line, "global step 200 learning rate 0.5000 step-time 1.39 perplexity 1720.62");
        assert_eq!(evaluation(0, Some(184.97f64.ln())), "  eval: bucket 0 perplexity 184.97");
        assert_eq!(evaluation(3, None), "  eval: empty bucket 3");
    }

    #[test]
    fn a_huge_loss_prints_as_inf() {
        assert_eq!(
            interval(1, 100.0, 0.0, 300.0),
            "global step 1 learning rate 100.0000 step-time 0.00 perplexity inf"
        );
        assert_eq!(evaluation(1, Some(f64::INFINITY)), "  eval: bucket 1 perplexity inf");
        assert!(evaluation(1, Some(f64::NAN)).ends_with("perplexity inf"));
    }
}
