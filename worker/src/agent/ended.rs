//! Replicas that have ended, so that a late order for one is not taken for a new one.

use std::collections::{BTreeMap, VecDeque};

use coord_common::rank::ReplicaKey;

/// So many are remembered.
const REMEMBERED: usize = 10_000;

#[derive(Debug, Default)]
pub struct Ended {
    oldest_first: VecDeque<ReplicaKey>,
    /// Of their launch; nothing where no launch came before the order to stop.
    secrets: BTreeMap<ReplicaKey, Option<String>>,
}

impl Ended {
    pub fn add(&mut self, key: ReplicaKey, secret: Option<String>) {
        if let Some(known) = self.secrets.get_mut(&key) {
            *known = secret.or(known.take());
            return;
        }
        self.secrets.insert(key.clone(), secret);
        self.oldest_first.push_back(key);
        if self.oldest_first.len() > REMEMBERED
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.secrets.remove(&oldest);
        }
    }

    pub fn knows(&self, key: &ReplicaKey) -> bool {
        self.secrets.contains_key(key)
    }

    /// Whether the one that ended under this key was started by another launch.
    pub fn had_another_launch(&self, key: &ReplicaKey, secret: &str) -> bool {
        self.secrets.get(key).is_some_and(|known| known.as_ref().is_some_and(|known| known != secret))
    }
}
