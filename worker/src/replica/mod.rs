//! One replica: a child process of its agent that trains one rank of one generation.

pub mod pipe;
mod reporter;
mod run;

pub use run::{EXIT_PEER_LOST, EXIT_STOPPED, run};
