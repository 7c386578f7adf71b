//! The pure state machine of the coordinator: no tokio, no clock, no randomness, no hash maps.
//!
//! [`apply`] changes the state on every node, [`plan`] proposes on the leader, [`explain`] tells people why a job waits,
//! [`check`] proves that the state is sound. Everything else in the coordinator is a shell around these four.

pub mod apply;
pub mod blocker;
pub mod codec;
pub mod effect;
pub mod entry;
pub mod explain;
pub mod generation;
pub mod invariants;
pub mod job;
pub mod limits;
pub mod liveness;
pub mod orders;
pub mod placement;
pub mod plan;
pub mod queue;
pub mod reply;
pub mod schedule;
pub mod stall;
pub mod state;
pub mod view;
pub mod worker;

pub use apply::apply;
pub use blocker::Blocker;
pub use effect::{Applied, Effect};
pub use entry::{CancelBy, Command, Entry};
pub use explain::explain;
pub use invariants::{Violation, check};
pub use liveness::{Liveness, Policy, Seen};
pub use plan::plan;
pub use reply::{Rejection, Reply};
pub use state::ClusterState;
