//! What is said of several measurements of one thing.

/// In rising order; at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample(Vec<f64>);

impl Sample {
    pub fn new(mut values: Vec<f64>) -> Self {
        assert!(!values.is_empty(), "a sample needs a measurement");
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The smallest value that at least this share of all does not exceed (nearest rank).
    pub fn quantile(&self, share: f64) -> f64 {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0[rank.clamp(1, self.0.len()) - 1]
    }

    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// Between the quarters, as a share of the median.
    pub fn spread(&self) -> f64 {
        (self.quantile(0.75) - self.quantile(0.25)) / self.median()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_measurements_that_were_made() {
        let sample = Sample::new((1..=100).rev().map(f64::from).collect());
        assert_eq!((sample.median(), sample.quantile(0.99), sample.quantile(1.0)), (50.0, 99.0, 100.0));
        assert_eq!((sample.quantile(0.0), sample.spread()), (1.0, 1.0));
        assert_eq!(Sample::new(vec![3.0]).quantile(0.99), 3.0);
    }
}
