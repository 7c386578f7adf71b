//! What happens to an agent, and what it does: the two sides of its step function.

use coord_common::checkpoint::CheckpointRecord;
use coord_common::exit_rule::Cause;
use coord_common::fact::Fact;
use coord_common::heartbeat::Heartbeat;
use coord_common::ids::Step;
use coord_common::order::{Launch, Order, Rendezvous};
use coord_common::progress::Progress;
use coord_common::rank::ReplicaKey;
use coord_common::time::Millis;

use crate::launch::Exited;

#[derive(Debug)]
pub enum Event {
    /// A stream to a leader is open.
    Connected,
    Disconnected,
    /// The leader took the registration. `begun` tells its cluster from one that lost its state and began again.
    Registered {
        begun: Millis,
    },
    Order(Order),
    /// All facts up to this sequence are committed.
    Acknowledged(u64),
    Listening {
        key: ReplicaKey,
        endpoint: String,
    },
    Started {
        key: ReplicaKey,
        step: Step,
    },
    /// It runs, and has nothing else to say.
    Pulse {
        key: ReplicaKey,
    },
    Progressed {
        key: ReplicaKey,
        progress: Progress,
    },
    Saved {
        key: ReplicaKey,
        record: CheckpointRecord,
    },
    /// The replica's last word, before its end.
    Finished {
        key: ReplicaKey,
        cause: Cause,
        message: String,
    },
    /// The process is gone and its output is complete.
    Exited {
        key: ReplicaKey,
        exited: Exited,
        tail: String,
    },
    /// It could not be started.
    StartFailed {
        key: ReplicaKey,
        reason: String,
    },
    Tick,
    /// SIGTERM or SIGINT.
    Shutdown,
}

impl Event {
    /// The replica that lets hear of itself by this event.
    pub fn speaker(&self) -> Option<&ReplicaKey> {
        match self {
            Self::Listening { key, .. }
            | Self::Started { key, .. }
            | Self::Pulse { key }
            | Self::Progressed { key, .. }
            | Self::Saved { key, .. }
            | Self::Finished { key, .. } => Some(key),
            Self::Connected
            | Self::Disconnected
            | Self::Registered { .. }
            | Self::Order(_)
            | Self::Acknowledged(_)
            | Self::Exited { .. }
            | Self::StartFailed { .. }
            | Self::Tick
            | Self::Shutdown => None,
        }
    }
}

#[derive(Debug, PartialEq)]
pub enum Effect {
    Register,
    Heartbeat(Heartbeat),
    SendFact(Fact),
    SendProgress {
        key: ReplicaKey,
        progress: Progress,
    },
    SendLeaving,
    Start(Launch),
    Meet(Rendezvous),
    /// The coordinator has recorded a checkpoint of this replica.
    Recorded {
        key: ReplicaKey,
        step: Step,
    },
    Terminate(ReplicaKey),
    Kill(ReplicaKey),
    /// Nothing is left to do: end the process.
    Leave,
}
