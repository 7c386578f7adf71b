//! Cluster tests and benchmarks.

pub mod local;
