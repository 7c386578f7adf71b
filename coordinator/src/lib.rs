//! The coordinator node and the `coord` command line.

pub mod cli;
pub mod raft;
