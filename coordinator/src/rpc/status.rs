//! Errors as clients see them: a gRPC status with an [`ErrorDetail`] in its metadata.

use coord_common::Coded;
use coord_proto::detail::status;
use coord_proto::v1::ErrorDetail;
use tonic::{Code, Status};

use crate::handle::HandleError;

/// A refusal that has a code and a hint; `code` is the gRPC class that it belongs to.
pub fn refused(code: Code, error: &impl Coded) -> Status {
    let detail = ErrorDetail {
        code: error.code().to_owned(),
        hint: error.hint().unwrap_or_default(),
        retryable: error.retryable(),
        leader: String::new(),
    };
    status(code, error.to_string(), &detail)
}

/// A refusal that is stated on the spot.
pub fn plain(code: Code, stable: &str, text: impl Into<String>, hint: &str) -> Status {
    let retryable = matches!(code, Code::Unavailable | Code::DeadlineExceeded | Code::ResourceExhausted);
    let detail = ErrorDetail { code: stable.to_owned(), hint: hint.to_owned(), retryable, leader: String::new() };
    status(code, text, &detail)
}

pub fn no_such_job(job: &str) -> Status {
    plain(Code::NotFound, "no_such_job", format!("no such job: {job}"), "`coord list` shows the jobs")
}

impl From<HandleError> for Status {
    fn from(error: HandleError) -> Self {
        let code = match &error {
            HandleError::NotLeader { .. }
            | HandleError::LeadLost { .. }
            | HandleError::NoQuorum
            | HandleError::Stopping => Code::Unavailable,
            HandleError::Busy | HandleError::NoRoom => Code::ResourceExhausted,
            HandleError::TooLarge { .. } => Code::InvalidArgument,
        };
        let detail = ErrorDetail {
            code: error.code().to_owned(),
            hint: error.hint().unwrap_or_default(),
            retryable: error.retryable(),
            leader: error.leader().unwrap_or_default().to_owned(),
        };
        status(code, error.to_string(), &detail)
    }
}
