//! The loop that owns the Raft driver and the replicated state: one thread, one round at a time.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use coordinator_core::codec::{self, CodecError};
use coordinator_core::{ClusterState, Command, Entry, Reply, apply};
use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use crate::clock::Clock;
use crate::handle::{self, CoordinatorHandle, DEADLINE, HandleError, Input, View};
use crate::raft::driver::{Driver, DriverError, Effect, Event, TICK_MILLIS};
use crate::raft::identity::{Identity, Stage};
use crate::raft::introduction;
use crate::raft::log::disk::DiskLog;
use crate::raft::log::{Log, LogError, lost};
use crate::raft::membership::Members;
use crate::raft::proposals::Proposals;
use crate::raft::transport::Transport;

/// Commands that may wait for the next round.
const INBOX: usize = 4_096;
/// Most events of one round: they share one synced write.
const ROUND: usize = 1_024;
pub const COMMAND_BYTES_MAX: usize = 2 << 20;
const SNAPSHOT_AFTER_ENTRIES: u64 = 10_000;
const SNAPSHOT_AFTER_BYTES: u64 = 32 << 20;
const PURGE_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug, Error)]
pub enum NodeError {
    #[error("open the data directory: {0}")]
    Open(#[from] LogError),
    #[error(transparent)]
    Driver(#[from] DriverError),
    #[error("decode log entry {index}: {source}")]
    Entry { index: u64, source: CodecError },
    #[error("decode snapshot at {index}: {source}")]
    Snapshot { index: u64, source: CodecError },
    #[error("start the raft thread: {0}")]
    Thread(std::io::Error),
}

impl NodeError {
    /// `alone`: the node is the only member of its cluster.
    pub fn hint(&self, data_dir: &Path, alone: bool) -> Option<String> {
        match self {
            Self::Open(error) | Self::Driver(DriverError::Log(error)) => error.hint(alone),
            Self::Driver(DriverError::LostEntries { .. } | DriverError::KnownByAnother { .. }) => {
                Some(lost(data_dir, alone))
            }
            Self::Entry { .. } | Self::Snapshot { .. } => {
                Some("a newer version wrote this; start at least that version".to_owned())
            }
            Self::Driver(DriverError::Raft(_)) | Self::Thread(_) => None,
        }
    }
}

struct Node {
    driver: Driver<DiskLog>,
    state: Arc<RwLock<ClusterState>>,
    members: Arc<Members>,
    identity: Arc<Identity>,
    transport: Transport,
    outside: mpsc::Sender<Vec<coordinator_core::Effect>>,
    proposals: Proposals<Result<Reply, HandleError>>,
    reads: Proposals<Result<(), HandleError>>,
    views: watch::Sender<View>,
    view: View,
    clock: Clock,
    snapshot_index: u64,
    purged: Instant,
    stop: bool,
}

/// Opens the data directory and starts the loop. With `rejoin` a new directory takes the place of one that was lost.
///
/// The receiver gets the loop's end: nothing after [`Input::Stop`], otherwise the error that stopped it. Peers are reached
/// through tasks on `runtime`. While this node leads, what follows from each round goes to `effects`; a full channel
/// loses it.
pub fn start(
    data_dir: &Path,
    members: Members,
    rejoin: bool,
    runtime: &Handle,
    clock: Clock,
    effects: mpsc::Sender<Vec<coordinator_core::Effect>>,
) -> Result<(CoordinatorHandle, oneshot::Receiver<Option<NodeError>>), NodeError> {
    let (log, identity) = open(data_dir, &members)?;
    if rejoin && identity.stage() != Stage::New {
        tracing::warn!(data_dir = %data_dir.display(), "--rejoin has no effect: the data directory is not new");
    }
    let (snapshot_index, data) = log.latest_snapshot()?;
    let state = match snapshot_index {
        0 => ClusterState::default(),
        index => codec::decode_snapshot(&data).map_err(|source| NodeError::Snapshot { index, source })?,
    };
    let driver = Driver::new(members.node, log, identity.stage(), 0)?;
    let (inbox, inputs) = mpsc::channel(INBOX);
    let (events, arriving) = mpsc::channel(INBOX);
    let view = View { raft: driver.status(), changes: 0 };
    let (views, watched) = watch::channel(view);
    let members = Arc::new(members);
    let identity = Arc::new(identity);
    let state = Arc::new(RwLock::new(state));
    let transport = Transport::start(&members, &identity, runtime, &events);
    introduction::start(members.clone(), identity.clone(), rejoin, runtime, events.clone());
    let handle = CoordinatorHandle {
        inbox,
        events,
        views: watched,
        state: state.clone(),
        members: members.clone(),
        identity: identity.clone(),
        contacts: Arc::default(),
    };
    let (begin, _) = uuid::Uuid::new_v4().as_u64_pair();
    let node = Node {
        driver,
        state,
        members,
        identity,
        transport,
        outside: effects,
        proposals: Proposals::new(begin),
        reads: Proposals::new(0),
        views,
        view,
        clock,
        snapshot_index,
        purged: Instant::now(),
        stop: false,
    };
    let (ended, end) = oneshot::channel();
    let timer = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(NodeError::Thread)?;
    std::thread::Builder::new()
        .name("raft".to_owned())
        .spawn(move || {
            let result = timer.block_on(node.run(inputs, arriving));
            let _ = ended.send(result.err());
        })
        .map_err(NodeError::Thread)?;
    Ok((handle, end))
}

/// The log of `data_dir` and whose it is. A directory that was used and has no log any more is refused.
fn open(data_dir: &Path, members: &Members) -> Result<(DiskLog, Identity), LogError> {
    let known = Identity::read(data_dir, members.node)?;
    // The log also knows whose directory it is: a wrong number leaves nothing behind.
    let log = DiskLog::open(data_dir, members.node, &members.voters())?;
    let identity = match known {
        Some(identity) => identity,
        None => Identity::create(data_dir, members.node)?,
    };
    match (identity.stage(), log.is_used()) {
        (Stage::Used, false) => return Err(LogError::Emptied { data_dir: data_dir.to_owned() }),
        // Also a directory of a version before identities.
        (Stage::New | Stage::Admitted, true) => identity.reach(Stage::Used)?,
        // Nobody else can know a lone node.
        (Stage::New, false) if members.are_alone() => identity.reach(Stage::Admitted)?,
        (Stage::New | Stage::Admitted, false) | (Stage::Used, true) | (Stage::CatchingUp { .. }, _) => {}
    }
    Ok((log, identity))
}

impl Node {
    async fn run(
        mut self,
        mut inbox: mpsc::Receiver<Input>,
        mut events: mpsc::Receiver<Event>,
    ) -> Result<(), NodeError> {
        let mut ticks = tokio::time::interval(Duration::from_millis(TICK_MILLIS));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !self.stop {
            let mut round = Vec::new();
            tokio::select! {
                Some(event) = events.recv() => round.push(event),
                input = inbox.recv() => match input {
                    Some(input) => self.take(input, &mut round),
                    // Nobody is left who could ask for anything.
                    None => self.stop = true,
                },
                _ = ticks.tick() => round.push(Event::Tick),
            }
            while round.len() < ROUND
                && let Ok(event) = events.try_recv()
            {
                round.push(event);
            }
            while round.len() < ROUND
                && let Ok(input) = inbox.try_recv()
            {
                self.take(input, &mut round);
            }
            for event in &round {
                if let Event::TakePart(stage) = event {
                    self.identity.reach(*stage)?;
                    tracing::info!(standing = %stage, "the other nodes have taken in the new data directory");
                }
            }
            let now = self.now();
            let effects = self.driver.on(round, now)?;
            self.handle(effects)?;
            self.upkeep()?;
        }
        Ok(())
    }

    /// Milliseconds since the start.
    fn now(&self) -> u64 {
        self.clock.since_start().0
    }

    fn take(&mut self, input: Input, round: &mut Vec<Event>) {
        match input {
            Input::Propose { command, answer } => self.propose(command, answer, round),
            Input::Read { answer } => {
                let number = self.reads.register(answer);
                let deadline = self.now() + DEADLINE.as_millis() as u64;
                round.push(Event::Read { number, deadline });
            }
            Input::GiveUpLead => round.push(Event::GiveUpLead),
            Input::Stop => self.stop = true,
        }
    }

    fn propose(
        &mut self,
        command: Command,
        answer: oneshot::Sender<Result<Reply, HandleError>>,
        round: &mut Vec<Event>,
    ) {
        let proposal = self.proposals.register(answer);
        let data = codec::encode_entry(&Entry { at: self.clock.now(), proposal, command });
        if data.len() > COMMAND_BYTES_MAX {
            let error = HandleError::TooLarge { got: data.len(), limit: COMMAND_BYTES_MAX };
            self.proposals.answer(proposal, Err(error));
            return;
        }
        round.push(Event::Propose { number: proposal, data });
    }

    fn handle(&mut self, effects: Vec<Effect>) -> Result<(), NodeError> {
        let state = self.state.clone();
        // The role first: who is told of a command's effect must find the view of the node that took it.
        self.publish(false);
        let mut changed = false;
        let mut outside = Vec::new();
        let leader = handle::hint(&self.members, &self.driver.status());
        for effect in effects {
            match effect {
                Effect::Send(message) => self.transport.send(message),
                Effect::Apply(committed) => {
                    let entry = codec::decode_entry(&committed.data)
                        .map_err(|source| NodeError::Entry { index: committed.index, source })?;
                    let proposal = entry.proposal;
                    // Locked for one entry at a time, so that readers wait for one entry at most.
                    let applied = apply(&mut state.write().unwrap_or_else(PoisonError::into_inner), entry);
                    self.proposals.answer(proposal, Ok(applied.reply));
                    outside.extend(applied.effects);
                    changed = true;
                }
                Effect::Restore { index, data } => {
                    let restored =
                        codec::decode_snapshot(&data).map_err(|source| NodeError::Snapshot { index, source })?;
                    *state.write().unwrap_or_else(PoisonError::into_inner) = restored;
                    self.snapshot_index = index;
                    changed = true;
                    tracing::info!(index, "restored a snapshot from the leader");
                }
                Effect::ReadReady { number } => self.reads.answer(number, Ok(())),
                Effect::ReadRefused { number } => {
                    let error = match self.driver.status().leads {
                        true => HandleError::NoQuorum,
                        false => HandleError::NotLeader { leader: leader.clone() },
                    };
                    self.reads.answer(number, Err(error));
                }
                Effect::ProposalRefused { number, refusal } => {
                    self.proposals.answer(number, Err(handle::refused(refusal, leader.clone())));
                }
                Effect::LeadLost => {
                    tracing::info!(term = self.driver.status().term, "lost the lead");
                    self.proposals.answer_all(|| Err(HandleError::LeadLost { leader: leader.clone() }));
                }
                Effect::CaughtUp => {
                    self.identity.reach(Stage::Used)?;
                    tracing::info!("has everything that the lost data directory had, and votes from now on");
                }
                Effect::LeadWon => tracing::info!(term = self.driver.status().term, "leads the cluster"),
            }
        }
        self.publish(changed);
        if self.view.raft.leads && !outside.is_empty() {
            let _ = self.outside.try_send(outside);
        }
        Ok(())
    }

    fn publish(&mut self, changed: bool) {
        let view = View { raft: self.driver.status(), changes: self.view.changes + u64::from(changed) };
        if view != self.view {
            self.view = view;
            self.views.send_replace(view);
        }
    }

    fn upkeep(&mut self) -> Result<(), NodeError> {
        let status = self.driver.status();
        if status.term > 0 && self.identity.stage() == Stage::Admitted {
            self.identity.reach(Stage::Used)?;
        }
        let applied = status.applied;
        let log = self.driver.log_mut();
        let due = applied >= self.snapshot_index + SNAPSHOT_AFTER_ENTRIES
            || log.bytes_since_snapshot() >= SNAPSHOT_AFTER_BYTES
            || log.take_snapshot_wanted();
        if due && applied > self.snapshot_index {
            let data = codec::encode_snapshot(&self.state.read().unwrap_or_else(PoisonError::into_inner));
            tracing::debug!(index = applied, bytes = data.len(), "take a snapshot");
            self.driver.compact(data)?;
            self.snapshot_index = applied;
        }
        if self.purged.elapsed() >= PURGE_INTERVAL {
            self.driver.log_mut().purge()?;
            self.purged = Instant::now();
        }
        Ok(())
    }
}
