//! Pure domain types shared by coordinator and worker: no I/O, no clock, no randomness.

pub mod backoff;
pub mod checkpoint;
pub mod convert;
pub mod error;
pub mod exit_rule;
pub mod fact;
pub mod heartbeat;
pub mod ids;
pub mod job;
pub mod order;
pub mod phase;
pub mod progress;
pub mod rank;
pub mod registration;
pub mod resources;
pub mod size;
pub mod time;

pub use checkpoint::CheckpointRecord;
pub use error::Coded;
pub use fact::{ExitReport, Fact, FactBody};
pub use heartbeat::Heartbeat;
pub use ids::{Generation, Incarnation, JobId, NodeId, RequestId, Step, WorkerId};
pub use job::{JobSettings, JobSpec};
pub use order::{Order, StopReason};
pub use phase::Phase;
pub use progress::Progress;
pub use rank::{Rank, ReplicaKey, replica_name};
pub use registration::Registration;
pub use resources::{Device, NumericClass};
pub use time::Millis;
