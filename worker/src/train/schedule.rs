//! The learning rate and what it depends on: the mean losses of the last intervals.

/// A decay needs this many earlier intervals, and looks back as far.
const LOOK_BACK: usize = 3;

/// History is state: it is saved, so that a resumed run decays as one that never stopped.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    pub rate: f64,
    /// Mean losses of the last [`LOOK_BACK`] intervals, oldest first.
    pub history: Vec<f64>,
    /// Sum of the step losses since the last interval ended, and their number.
    pub interval_sum: f64,
    pub interval_steps: u64,
}

impl Schedule {
    pub fn new(rate: f64) -> Self {
        Self { rate, history: Vec::new(), interval_sum: 0.0, interval_steps: 0 }
    }

    /// The loss of one step: the reduced one, equal on all ranks.
    pub fn observe(&mut self, loss: f64) {
        self.interval_sum += loss;
        self.interval_steps += 1;
    }

    /// Mean loss since the last interval ended; NaN if no step was good since.
    pub fn mean(&self) -> f64 {
        self.interval_sum / self.interval_steps as f64
    }

    /// Ends an interval: the rate is multiplied by `factor` if at least three earlier interval losses exist and this
    /// one is greater than the largest of the last three; it never falls below `floor`. True if it fell. An interval
    /// without a good step has no loss and changes nothing.
    pub fn end_interval(&mut self, factor: f64, floor: f64) -> bool {
        if self.interval_steps == 0 {
            return false;
        }
        let mean = self.mean();
        let worse = self.history.len() >= LOOK_BACK && self.history.iter().all(|earlier| mean > *earlier);
        let before = self.rate;
        if worse {
            self.rate = (self.rate * factor).max(floor.min(self.rate));
        }
        self.history.push(mean);
        if self.history.len() > LOOK_BACK {
            self.history.remove(0);
        }
        self.interval_sum = 0.0;
        self.interval_steps = 0;
        self.rate < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The oracle of the old program: one decay after the sixth interval, none after the seventh; the line printed
    /// for the sixth still shows 0.5000, for the seventh 0.4950.
    #[test]
    fn the_rate_decays_when_a_loss_exceeds_the_last_three() {
        let mut schedule = Schedule::new(0.5);
        let mut printed = Vec::new();
        let mut decayed = Vec::new();
        for loss in [5.0, 4.0, 3.0, 4.5, 2.0, 6.0, 5.5] {
            schedule.observe(loss);
            printed.push(format!("{:.4}", schedule.rate));
            decayed.push(schedule.end_interval(0.99, 0.0));
        }
        assert_eq!(decayed, [false, false, false, false, false, true, false]);
        assert_eq!(printed, ["0.5000", "0.5000", "0.5000", "0.5000", "0.5000", "0.5000", "0.4950"]);
    }

    #[test]
    fn the_rate_stops_at_its_floor() {
        let mut schedule = Schedule::new(0.1);
        for loss in 0..2000 {
            schedule.observe(f64::from(loss));
            schedule.end_interval(0.5, 0.01);
        }
        assert_eq!(schedule.rate, 0.01);
    }

    #[test]
    fn an_interval_loss_is_the_mean_of_its_steps() {
        let mut schedule = Schedule::new(0.5);
        schedule.observe(2.0);
        schedule.observe(4.0);
        assert_eq!(schedule.mean(), 3.0);
    }

    #[test]
    fn an_interval_without_a_good_step_has_no_loss_and_leaves_no_trace() {
        let mut schedule = Schedule::new(0.5);
        for loss in [5.0, 4.0, 3.0] {
            schedule.observe(loss);
            schedule.end_interval(0.99, 0.0);
        }
        let before = schedule.clone();
        assert!(schedule.mean().is_nan());
        assert!(!schedule.end_interval(0.99, 0.0));
        assert_eq!(schedule, before);
    }
}
