//! Reads that the leader confirms with a quorum before they are served.
//!
//! Raft drops such requests silently (before the term's first commit, without a leader), so each try carries a context
//! of its own and is made again until the reader's deadline. Reads that arrive together share a try.

use std::collections::{BTreeMap, VecDeque};

use raft::StateRole;

use super::driver::{Driver, Effect, Millis};
use super::log::Log;

const TRY_AGAIN_AFTER: Millis = 300;

struct Pending {
    deadline: Millis,
    /// The newest try that covers it.
    attempt: u64,
    tried_at: Millis,
    /// Served once this index is applied.
    index: Option<u64>,
}

#[derive(Default)]
pub(super) struct Reads {
    pending: BTreeMap<u64, Pending>,
    attempts: u64,
}

impl Reads {
    /// Any try after a read arrived confirms it, so a late answer to an older try of the same read counts too: it was
    /// asked after the read came in.
    pub(super) fn confirmed(&mut self, context: &[u8], index: u64) {
        let Ok(attempt) = context.try_into().map(u64::from_be_bytes) else { return };
        for read in self.pending.values_mut() {
            if read.attempt == attempt && read.index.is_none() {
                read.index = Some(index);
            }
        }
    }

    pub(super) fn refuse_all(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.pending).into_keys().collect()
    }
}

impl<L: Log> Driver<L> {
    pub(super) fn ask_reads(&mut self, new: VecDeque<(u64, Millis)>, now: Millis) {
        if self.node.raft.state != StateRole::Leader {
            self.effects.extend(new.into_iter().map(|(number, _)| Effect::ReadRefused { number }));
            return;
        }
        let reads = &mut self.reads;
        let mut due: Vec<u64> = reads
            .pending
            .iter()
            .filter(|(_, read)| read.index.is_none() && read.tried_at + TRY_AGAIN_AFTER <= now)
            .map(|(number, _)| *number)
            .collect();
        for (number, deadline) in new {
            reads.pending.insert(number, Pending { deadline, attempt: 0, tried_at: now, index: None });
            due.push(number);
        }
        if due.is_empty() {
            return;
        }
        reads.attempts += 1;
        let attempt = reads.attempts;
        for number in due {
            if let Some(read) = reads.pending.get_mut(&number) {
                read.attempt = attempt;
                read.tried_at = now;
            }
        }
        self.node.read_index(attempt.to_be_bytes().to_vec());
    }

    /// Serves what is applied, forgets what is past its deadline (its reader is gone).
    pub(super) fn answer_reads(&mut self, now: Millis) {
        let applied = self.applied;
        let effects = &mut self.effects;
        self.reads.pending.retain(|number, read| {
            if read.index.is_some_and(|index| index <= applied) {
                effects.push(Effect::ReadReady { number: *number });
                return false;
            }
            if read.deadline <= now {
                effects.push(Effect::ReadRefused { number: *number });
                return false;
            }
            true
        });
    }
}
