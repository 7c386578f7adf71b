//! What a run tells the outside while it goes on.

use std::time::Duration;

use coord_common::progress::Progress;

use crate::checkpoint::Saved;

/// Calls return at once: nothing here may hold up a step.
pub trait Observer: Send + Sync {
    /// A line of the program's own output. Only the master replica speaks.
    fn say(&self, line: &str);

    /// What a run does before its first step.
    fn stage(&self, text: &str);

    /// The first step is about to run.
    fn started(&self, step: u64, share: std::ops::Range<u32>);

    /// On every rank; people see the master's, and each rank's own samples.
    fn progress(&self, progress: Progress);

    fn saved(&self, saved: &Saved, took: Duration);

    /// Somebody asked this rank to stop (SIGTERM).
    fn stop_requested(&self) -> bool;
}
