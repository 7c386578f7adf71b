//! Starts replicas as child processes, captures their output, ends them.

mod output;
mod process;

pub use output::{LINE_LIMIT, Stream};
pub use process::{Exited, Launched, ReplicaEvent, signal_group, spawn};
