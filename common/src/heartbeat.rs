//! What an agent says of its replicas every second.

use crate::rank::ReplicaKey;
use crate::time::Millis;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Heartbeat {
    /// Replicas that it holds.
    pub alive: Vec<ReplicaKey>,
    /// Those of them that have said nothing to it lately, and for how long.
    pub silent: Vec<(ReplicaKey, Millis)>,
}

impl Heartbeat {
    /// Of an agent that hears all its replicas.
    pub fn of(alive: impl IntoIterator<Item = ReplicaKey>) -> Self {
        Self { alive: alive.into_iter().collect(), silent: Vec::new() }
    }
}
