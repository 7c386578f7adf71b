//! Cluster tests and benchmarks.
