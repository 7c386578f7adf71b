//! One round of Raft's output, in the only order that is safe.
//!
//! 1. A leader's messages leave (they promise nothing about its own disk).
//! 2. Snapshot, entries and hard state become durable, in one synced write.
//! 3. Messages that promise them (votes, acknowledgements) leave.
//! 4. Committed entries go to the state machine.
//! 5. `advance`, then the same for the light ready that it gives, then `advance_apply`.

use raft::StateRole;
use raft::eraftpb::{Entry, EntryType};

use super::driver::{Committed, Driver, DriverError, Effect};
use super::log::{Batch, Log};

impl<L: Log> Driver<L> {
    pub(super) fn handle_ready(&mut self) -> Result<(), DriverError> {
        let mut ready = self.node.ready();
        self.effects.extend(ready.take_messages().into_iter().map(Effect::Send));

        let snapshot = (!ready.snapshot().is_empty()).then(|| ready.snapshot().clone());
        let restore = snapshot.as_ref().map(|snapshot| (snapshot.get_metadata().index, snapshot.get_data().to_vec()));
        let batch = Batch { entries: ready.take_entries(), hard_state: ready.hs().cloned(), snapshot };
        if !batch.is_empty() {
            self.node.mut_store().persist(batch)?;
        }
        self.effects.extend(ready.take_persisted_messages().into_iter().map(Effect::Send));

        if let Some((index, data)) = restore {
            self.applied = index;
            self.effects.push(Effect::Restore { index, data });
        }
        for state in ready.take_read_states() {
            self.reads.confirmed(&state.request_ctx, state.index);
        }
        // The role first: what the new leader commits is applied with waiters in place.
        if let Some(leads) = ready.ss().map(|soft| soft.raft_state == StateRole::Leader) {
            self.lead_changed(leads);
        }
        self.committed(ready.take_committed_entries());

        let mut light = self.node.advance(ready);
        self.effects.extend(light.take_messages().into_iter().map(Effect::Send));
        self.committed(light.take_committed_entries());
        self.node.advance_apply();
        Ok(())
    }

    fn lead_changed(&mut self, leads: bool) {
        if leads == self.leads {
            return;
        }
        self.leads = leads;
        if leads {
            self.effects.push(Effect::LeadWon);
        } else {
            self.effects.push(Effect::LeadLost);
            let refused = self.reads.refuse_all();
            self.effects.extend(refused.into_iter().map(|number| Effect::ReadRefused { number }));
        }
    }

    fn committed(&mut self, entries: Vec<Entry>) {
        for entry in entries {
            self.applied = entry.index;
            // Membership is fixed for the life of a cluster, so no entry changes it.
            if entry.get_entry_type() == EntryType::EntryNormal && !entry.data.is_empty() {
                self.effects.push(Effect::Apply(Committed { index: entry.index, data: entry.data.to_vec() }));
            }
        }
    }
}
