//! The phases of a job's life and the table of legal moves between them.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    Queued,
    Preparing,
    Running,
    Cancelling,
    Succeeded,
    Failed,
    Cancelled,
}

use Phase::{Cancelled, Cancelling, Failed, Preparing, Queued, Running, Succeeded};

/// Every legal move. A job goes back from `Running` to `Preparing` when a generation ends early; a program that finds
/// its work already done may succeed without ever having run a step.
pub const MOVES: [(Phase, &[Phase]); 7] = [
    (Queued, &[Preparing, Failed, Cancelled]),
    (Preparing, &[Running, Succeeded, Failed, Cancelling, Cancelled]),
    (Running, &[Preparing, Succeeded, Failed, Cancelling]),
    (Cancelling, &[Cancelled]),
    (Succeeded, &[]),
    (Failed, &[]),
    (Cancelled, &[]),
];

impl Phase {
    pub const ALL: [Phase; 7] = [Queued, Preparing, Running, Cancelling, Succeeded, Failed, Cancelled];

    pub fn may_become(self, next: Phase) -> bool {
        MOVES.iter().any(|(from, targets)| *from == self && targets.contains(&next))
    }

    /// `Succeeded`, `Failed` and `Cancelled` absorb.
    pub fn is_final(self) -> bool {
        matches!(self, Succeeded | Failed | Cancelled)
    }

    /// The name that users of managed training services know.
    pub fn as_str(self) -> &'static str {
        match self {
            Queued => "QUEUED",
            Preparing => "PREPARING",
            Running => "RUNNING",
            Cancelling => "CANCELLING",
            Succeeded => "SUCCEEDED",
            Failed => "FAILED",
            Cancelled => "CANCELLED",
        }
    }

    /// The phase of a name, in any case.
    pub fn from_name(name: &str) -> Option<Phase> {
        Phase::ALL.into_iter().find(|phase| phase.as_str().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn final_phases_absorb_and_all_others_lead_to_one() {
        for phase in Phase::ALL {
            let leads_on = Phase::ALL.into_iter().any(|next| phase.may_become(next));
            assert_eq!(leads_on, !phase.is_final(), "{phase}");
            let can_be_cancelled = phase.may_become(Cancelling) || phase.may_become(Cancelled);
            assert_eq!(can_be_cancelled, !phase.is_final(), "{phase}");
        }
    }

    #[test]
    fn names_are_read_back_in_any_case() {
        for phase in Phase::ALL {
            assert_eq!(Phase::from_name(&phase.as_str().to_lowercase()), Some(phase));
        }
        assert_eq!(Phase::from_name("DONE"), None);
    }
}
