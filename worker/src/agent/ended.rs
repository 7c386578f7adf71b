//! Replicas that have ended, so that a late order for one is not taken for a new one.

use std::collections::{BTreeSet, VecDeque};

use coord_common::rank::ReplicaKey;

/// Ended replicas that are remembered; the oldest go first.
const KEYS_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub struct EndedReplicas {
    oldest_first: VecDeque<ReplicaKey>,
    keys: BTreeSet<ReplicaKey>,
}

impl EndedReplicas {
    pub fn add(&mut self, key: ReplicaKey) {
        if !self.keys.insert(key.clone()) {
            return;
        }
        self.oldest_first.push_back(key);
        if self.oldest_first.len() > KEYS_MAX
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.keys.remove(&oldest);
        }
    }

    pub fn knows(&self, key: &ReplicaKey) -> bool {
        self.keys.contains(key)
    }
}
