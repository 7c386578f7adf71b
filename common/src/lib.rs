//! Pure domain types shared by coordinator and worker: no I/O, no clock, no randomness.

pub mod backoff;
pub mod checkpoint;
pub mod convert;
pub mod error;
pub mod exit_rule;
pub mod ids;
pub mod job;
pub mod phase;
pub mod progress;
pub mod rank;
pub mod resources;
pub mod time;

pub use checkpoint::CheckpointRecord;
pub use error::Coded;
pub use ids::{Generation, Incarnation, JobId, NodeId, RequestId, Step, WorkerId};
pub use job::{JobSettings, JobSpec};
pub use phase::Phase;
pub use progress::Progress;
pub use rank::{Rank, ReplicaKey, replica_name};
pub use resources::{Device, NumericClass};
pub use time::Millis;
