//! Cluster tests and benchmarks.

pub mod cluster;
pub mod local;
