//! What a command ends with: the exit statuses, and the problem that is said before a bad one.

use coord_proto::v1;
use thiserror::Error;

/// Exit statuses, the same for every command. Scripts depend on the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    /// The job failed, or the request was refused.
    Failed = 1,
    /// Bad usage, or an environment in which the command cannot work: no coordinator, no worker binary.
    Usage = 2,
    Cancelled = 3,
    /// The job's `--max-running-time`, or the `--timeout` of `coord wait`.
    TimeLimit = 4,
    /// No such job, or a job that was removed while it was followed.
    NotFound = 5,
    Interrupted = 130,
}

impl Exit {
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The one that a command for several jobs ends with: what nobody asked for weighs more than what somebody did.
    pub fn worse(self, other: Self) -> Self {
        let weight = |exit: Self| match exit {
            Self::Done => 0,
            Self::Cancelled => 1,
            Self::TimeLimit => 2,
            Self::Failed => 3,
            Self::NotFound => 4,
            Self::Usage => 5,
            Self::Interrupted => 6,
        };
        if weight(other) > weight(self) { other } else { self }
    }

    /// The status that tells how a job ended; nothing while it has not.
    pub fn of_job(phase: v1::Phase, ended_by: &str) -> Option<Self> {
        let by_time_limit = ended_by == "time_limit";
        match phase {
            v1::Phase::Succeeded => Some(Self::Done),
            v1::Phase::Failed | v1::Phase::Cancelled if by_time_limit => Some(Self::TimeLimit),
            v1::Phase::Failed => Some(Self::Failed),
            v1::Phase::Cancelled => Some(Self::Cancelled),
            v1::Phase::Unspecified
            | v1::Phase::Queued
            | v1::Phase::Preparing
            | v1::Phase::Running
            | v1::Phase::Cancelling => None,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command did not do what was asked.
#[derive(Debug, Error)]
pub enum Problem {
    #[error("{message}")]
    Said { exit: Exit, message: String, hint: Option<String> },
    /// `coord list | head`: nobody reads on, so there is nothing to say and nothing went wrong.
    #[error("standard output was closed by its reader")]
    PipeClosed,
}

impl Problem {
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self::Said { exit, message: message.into(), hint: None }
    }

    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub fn hint(self, text: impl Into<String>) -> Self {
        match self {
            Self::Said { exit, message, .. } => Self::Said { exit, message, hint: Some(text.into()) },
            Self::PipeClosed => Self::PipeClosed,
        }
    }

    /// Puts what was being done before the cause: `cannot submit job: ...`.
    pub fn context(self, doing: &str) -> Self {
        match self {
            Self::Said { exit, message, hint } => Self::Said { exit, message: format!("{doing}: {message}"), hint },
            Self::PipeClosed => Self::PipeClosed,
        }
    }

    pub fn exit(&self) -> Exit {
        match self {
            Self::Said { exit, .. } => *exit,
            Self::PipeClosed => Exit::Done,
        }
    }

    /// The text for standard error; nothing for a closed pipe.
    pub fn render(&self) -> String {
        match self {
            Self::Said { message, hint: Some(hint), .. } => format!("error: {message}\nhint: {hint}\n"),
            Self::Said { message, hint: None, .. } => format!("error: {message}\n"),
            Self::PipeClosed => String::new(),
        }
    }
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::PipeClosed;
        }
        Self::new(Exit::Usage, error.to_string())
    }
}

impl From<coord_io::storage::StorageError> for Problem {
    fn from(error: coord_io::storage::StorageError) -> Self {
        use coord_io::storage::StorageError;
        let exit = match &error {
            StorageError::InvalidUrl { .. } => Exit::Usage,
            StorageError::NotFound { .. } => Exit::NotFound,
            StorageError::NotAFile { .. }
            | StorageError::Denied { .. }
            | StorageError::Unauthenticated { .. }
            | StorageError::Other { .. } => Exit::Failed,
        };
        Self::Said { exit, hint: error.hint(), message: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_of_a_job_has_its_own_status() {
        let table = [
            (v1::Phase::Succeeded, "", Some(0)),
            (v1::Phase::Failed, "", Some(1)),
            (v1::Phase::Cancelled, "user", Some(3)),
            (v1::Phase::Cancelled, "time_limit", Some(4)),
            (v1::Phase::Failed, "time_limit", Some(4)),
            (v1::Phase::Queued, "", None),
            (v1::Phase::Preparing, "", None),
            (v1::Phase::Running, "", None),
            (v1::Phase::Cancelling, "user", None),
            (v1::Phase::Unspecified, "", None),
        ];
        for (phase, ended_by, expected) in table {
            assert_eq!(Exit::of_job(phase, ended_by).map(Exit::code), expected, "{phase:?} by {ended_by:?}");
        }
    }

    #[test]
    fn of_several_ends_the_worst_counts() {
        assert_eq!(Exit::Done.worse(Exit::Cancelled), Exit::Cancelled);
        assert_eq!(Exit::Failed.worse(Exit::Cancelled), Exit::Failed);
        assert_eq!(Exit::NotFound.worse(Exit::Failed), Exit::NotFound);
        assert_eq!(Exit::Done.worse(Exit::Done), Exit::Done);
    }

    #[test]
    fn a_problem_is_one_error_line_and_at_most_one_hint() {
        let problem = Problem::failed("workers must be between 1 and 8, got 9")
            .hint("use `--micro-batches 16` to allow more workers")
            .context("cannot submit job");
        assert_eq!(
            problem.render(),
            "error: cannot submit job: workers must be between 1 and 8, got 9\n\
             hint: use `--micro-batches 16` to allow more workers\n"
        );
        assert_eq!(problem.exit(), Exit::Failed);
    }

    #[test]
    fn a_closed_pipe_is_silent_and_no_failure() {
        let problem = Problem::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert_eq!((problem.render().as_str(), problem.exit()), ("", Exit::Done));
    }
}
