//! Facts that no leader has acknowledged yet: numbered without gaps, sent again until they are.

use std::collections::VecDeque;

use coord_common::fact::{Fact, FactBody};
use coord_common::rank::ReplicaKey;

#[derive(Debug, Default)]
pub struct Outbox {
    facts: VecDeque<Fact>,
    last_sequence: u64,
}

impl Outbox {
    /// An empty one whose numbers go on after this one, without a gap.
    pub fn after(sequence: u64) -> Self {
        Self { last_sequence: sequence, ..Self::default() }
    }

    pub fn add(&mut self, key: ReplicaKey, body: FactBody) -> Fact {
        self.last_sequence += 1;
        let fact = Fact { sequence: self.last_sequence, key, body };
        self.facts.push_back(fact.clone());
        fact
    }

    /// Oldest first.
    pub fn facts(&self) -> impl Iterator<Item = &Fact> {
        self.facts.iter()
    }

    pub fn len(&self) -> usize {
        self.facts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }

    pub fn reports_end(&self, key: &ReplicaKey) -> bool {
        let is_end = |body: &FactBody| matches!(body, FactBody::Exited(_) | FactBody::Refused { .. });
        self.facts.iter().any(|fact| fact.key == *key && is_end(&fact.body))
    }

    /// Gives those up to this sequence, which need not be sent any more.
    pub fn acknowledged(&mut self, sequence: u64) -> Vec<Fact> {
        let count = self.facts.iter().take_while(|fact| fact.sequence <= sequence).count();
        self.facts.drain(..count).collect()
    }
}
