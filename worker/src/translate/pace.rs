//! Figures since the last progress line, for people only: nothing of it reaches the state.

use std::time::{Duration, Instant};

/// Gauges leave at most this often.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

pub struct Pace {
    begun: Instant,
    steps: u64,
    tokens: u64,
    /// When gauges may leave again.
    due: Instant,
}

impl Pace {
    pub fn new() -> Self {
        let now = Instant::now();
        Self { begun: now, steps: 0, tokens: 0, due: now }
    }

    /// Begins to count anew.
    pub fn restart(&mut self) {
        *self = Self { due: self.due, ..Self::new() };
    }

    pub fn step(&mut self, tokens: u64) {
        self.steps += 1;
        self.tokens += tokens;
    }

    pub fn seconds_per_step(&self) -> f64 {
        if self.steps == 0 { 0.0 } else { self.begun.elapsed().as_secs_f64() / self.steps as f64 }
    }

    pub fn tokens_per_second(&self) -> f64 {
        self.tokens as f64 / self.begun.elapsed().as_secs_f64().max(1e-9)
    }

    /// Whether gauges are due; asking takes the turn.
    pub fn take_turn(&mut self) -> bool {
        let now = Instant::now();
        let due = now >= self.due;
        if due {
            self.due = now + PROGRESS_EVERY;
        }
        due
    }
}
