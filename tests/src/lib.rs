//! Cluster tests and benchmarks.

pub mod bench;
pub mod cluster;
pub mod local;
