//! The node's one clock: wall time at its start and what the steady clock has counted since.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use coord_common::Millis;

/// Stamps of entries, heartbeats and leases are all of this clock, so that they compare; it never goes back.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    started: Instant,
    started_at: Millis,
}

impl Clock {
    /// A wall clock before 1970 counts as 1970; `apply` takes the larger of all stamps anyway.
    pub fn start() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { started: Instant::now(), started_at: Millis(wall.as_millis() as u64) }
    }

    pub fn now(&self) -> Millis {
        self.started_at + self.since_start()
    }

    pub fn since_start(&self) -> Millis {
        Millis(self.started.elapsed().as_millis() as u64)
    }
}
