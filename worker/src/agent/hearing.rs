//! When each replica let hear of itself last. A replica sends a pulse every second, whatever it is at: silence means that
//! its process is stopped or hangs.

use std::collections::BTreeMap;

use coord_common::rank::ReplicaKey;
use coord_common::time::Millis;

/// A replica is called silent after this many pulses in a row were missed.
const SILENT_AFTER: Millis = Millis(3_000);
/// More than this between two ticks means that the agent itself stood still: that time is no replica's silence.
const STOOD_STILL: Millis = Millis(1_000);

#[derive(Debug, Default)]
pub struct Hearing {
    /// Of replicas that run; the launch counts as the first word.
    heard: BTreeMap<ReplicaKey, Millis>,
    ticked: Option<Millis>,
}

impl Hearing {
    pub fn begin(&mut self, key: ReplicaKey, now: Millis) {
        self.heard.insert(key, now);
    }

    pub fn heard(&mut self, key: &ReplicaKey, now: Millis) {
        if let Some(last) = self.heard.get_mut(key) {
            *last = now;
        }
    }

    pub fn end(&mut self, key: &ReplicaKey) {
        self.heard.remove(key);
    }

    /// Call with every tick of the agent.
    pub fn tick(&mut self, now: Millis) {
        let gap = self.ticked.replace(now).map_or(Millis::ZERO, |last| now.since(last));
        if gap > STOOD_STILL {
            for last in self.heard.values_mut() {
                *last = (*last + gap).min(now);
            }
        }
    }

    /// How long this replica has said nothing.
    pub fn silence(&self, key: &ReplicaKey, now: Millis) -> Millis {
        self.heard.get(key).map_or(Millis::ZERO, |last| now.since(*last))
    }

    /// Those that have said nothing for so long that the leader should know, with the time.
    pub fn silent(&self, now: Millis) -> Vec<(ReplicaKey, Millis)> {
        let silences = self.heard.iter().map(|(key, last)| (key.clone(), now.since(*last)));
        silences.filter(|(_, silence)| *silence > SILENT_AFTER).collect()
    }
}
