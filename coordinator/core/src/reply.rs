//! What the one who proposed a command is told: equal on every node.

use std::fmt;

use coord_common::{Coded, JobId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The job is in the state; `existing` when the same request had already put it there.
    Submitted {
        job: JobId,
        existing: bool,
    },
    Cancelled {
        job: JobId,
        already_ended: bool,
    },
    Done,
    /// True but without consequence: told twice, or told by someone whose word no longer counts.
    Ignored {
        why: &'static str,
    },
    Rejected(Rejection),
}

/// A refusal that changed nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    pub code: &'static str,
    pub text: String,
    pub hint: Option<String>,
}

impl Rejection {
    pub fn new(code: &'static str, text: impl Into<String>) -> Rejection {
        Rejection { code, text: text.into(), hint: None }
    }

    pub fn with_hint(self, hint: impl Into<String>) -> Rejection {
        Rejection { hint: Some(hint.into()), ..self }
    }

    pub fn no_such_job(job: &JobId) -> Rejection {
        Rejection::new("no_such_job", format!("there is no job {job}")).with_hint("see `coord list`")
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl std::error::Error for Rejection {}

impl Coded for Rejection {
    fn code(&self) -> &'static str {
        self.code
    }

    fn retryable(&self) -> bool {
        matches!(self.code, "too_many_jobs" | "too_many_workers" | "fact_out_of_order" | "stale_plan")
    }

    fn hint(&self) -> Option<String> {
        self.hint.clone()
    }
}
