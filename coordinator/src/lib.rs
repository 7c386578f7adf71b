//! The coordinator node and the `coord` command line.

pub mod cli;
pub mod clock;
pub mod handle;
pub mod leader;
pub mod metrics;
pub mod node;
pub mod raft;
pub mod rpc;
pub mod server;
pub mod settings;

pub use server::serve_until_signal as serve;
pub use settings::{ServeFlags, ServeSettings};
