//! Bytes of entries and snapshots: what lies on disk and travels between nodes, readable for ever.

mod entry;
mod job;
mod snapshot;

use coord_common::Coded;
use coord_common::convert::ConvertError;

pub use entry::{decode_entry, encode_entry};
pub(crate) use job::{failure_to_wire, interruption_to_wire};
pub use snapshot::{decode_snapshot, encode_snapshot};

/// Of entries and snapshots alike.
pub const VERSION: u32 = 1;

/// Bytes that this program cannot have written, or that a newer one has.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    #[error("decode {what}: {source}")]
    Bytes { what: &'static str, source: prost::DecodeError },
    #[error("{what} has version {got}, this program reads {VERSION}")]
    Version { what: &'static str, got: u32 },
    #[error("entry holds a command that this program does not know")]
    UnknownCommand,
    #[error("{field} has no known value, got {got:?}")]
    Unknown { field: &'static str, got: String },
    #[error(transparent)]
    Convert(#[from] ConvertError),
}

impl Coded for CodecError {
    fn code(&self) -> &'static str {
        match self {
            CodecError::Bytes { .. } => "damaged",
            CodecError::Version { .. } | CodecError::UnknownCommand => "newer_version",
            CodecError::Unknown { .. } | CodecError::Convert(_) => "invalid_message",
        }
    }

    fn retryable(&self) -> bool {
        false
    }

    fn hint(&self) -> Option<String> {
        match self {
            CodecError::Version { .. } | CodecError::UnknownCommand => {
                Some("start the newest version that has run on this cluster".to_owned())
            }
            CodecError::Bytes { .. } | CodecError::Unknown { .. } | CodecError::Convert(_) => None,
        }
    }
}

fn check_version(what: &'static str, got: u32) -> Result<(), CodecError> {
    if got == VERSION { Ok(()) } else { Err(CodecError::Version { what, got }) }
}

/// The value of a stored name, or an error that tells both.
fn known<T>(field: &'static str, name: &str, value: Option<T>) -> Result<T, CodecError> {
    value.ok_or_else(|| CodecError::Unknown { field, got: name.to_owned() })
}

#[cfg(test)]
#[path = "codec_test.rs"]
mod tests;
