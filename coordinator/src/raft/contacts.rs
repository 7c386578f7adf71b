//! When each of the other members was last heard: a gauge, of this node alone.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A member that is silent for longer is called unreachable. A leader hears each follower every 200 ms.
const SILENCE: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub struct Contacts {
    heard: Mutex<BTreeMap<u64, Instant>>,
}

impl Contacts {
    pub fn heard(&self, member: u64) {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).insert(member, Instant::now());
    }

    /// Nothing if it was not heard since this node started.
    pub fn silence_of(&self, member: u64) -> Option<Duration> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).get(&member).map(Instant::elapsed)
    }
}

/// What a node that leads can say of a member that was silent for this long.
pub fn is_reachable(silence: Option<Duration>) -> bool {
    silence.is_some_and(|silence| silence <= SILENCE)
}
