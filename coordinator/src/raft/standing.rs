//! How far a node may take part: not at all, without a vote, or fully.
//!
//! A directory that replaces a lost one holds neither the votes nor the entries that the lost one promised. It takes
//! entries from the leader at once (an acknowledgement promises only what is there) and neither votes nor campaigns
//! until it holds everything that a majority with the lost one can have committed: all that the leader had committed
//! when it was heard first, up to an entry of the leader's own term. Its term begins at the highest one that any other
//! member knew, with its vote there given to itself: so it can vote a second time in no term.

use raft::eraftpb::{HardState, Message, MessageType};
use raft::{Progress, StateRole};

use super::driver::{Driver, DriverError, Effect, MAX_INFLIGHT};
use super::identity::Stage;
use super::log::{Batch, Log};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing is taken in, and time does not pass.
    Apart,
    /// `goal` is the furthest commit index that a leader has told, and its term.
    WithoutVote {
        goal: Option<(u64, u64)>,
    },
    Full,
}

/// What a directory at this stage allows. Votes that a lost directory may have cast are excluded in the log.
pub(super) fn standing_at<L: Log>(stage: Stage, log: &mut L, node: u64) -> Result<Standing, DriverError> {
    match stage {
        Stage::New => Ok(Standing::Apart),
        Stage::Admitted | Stage::Used => Ok(Standing::Full),
        Stage::CatchingUp { term } => {
            forbid_votes_up_to(log, node, term)?;
            Ok(Standing::WithoutVote { goal: None })
        }
    }
}

fn forbid_votes_up_to<L: Log>(log: &mut L, node: u64, term: u64) -> Result<(), DriverError> {
    let mut hard_state: HardState = log.initial_state()?.hard_state;
    if hard_state.term < term {
        hard_state.term = term;
        hard_state.vote = node;
        log.persist(Batch { hard_state: Some(hard_state), ..Batch::default() })?;
    }
    Ok(())
}

impl<L: Log> Driver<L> {
    /// The members have answered. A node that takes part already changes nothing.
    pub(super) fn take_part(&mut self, stage: Stage) -> Result<(), DriverError> {
        if self.standing == Standing::Apart {
            let node = self.node.raft.id;
            self.standing = standing_at(stage, self.node.mut_store(), node)?;
            let hard_state = self.node.store().initial_state()?.hard_state;
            self.node.raft.load_state(&hard_state);
        }
        Ok(())
    }

    /// Whether a message may reach Raft. Counts what a leader has committed while this node catches up.
    pub(super) fn takes(&mut self, message: &Message) -> bool {
        match &mut self.standing {
            Standing::Apart => false,
            Standing::Full => true,
            Standing::WithoutVote { goal } => match message.get_msg_type() {
                MessageType::MsgRequestVote | MessageType::MsgRequestPreVote | MessageType::MsgTimeoutNow => false,
                MessageType::MsgAppend => {
                    if message.term >= self.node.raft.term {
                        let furthest = goal.map_or(0, |(index, _)| index).max(message.commit);
                        *goal = Some((furthest, message.term));
                    }
                    true
                }
                // Sent before the leader heard that what this node had acknowledged is lost: it begins anew soon.
                MessageType::MsgHeartbeat => message.commit <= self.node.raft.raft_log.last_index(),
                _ => true,
            },
        }
    }

    /// Checks what a leader believes that this node has: Raft itself would panic.
    pub(super) fn check_promises(&self, message: &Message) -> Result<(), DriverError> {
        let raft = &self.node.raft;
        let last = raft.raft_log.last_index();
        let claims = message.get_msg_type() == MessageType::MsgHeartbeat && message.term >= raft.term;
        if claims && message.commit > last {
            return Err(DriverError::LostEntries { member: message.from, acknowledged: message.commit, last });
        }
        Ok(())
    }

    /// A new directory ends at once. One that holds votes and entries ends when most of the others refuse it: a single one
    /// may itself have been put back from an old copy.
    pub(super) fn known_by_another(&mut self, member: u64) -> Result<(), DriverError> {
        let is_news = self.refused_by.insert(member);
        let others = self.node.raft.prs().conf().voters().ids().iter().filter(|id| *id != self.node.raft.id).count();
        if self.standing != Standing::Full || self.refused_by.len() * 2 > others {
            return Err(DriverError::KnownByAnother { member });
        }
        if is_news {
            tracing::error!(member, "this member remembers another data directory of this node: check both");
        }
        Ok(())
    }

    pub(super) fn end_catching_up(&mut self) {
        let Standing::WithoutVote { goal: Some((index, term)) } = self.standing else { return };
        let raft = &self.node.raft;
        let committed = raft.raft_log.committed;
        let of_leader = raft.term == term && raft.raft_log.term(committed).is_ok_and(|entry| entry == term);
        if committed >= index && of_leader {
            self.standing = Standing::Full;
            self.effects.push(Effect::CaughtUp);
        }
    }

    /// A member has lost what it acknowledged: a leader sends it everything anew.
    pub(super) fn forget_progress(&mut self, member: u64) {
        if self.node.raft.state == StateRole::Leader
            && let Some(progress) = self.node.raft.mut_prs().get_mut(member)
        {
            *progress = Progress::new(1, MAX_INFLIGHT);
        }
    }
}
