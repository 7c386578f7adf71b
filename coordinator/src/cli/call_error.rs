//! How one call can go wrong: refused by a coordinator, or never answered by one.

use std::error::Error;
use std::time::Duration;

use coord_proto::detail::{detail_of, is_no_grpc};
use thiserror::Error;
use tonic::{Code, ConnectError, Status};

use super::address::Address;
use super::exit::{Exit, Problem};

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CallError {
    /// A coordinator understood the request and said no. Trying again would not help.
    #[error("{message}")]
    Refused { grpc: Code, code: String, message: String, hint: Option<String> },
    /// Nobody answered in time, or nobody who could.
    #[error("no answer from a coordinator at {addresses} within {} s: {last}", limit.as_secs())]
    Unanswered {
        addresses: String,
        limit: Duration,
        last: String,
        hint: Option<String>,
        /// True if a request may have been carried out although its answer was lost.
        maybe_done: bool,
    },
    /// A stream broke off after it had been opened.
    #[error("the connection to the coordinator broke: {said}")]
    Broken { said: String },
}

impl CallError {
    pub fn code(&self) -> &str {
        match self {
            Self::Refused { code, .. } => code,
            Self::Unanswered { .. } => "unanswered",
            Self::Broken { .. } => "broken_stream",
        }
    }

    pub fn retryable(&self) -> bool {
        match self {
            Self::Refused { .. } => false,
            Self::Unanswered { .. } | Self::Broken { .. } => true,
        }
    }

    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Refused { hint, .. } | Self::Unanswered { hint, .. } => hint.as_deref(),
            Self::Broken { .. } => None,
        }
    }

    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { grpc: Code::NotFound, .. })
    }

    pub fn exit(&self) -> Exit {
        match self {
            Self::Refused { grpc: Code::NotFound, .. } => Exit::NotFound,
            Self::Refused { .. } => Exit::Failed,
            Self::Unanswered { .. } | Self::Broken { .. } => Exit::Usage,
        }
    }
}

impl From<CallError> for Problem {
    fn from(error: CallError) -> Self {
        Self::Said { exit: error.exit(), message: error.to_string(), hint: error.hint().map(str::to_owned) }
    }
}

/// What one failed try means for the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setback {
    pub said: String,
    pub hint: Option<String>,
    pub leader: Option<Address>,
    /// False if the request cannot have been carried out: it never left, or was turned away.
    pub maybe_done: bool,
}

/// Sorts a status into a final refusal or a reason to try again.
pub fn judge(status: &Status) -> Result<Setback, CallError> {
    let detail = detail_of(status);
    let retryable = match &detail {
        Some(detail) => detail.retryable,
        None => {
            matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Aborted)
            // Without a detail the status was made on the way: `Unknown` and `Internal` are broken connections.
            || (matches!(status.code(), Code::Unknown | Code::Internal) && status.source().is_some())
        }
    };
    let hint = detail.as_ref().map(|detail| detail.hint.clone()).filter(|hint| !hint.is_empty());
    if is_no_grpc(status) {
        return Err(CallError::Refused {
            grpc: status.code(),
            code: "no_coordinator".to_owned(),
            message: format!("what answers there is no coordinator ({})", status.message()),
            hint: Some("give the address of `coord serve --listen` (port 7070 by default), not of `--http`".to_owned()),
        });
    }
    if !retryable {
        return Err(CallError::Refused {
            grpc: status.code(),
            code: detail.map(|detail| detail.code).unwrap_or_default(),
            message: message(status),
            hint,
        });
    }
    let turned_away = detail.as_ref().is_some_and(|detail| detail.code == "not_leader");
    Ok(Setback {
        said: message(status),
        hint,
        leader: detail.and_then(|detail| Address::parse(&detail.leader).ok()),
        maybe_done: !turned_away && !never_connected(status),
    })
}

/// The status's own words, or the innermost cause of a broken connection, which says most.
fn message(status: &Status) -> String {
    let mut innermost = None;
    let mut next = status.source();
    while let Some(cause) = next {
        innermost = Some(cause.to_string());
        next = cause.source();
    }
    match innermost {
        Some(cause) => cause,
        None if status.message().is_empty() => status.code().description().to_lowercase(),
        None => status.message().to_owned(),
    }
}

fn never_connected(status: &Status) -> bool {
    let mut next = status.source();
    while let Some(cause) = next {
        if cause.is::<ConnectError>() {
            return true;
        }
        next = cause.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use coord_proto::v1;

    use super::*;
    use coord_proto::detail::status;

    #[test]
    fn an_http_server_is_no_coordinator() {
        let said = "grpc-status header missing, mapped from HTTP status code 404";
        let error = judge(&Status::unimplemented(said)).expect_err("a refusal");
        assert_eq!(error.to_string(), format!("what answers there is no coordinator ({said})"));
        assert!(error.hint().is_some_and(|hint| hint.contains("--listen")));
    }

    #[test]
    fn a_refusal_keeps_code_message_and_hint() {
        let detail =
            v1::ErrorDetail { code: "job_exists".into(), hint: "use `--unique`".into(), ..v1::ErrorDetail::default() };
        let error = judge(&status(Code::AlreadyExists, "job a exists", &detail)).expect_err("it is final");
        assert_eq!(error.code(), "job_exists");
        assert_eq!(error.to_string(), "job a exists");
        assert_eq!(error.hint(), Some("use `--unique`"));
        assert_eq!((error.exit(), error.retryable()), (Exit::Failed, false));
    }

    #[test]
    fn a_follower_names_the_leader_and_did_nothing() {
        let detail = v1::ErrorDetail {
            code: "not_leader".into(),
            retryable: true,
            leader: "10.0.0.2:7070".into(),
            ..v1::ErrorDetail::default()
        };
        let setback = judge(&status(Code::Unavailable, "not the leader", &detail)).expect("worth another try");
        assert_eq!(setback.leader, Address::parse("10.0.0.2:7070").ok());
        assert!(!setback.maybe_done);
    }

    #[test]
    fn a_lost_leader_means_that_the_outcome_is_unknown() {
        let detail = v1::ErrorDetail { code: "no_quorum".into(), retryable: true, ..v1::ErrorDetail::default() };
        let setback = judge(&status(Code::Unavailable, "no quorum", &detail)).expect("worth another try");
        assert_eq!(setback.leader, None);
        assert!(setback.maybe_done);
    }

    #[test]
    fn a_status_without_detail_is_judged_by_its_code() {
        assert!(judge(&Status::unavailable("gone")).is_ok());
        let missing = judge(&Status::not_found("no job a")).expect_err("it is final");
        assert_eq!((missing.exit(), missing.is_not_found()), (Exit::NotFound, true));
        assert!(judge(&Status::unimplemented("no such method")).is_err());
        assert!(judge(&Status::internal("a bug there")).is_err());
    }
}
