//! Waiting for a condition: looked at often, given up late, never a sleep that hopes.

use std::time::{Duration, Instant};

/// Only a broken product takes so long, even on a machine that is busy with other things.
const GENEROUS: Duration = Duration::from_secs(90);
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// A moment after which a test gives up.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    pub fn generous() -> Self {
        Self::after(GENEROUS)
    }

    pub fn after(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    pub fn is_over(&self) -> bool {
        Instant::now() >= self.0
    }

    /// The time between two looks.
    pub fn pause(&self) {
        std::thread::sleep(LOOK_INTERVAL);
    }
}

/// Looks again and again until `look` finds something. `Err` is what it saw instead, for the message.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let deadline = Deadline::generous();
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) => assert!(!deadline.is_over(), "waited {GENEROUS:?} in vain for {what}; last seen: {seen}"),
        }
        deadline.pause();
    }
}
