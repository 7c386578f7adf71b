//! Storage, configuration, shutdown and telemetry: what does I/O for both binaries.
