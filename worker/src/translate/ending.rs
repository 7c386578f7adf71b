//! Why a run is at its end.

/// In the order in which they count when several hold at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// `--steps` are done.
    AllSteps,
    /// The development loss stood still for `--patience` intervals.
    Patience,
    /// Somebody asked for it (SIGTERM).
    Stopped,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// All steps, or patience ran out.
    Done { step: u64, digest: String },
    /// Asked to stop; what was done is saved.
    Stopped { step: u64 },
}
