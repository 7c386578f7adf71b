//! Clusters of real processes: coordinators, agents and object storage that are started, killed and looked at from outside.
//!
//! Everything here panics with a message where the world is not as a test needs it: a test has nobody else to tell.

mod client;
mod data;
mod layout;
mod ports;
mod process;
mod seaweed;
mod tools;
mod waiting;

pub use client::{Ended, Followed};
pub use data::Dialogues;
pub use layout::{Cluster, Layout, step_of};
pub use ports::Port;
pub use process::{Process, is_alive, signal};
pub use seaweed::SeaweedFs;
pub use tools::{binary, promtool};
pub use waiting::{Deadline, until};
