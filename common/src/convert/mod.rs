//! Wire messages to domain types and back: the only place where the two meet.

mod agent;
mod job;
mod replica;

pub use agent::{
    fact_from_wire, fact_to_wire, heartbeat_from_wire, heartbeat_to_wire, order_from_wire, order_to_wire,
    registration_from_wire, registration_to_wire, report_from_wire, report_to_wire,
};
pub use job::{device_from_wire, device_to_wire, phase_from_wire, phase_to_wire, spec_from_wire, spec_to_wire};
pub use replica::{
    cause_from_wire, checkpoint_from_wire, checkpoint_to_wire, key_from_wire, key_to_wire, progress_from_wire,
    progress_to_wire,
};

use crate::error::Coded;
use crate::ids::IdError;
use crate::job::SpecError;

/// A message that cannot mean anything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    #[error("message lacks its {field}")]
    Missing { field: &'static str },
    #[error("{field} has no known value, got {got}")]
    Unknown { field: &'static str, got: String },
    #[error(transparent)]
    Id(#[from] IdError),
    #[error(transparent)]
    Spec(#[from] SpecError),
}

impl Coded for ConvertError {
    fn code(&self) -> &'static str {
        match self {
            ConvertError::Missing { .. } | ConvertError::Unknown { .. } => "invalid_message",
            ConvertError::Id(error) => error.code(),
            ConvertError::Spec(error) => error.code(),
        }
    }

    fn retryable(&self) -> bool {
        false
    }

    fn hint(&self) -> Option<String> {
        match self {
            ConvertError::Missing { .. } | ConvertError::Unknown { .. } => None,
            ConvertError::Id(error) => error.hint(),
            ConvertError::Spec(error) => error.hint(),
        }
    }
}

/// The field, or an error that names it.
pub fn required<T>(field: &'static str, value: Option<T>) -> Result<T, ConvertError> {
    value.ok_or(ConvertError::Missing { field })
}
