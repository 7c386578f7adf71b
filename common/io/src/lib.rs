//! Storage, configuration, shutdown and telemetry: what does I/O for both binaries.

pub mod crypto;
pub mod http;
pub mod shutdown;
pub mod storage;
pub mod telemetry;
