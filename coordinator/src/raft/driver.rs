//! The Raft node as a step function: events and the time in, effects out.

use std::collections::{BTreeSet, VecDeque};

use raft::eraftpb::{Message, MessageType, SnapshotMetadata};
use raft::{Config, RawNode, ReadOnlyOption, SnapshotStatus, StateRole};
use thiserror::Error;

use super::identity::Stage;
use super::log::{Log, LogError};
use super::reads::Reads;
use super::standing::{Standing, standing_at};

/// Milliseconds on a clock that never goes back.
pub type Millis = u64;

pub const TICK_MILLIS: Millis = 100;
/// An election starts after 1 to 2 s of silence.
const ELECTION_TICKS: usize = 10;
const HEARTBEAT_TICKS: usize = 2;
/// After a stall of the process (a slow disk, a suspended machine) at most this many ticks are made up for.
const TICKS_CAUGHT_UP: u64 = 3;
const MESSAGE_BYTES: u64 = 1 << 20;
const UNCOMMITTED_BYTES: u64 = 64 << 20;
const APPLY_BYTES: u64 = 4 << 20;
pub(super) const MAX_INFLIGHT: usize = 128;

#[derive(Debug, Error)]
pub enum DriverError {
    #[error("persist raft state: {0}")]
    Log(#[from] LogError),
    #[error("step raft: {0}")]
    Raft(#[from] raft::Error),
    #[error("this node has acknowledged entries up to {acknowledged} to node {member}, and its log ends at {last}")]
    LostEntries { member: u64, acknowledged: u64, last: u64 },
    #[error("node {member} knows this node by another data directory")]
    KnownByAnother { member: u64 },
}

#[derive(Debug)]
pub enum Event {
    /// Time has passed.
    Tick,
    /// From another member.
    Receive(Message),
    /// Append these bytes. Refused unless this node leads; the owner ties the number to its waiter.
    Propose {
        number: u64,
        data: Vec<u8>,
    },
    /// Tell when everything acknowledged before now is applied here. Refused unless this node leads.
    Read {
        number: u64,
        deadline: Millis,
    },
    /// The last message to this member was lost.
    Unreachable(u64),
    SnapshotSent {
        to: u64,
        arrived: bool,
    },
    /// Hand the lead to the member that has most of the log.
    GiveUpLead,
    /// The members have said what this node may do with its new data directory; the owner has remembered it there.
    TakePart(Stage),
    /// A member refuses this node: it remembers another data directory of its number.
    KnownByAnother {
        member: u64,
    },
    /// A member has a new data directory in the place of a lost one.
    Replaced(u64),
}

/// A committed entry. Entries without data (each leader appends one) are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    pub index: u64,
    pub data: Vec<u8>,
}

/// Handled in order. Messages in `Send` may leave: what they promise is durable.
#[derive(Debug)]
pub enum Effect {
    Send(Message),
    Apply(Committed),
    /// Replace the state machine by this snapshot.
    Restore {
        index: u64,
        data: Vec<u8>,
    },
    /// The read may be served now.
    ReadReady {
        number: u64,
    },
    /// The proposal or read was not taken: this node does not lead, or has no room. Nothing was appended.
    ProposalRefused {
        number: u64,
        refusal: Refusal,
    },
    ReadRefused {
        number: u64,
    },
    /// The lead was lost: whether open proposals commit is unknown from here.
    LeadLost,
    LeadWon,
    /// The node has all that its lost directory had, and votes from now on.
    CaughtUp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    NotLeader,
    /// The disk is below its reserve.
    NoRoom,
    /// Too much is waiting for the other members.
    Busy,
}

/// Where the node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Status {
    pub node: u64,
    /// 0 = none known.
    pub leader: u64,
    pub leads: bool,
    pub term: u64,
    pub committed: u64,
    pub applied: u64,
}

pub struct Driver<L: Log> {
    pub(super) node: RawNode<L>,
    pub(super) reads: Reads,
    pub(super) effects: Vec<Effect>,
    pub(super) applied: u64,
    pub(super) leads: bool,
    pub(super) standing: Standing,
    /// Members that remember another directory of this number.
    pub(super) refused_by: BTreeSet<u64>,
    next_tick: Millis,
}

impl<L: Log> Driver<L> {
    /// A driver over what lies in `log`, of a directory at this stage. The owner restores the newest snapshot first, then
    /// runs [`Driver::on`].
    pub fn new(node: u64, mut log: L, stage: Stage, now: Millis) -> Result<Self, DriverError> {
        let standing = standing_at(stage, &mut log, node)?;
        let state = log.initial_state()?;
        let (applied, _) = log.latest_snapshot()?;
        let config = Config {
            id: node,
            applied,
            election_tick: ELECTION_TICKS,
            heartbeat_tick: HEARTBEAT_TICKS,
            max_size_per_msg: MESSAGE_BYTES,
            max_inflight_msgs: MAX_INFLIGHT,
            max_uncommitted_size: UNCOMMITTED_BYTES,
            max_committed_size_per_ready: APPLY_BYTES,
            pre_vote: true,
            check_quorum: true,
            read_only_option: ReadOnlyOption::Safe,
            ..Config::default()
        };
        let lone = standing == Standing::Full && state.conf_state.get_voters() == [node];
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let mut raw = RawNode::new(&config, log, &logger)?;
        if lone {
            // Nobody to wait for.
            raw.campaign()?;
        }
        Ok(Self {
            node: raw,
            reads: Reads::default(),
            effects: Vec::new(),
            applied,
            leads: false,
            standing,
            refused_by: BTreeSet::new(),
            next_tick: now + TICK_MILLIS,
        })
    }

    /// Takes in a group of events, makes durable what they lead to (one synced write a round), and says what is to be
    /// done. Everything that arrived meanwhile belongs into one call: that is how many proposals share one write.
    pub fn on(&mut self, events: impl IntoIterator<Item = Event>, now: Millis) -> Result<Vec<Effect>, DriverError> {
        self.tick(now);
        let mut reads = VecDeque::new();
        for event in events {
            match event {
                Event::Tick => {}
                Event::Receive(message) => self.receive(message)?,
                Event::Propose { number, data } => self.propose(number, data),
                Event::Read { number, deadline } => reads.push_back((number, deadline)),
                Event::Unreachable(member) => self.node.report_unreachable(member),
                Event::SnapshotSent { to, arrived } => {
                    let status = if arrived { SnapshotStatus::Finish } else { SnapshotStatus::Failure };
                    self.node.report_snapshot(to, status);
                }
                Event::GiveUpLead => self.give_up_lead(),
                Event::TakePart(stage) => self.take_part(stage)?,
                Event::KnownByAnother { member } => self.known_by_another(member)?,
                Event::Replaced(member) => self.forget_progress(member),
            }
        }
        self.ask_reads(reads, now);
        while self.node.has_ready() {
            self.handle_ready()?;
        }
        self.end_catching_up();
        self.answer_reads(now);
        Ok(std::mem::take(&mut self.effects))
    }

    pub fn status(&self) -> Status {
        let raft = &self.node.raft;
        Status {
            node: raft.id,
            leader: raft.leader_id,
            leads: self.leads,
            term: raft.term,
            committed: raft.raft_log.committed,
            applied: self.applied,
        }
    }

    pub fn log(&self) -> &L {
        self.node.store()
    }

    pub fn log_mut(&mut self) -> &mut L {
        self.node.mut_store()
    }

    /// Stores a snapshot of the state machine as it is after the last `Apply`, and compacts the log.
    pub fn compact(&mut self, data: Vec<u8>) -> Result<(), DriverError> {
        let mut metadata = SnapshotMetadata::default();
        metadata.set_index(self.applied);
        metadata.set_term(self.node.raft.raft_log.term(self.applied)?);
        metadata.set_conf_state(self.node.raft.prs().conf().to_conf_state());
        self.node.mut_store().compact(metadata, data)?;
        Ok(())
    }

    fn tick(&mut self, now: Millis) {
        let mut due = 0;
        while self.next_tick <= now {
            self.next_tick += TICK_MILLIS;
            due += 1;
            if due == TICKS_CAUGHT_UP {
                self.next_tick = self.next_tick.max(now + 1);
            }
        }
        // Who may not vote may not campaign either: time would lead to that.
        if self.standing == Standing::Full {
            for _ in 0..due {
                self.node.tick();
            }
        }
    }

    fn receive(&mut self, message: Message) -> Result<(), DriverError> {
        if !self.takes(&message) {
            return Ok(());
        }
        self.check_promises(&message)?;
        let grows_the_log = matches!(message.get_msg_type(), MessageType::MsgAppend | MessageType::MsgSnapshot);
        if grows_the_log && !self.node.store().has_room() {
            // As if it were lost: the leader sends it again.
            return Ok(());
        }
        if let Err(error) = self.node.step(message) {
            // Messages of strangers and stale ones: nothing to do about them.
            tracing::debug!(%error, "raft message refused");
        }
        Ok(())
    }

    fn propose(&mut self, number: u64, data: Vec<u8>) {
        let refusal = if self.node.raft.state != StateRole::Leader {
            Some(Refusal::NotLeader)
        } else if !self.node.store().has_room() {
            Some(Refusal::NoRoom)
        } else {
            self.node.propose(Vec::new(), data).err().map(|_| Refusal::Busy)
        };
        if let Some(refusal) = refusal {
            self.effects.push(Effect::ProposalRefused { number, refusal });
        }
    }

    fn give_up_lead(&mut self) {
        let raft = &self.node.raft;
        if raft.state != StateRole::Leader {
            return;
        }
        let nearest = raft
            .prs()
            .iter()
            .filter(|(id, _)| **id != raft.id)
            // A leader of a moment ago has heard nobody yet: then any member is as good.
            .max_by_key(|(_, progress)| (progress.recent_active, progress.matched))
            .map(|(id, _)| *id);
        if let Some(member) = nearest {
            self.node.transfer_leader(member);
        }
    }
}
