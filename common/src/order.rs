//! What the leader wants of an agent, told as often as it takes: each order may arrive twice.

use std::fmt;
use std::sync::Arc;

use crate::checkpoint::CheckpointRecord;
use crate::job::JobSpec;
use crate::rank::ReplicaKey;
use crate::time::Millis;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// An agent starts a key at most once in its life, however often it is told.
    Launch(Launch),
    Rendezvous(Rendezvous),
    Stop(Stop),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    pub key: ReplicaKey,
    pub spec: Arc<JobSpec>,
    pub world_size: u32,
    pub job_dir: String,
    /// Opens connections between replicas of this generation only.
    pub secret: String,
    /// The same for all generations of a job, another one for a later job of the same name.
    pub run: String,
}

/// All ranks are ready: meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendezvous {
    pub key: ReplicaKey,
    /// By rank.
    pub endpoints: Vec<String>,
    /// Nothing = look in storage yourself, start fresh if there is none.
    pub restore: Option<CheckpointRecord>,
}

/// End the replica. For a key that the agent neither holds nor has an unacknowledged end of, it reports an end with the
/// cause `stopped`, so that a launch lost on the way cannot hold its slots for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    pub key: ReplicaKey,
    pub reason: StopReason,
    /// Between SIGTERM and SIGKILL; zero = kill at once.
    pub grace: Millis,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopReason {
    Cancelled,
    TimeLimit,
    /// Another replica ended, or the job did.
    GenerationEnded,
    /// The job has gone on without this replica.
    Superseded,
    /// The coordinator knows no such job.
    Unknown,
}

impl StopReason {
    pub const ALL: [StopReason; 5] = [
        StopReason::Cancelled,
        StopReason::TimeLimit,
        StopReason::GenerationEnded,
        StopReason::Superseded,
        StopReason::Unknown,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            StopReason::Cancelled => "cancelled",
            StopReason::TimeLimit => "time_limit",
            StopReason::GenerationEnded => "generation_ended",
            StopReason::Superseded => "superseded",
            StopReason::Unknown => "unknown",
        }
    }
}

impl Order {
    pub fn key(&self) -> &ReplicaKey {
        match self {
            Order::Launch(launch) => &launch.key,
            Order::Rendezvous(rendezvous) => &rendezvous.key,
            Order::Stop(stop) => &stop.key,
        }
    }
}

/// One line for logs and scenarios; never the secret.
impl fmt::Display for Order {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Launch(launch) => write!(formatter, "launch {} of {}", launch.key, launch.world_size),
            Order::Rendezvous(rendezvous) => {
                write!(formatter, "rendezvous {} at {}", rendezvous.key, rendezvous.endpoints.join(","))?;
                match &rendezvous.restore {
                    Some(record) => write!(formatter, " restore {}", record.step),
                    None => Ok(()),
                }
            }
            Order::Stop(stop) => {
                write!(
                    formatter,
                    "stop {} {} grace {} s",
                    stop.key,
                    stop.reason.as_str(),
                    stop.grace.seconds_rounded_up()
                )
            }
        }
    }
}
