//! The detail that rides in the metadata of every error status.

use prost::Message;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

use crate::v1::ErrorDetail;

const KEY: &str = "coord-error-bin";

/// A status with its detail.
pub fn status(code: Code, text: impl Into<String>, detail: &ErrorDetail) -> Status {
    let mut metadata = MetadataMap::new();
    metadata.insert_bin(KEY, MetadataValue::from_bytes(&detail.encode_to_vec()));
    Status::with_metadata(code, text, metadata)
}

/// Whether the answer came from something that speaks HTTP but not gRPC: most often the port of `--http`.
pub fn is_no_grpc(status: &Status) -> bool {
    status.message().starts_with("grpc-status header missing")
}

/// Nothing where the status was made on the way and not by a service of ours.
pub fn detail_of(status: &Status) -> Option<ErrorDetail> {
    let value = status.metadata().get_bin(KEY)?.to_bytes().ok()?;
    ErrorDetail::decode(value).ok()
}
