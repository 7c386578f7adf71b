//! What all nodes know of a worker.

use coord_common::{Incarnation, Millis, Registration};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// As the agent gave it at its newest start; `alive` and `facts_acknowledged` are kept empty here.
    pub registration: Registration,
    pub lost: bool,
    /// It takes no more replicas.
    pub leaving: bool,
    /// Highest fact sequence of this incarnation that has been applied.
    pub facts_applied: u64,
    /// When it registered, began to leave, or was lost.
    pub since: Millis,
}

impl Worker {
    pub fn new(registration: &Registration, at: Millis) -> Worker {
        let facts_applied = registration.facts_acknowledged;
        let kept = Registration { alive: Vec::new(), facts_acknowledged: 0, ..registration.clone() };
        Worker { registration: kept, lost: false, leaving: false, facts_applied, since: at }
    }

    pub fn incarnation(&self) -> &Incarnation {
        &self.registration.incarnation
    }

    /// May take replicas, as far as the log knows.
    pub fn takes_replicas(&self) -> bool {
        !self.lost && !self.leaving
    }

    /// Slots, device or numeric class differ: what a start of an agent can change, and nothing else can.
    pub fn differs_in_kind(&self, other: &Registration) -> bool {
        let own = &self.registration;
        (own.slots, own.device, &own.numeric_class) != (other.slots, other.device, &other.numeric_class)
    }
}
