//! Names and counters, each with its own type so that no two of them can be confused.

use std::fmt;
use std::sync::Arc;

use crate::error::Coded;

/// Longest job id.
pub const JOB_ID_MAX: usize = 128;
/// Longest id of a worker, an incarnation or a request.
pub const ID_MAX: usize = 128;

/// The rule, as every refusal quotes it.
pub const JOB_ID_RULE: &str = "letters, digits, underscore, first a letter, at most 128";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("job id {got:?} is not valid ({JOB_ID_RULE})")]
    Job { got: String },
    #[error("{kind} must be 1 to {ID_MAX} printable ASCII characters, got {got:?}")]
    Opaque { kind: &'static str, got: String },
}

impl Coded for IdError {
    fn code(&self) -> &'static str {
        match self {
            IdError::Job { .. } => "invalid_job_id",
            IdError::Opaque { .. } => "invalid_id",
        }
    }

    fn retryable(&self) -> bool {
        false
    }

    fn hint(&self) -> Option<String> {
        match self {
            IdError::Job { got } => Some(format!("use `{}`", JobId::propose(got))),
            IdError::Opaque { .. } => None,
        }
    }
}

/// The name a user gave a job. Case matters; never used twice in the life of a cluster.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(Arc<str>);

impl JobId {
    pub fn parse(text: &str) -> Result<JobId, IdError> {
        let first_is_letter = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
        let rest_is_legal = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if first_is_letter && rest_is_legal && text.len() <= JOB_ID_MAX {
            Ok(JobId(text.into()))
        } else {
            Err(IdError::Job { got: text.to_owned() })
        }
    }

    /// A valid id as near to `text` as the rule allows: `my-job` becomes `my_job`, `9lives` becomes `job_9lives`.
    pub fn propose(text: &str) -> String {
        let legal = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
        let mut proposed: String = text.chars().map(legal).collect();
        if !proposed.starts_with(|first: char| first.is_ascii_alphabetic()) {
            let separator = if proposed.is_empty() || proposed.starts_with('_') { "" } else { "_" };
            proposed = format!("job{separator}{proposed}");
        }
        proposed.truncate(JOB_ID_MAX);
        proposed
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "JobId({})", self.0)
    }
}

macro_rules! opaque_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn parse(text: &str) -> Result<$name, IdError> {
                let printable = text.bytes().all(|byte| byte.is_ascii_graphic());
                if printable && !text.is_empty() && text.len() <= ID_MAX {
                    Ok($name(text.into()))
                } else {
                    Err(IdError::Opaque { kind: $kind, got: text.chars().take(ID_MAX).collect() })
                }
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!(stringify!($name), "({})"), self.0)
            }
        }
    };
}

opaque_id!(
    /// A work directory on a host: stable over restarts of its agent.
    WorkerId,
    "worker id"
);
opaque_id!(
    /// One start of an agent: new each time.
    Incarnation,
    "incarnation"
);
opaque_id!(
    /// Made by a client and kept over its retries: what makes a submit safe to repeat.
    RequestId,
    "request id"
);

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u64);

        impl $name {
            /// The one after this.
            pub fn next(self) -> $name {
                $name(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }
    };
}

counter!(
    /// A coordinator node; 0 is nobody.
    NodeId
);
counter!(
    /// (Re)start counter of a job, from 1; 0 before the first placement. Fences everything older.
    Generation
);
counter!(
    /// One optimiser update.
    Step
);

#[cfg(test)]
mod tests {
    use super::*;

    /// JOB-01.
    #[test]
    fn the_rule_for_job_ids_is_one_and_its_refusal_proposes_a_valid_id() {
        let long = "a".repeat(200);
        let cut = "a".repeat(128);
        let table = [
            ("my-job", Some("my_job")),
            ("my_job", None),
            ("My_Job", None),
            ("9lives", Some("job_9lives")),
            ("a", None),
            ("night:run", Some("night_run")),
            (long.as_str(), Some(cut.as_str())),
            ("übung", Some("job_bung")),
            ("caf\u{e9}", Some("caf_")),
            ("", Some("job")),
            ("_x", Some("job_x")),
        ];
        for (text, correction) in table {
            match (JobId::parse(text), correction) {
                (Ok(id), None) => assert_eq!(id.as_str(), text),
                (Err(error), Some(expected)) => {
                    assert!(error.to_string().contains(JOB_ID_RULE), "{error}");
                    assert_eq!(error.hint(), Some(format!("use `{expected}`")));
                    assert!(JobId::parse(expected).is_ok(), "{expected} must be valid");
                }
                (outcome, expected) => panic!("{text:?}: got {outcome:?}, expected the proposal {expected:?}"),
            }
        }
    }

    #[test]
    fn a_correction_of_a_long_id_that_starts_with_a_digit_keeps_within_the_limit() {
        let proposed = JobId::propose(&"9".repeat(128));
        assert_eq!(proposed.len(), JOB_ID_MAX);
        assert!(JobId::parse(&proposed).is_ok());
    }

    #[test]
    fn opaque_ids_are_short_and_printable() {
        assert!(WorkerId::parse("host-1:/var/lib/coord").is_ok());
        for refused in ["", "a b", "tab\t", "\u{e9}", &"x".repeat(129)] {
            assert!(WorkerId::parse(refused).is_err(), "{refused:?}");
        }
    }
}
