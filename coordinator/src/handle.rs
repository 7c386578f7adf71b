//! The only way to the replicated state: propose a command, confirm a read, look at what is applied here.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use coord_common::Coded;
use coordinator_core::{ClusterState, Command, Reply};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};

use crate::raft::contacts::Contacts;
use crate::raft::driver::{Event, Refusal, Status};
use crate::raft::identity::Identity;
use crate::raft::membership::Members;

/// Longest that a caller waits for a majority.
pub const DEADLINE: Duration = Duration::from_secs(5);

/// A command whose answer has not come within [`DEADLINE`] may still be applied: the error says so.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HandleError {
    #[error("this node does not lead the cluster")]
    NotLeader { leader: Option<String> },
    #[error("the lead was lost before a majority answered: the outcome is unknown")]
    LeadLost { leader: Option<String> },
    #[error("no majority of the nodes answered within {} s: the outcome is unknown", DEADLINE.as_secs())]
    NoQuorum,
    #[error("too many commands wait for the other nodes")]
    Busy,
    #[error("the disk of the leading node is below its reserve")]
    NoRoom,
    #[error("command of {got} bytes is larger than {limit} bytes")]
    TooLarge { got: usize, limit: usize },
    #[error("this node is stopping")]
    Stopping,
}

impl HandleError {
    /// The leader's address, where the same call may go.
    pub fn leader(&self) -> Option<&str> {
        match self {
            Self::NotLeader { leader } | Self::LeadLost { leader } => leader.as_deref(),
            Self::NoQuorum | Self::Busy | Self::NoRoom | Self::TooLarge { .. } | Self::Stopping => None,
        }
    }
}

impl Coded for HandleError {
    fn code(&self) -> &'static str {
        match self {
            Self::NotLeader { .. } => "not_leader",
            Self::LeadLost { .. } => "lead_lost",
            Self::NoQuorum => "no_quorum",
            Self::Busy => "busy",
            Self::NoRoom => "disk_full",
            Self::TooLarge { .. } => "too_large",
            Self::Stopping => "stopping",
        }
    }

    fn retryable(&self) -> bool {
        match self {
            Self::NotLeader { .. } | Self::LeadLost { .. } | Self::NoQuorum | Self::Busy | Self::Stopping => true,
            Self::NoRoom | Self::TooLarge { .. } => false,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NotLeader { leader: Some(leader) } => Some(format!("call {leader}")),
            Self::NotLeader { leader: None } => Some("an election is under way; try again in a second".to_owned()),
            Self::LeadLost { .. } | Self::Busy | Self::Stopping => Some("try again".to_owned()),
            Self::NoQuorum => Some("look at `coord members`: more than half of the nodes must run".to_owned()),
            Self::NoRoom => Some("free space in the data directory of the leading node".to_owned()),
            Self::TooLarge { .. } => Some("pass large settings as the URL of a file in storage".to_owned()),
        }
    }
}

/// Where this node stands; a new one is published after each round of Raft that changed something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct View {
    pub raft: Status,
    /// Counts the rounds that applied entries.
    pub changes: u64,
}

pub(crate) enum Input {
    Propose { command: Command, answer: oneshot::Sender<Result<Reply, HandleError>> },
    Read { answer: oneshot::Sender<Result<(), HandleError>> },
    GiveUpLead,
    Stop,
}

#[derive(Clone)]
pub struct CoordinatorHandle {
    pub(crate) inbox: mpsc::Sender<Input>,
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) views: watch::Receiver<View>,
    pub(crate) state: Arc<RwLock<ClusterState>>,
    pub(crate) members: Arc<Members>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) contacts: Arc<Contacts>,
}

impl CoordinatorHandle {
    /// Answers when a majority has the command and this node has applied it.
    pub async fn propose(&self, command: Command) -> Result<Reply, HandleError> {
        self.enqueue(command).await?.await
    }

    /// Takes a place in the order of commands now; the future that it gives answers like [`Self::propose`]. So one
    /// caller can have many commands on the way, in its order.
    pub async fn enqueue(
        &self,
        command: Command,
    ) -> Result<impl Future<Output = Result<Reply, HandleError>> + Send + use<>, HandleError> {
        let (answer, waiter) = oneshot::channel();
        self.inbox.send(Input::Propose { command, answer }).await.map_err(|_| HandleError::Stopping)?;
        Ok(answered(waiter))
    }

    /// Answers when everything that was acknowledged before the call is applied here.
    pub async fn barrier(&self) -> Result<(), HandleError> {
        let (answer, waiter) = oneshot::channel();
        self.inbox.send(Input::Read { answer }).await.map_err(|_| HandleError::Stopping)?;
        answered(waiter).await
    }

    /// A read that a majority has confirmed.
    pub async fn read<T>(&self, look: impl FnOnce(&ClusterState) -> T) -> Result<T, HandleError> {
        self.barrier().await?;
        Ok(self.peek(look))
    }

    /// What is applied here, confirmed by nobody. Applying waits while `look` runs: keep it short.
    pub fn peek<T>(&self, look: impl FnOnce(&ClusterState) -> T) -> T {
        // A writer that panicked ends the node; until then its state is as whole as `apply` left it.
        look(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn view(&self) -> View {
        *self.views.borrow()
    }

    /// To wait for the next change.
    pub fn views(&self) -> watch::Receiver<View> {
        self.views.clone()
    }

    pub fn leads(&self) -> bool {
        self.view().raft.leads
    }

    pub fn members(&self) -> &Members {
        &self.members
    }

    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    pub fn contacts(&self) -> &Contacts {
        &self.contacts
    }

    /// The leader's address, if another node leads.
    pub fn leader_hint(&self) -> Option<String> {
        hint(&self.members, &self.view().raft)
    }

    /// Refuses with the leader's address unless this node leads.
    pub fn require_lead(&self) -> Result<(), HandleError> {
        if self.leads() { Ok(()) } else { Err(HandleError::NotLeader { leader: self.leader_hint() }) }
    }

    /// From another member.
    pub async fn step(&self, event: Event) -> Result<(), HandleError> {
        self.events.send(event).await.map_err(|_| HandleError::Stopping)
    }

    /// Completes when the node's loop has ended.
    pub async fn stopped(&self) {
        self.events.closed().await;
    }

    pub(crate) async fn give_up_lead(&self) {
        let _ = self.inbox.send(Input::GiveUpLead).await;
    }

    pub(crate) async fn stop(&self) {
        let _ = self.inbox.send(Input::Stop).await;
    }
}

/// The answer, or what its absence means.
async fn answered<T>(waiter: oneshot::Receiver<Result<T, HandleError>>) -> Result<T, HandleError> {
    match tokio::time::timeout(DEADLINE, waiter).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => Err(HandleError::Stopping),
        Err(_) => Err(HandleError::NoQuorum),
    }
}

pub(crate) fn hint(members: &Members, status: &Status) -> Option<String> {
    if status.leader == status.node { None } else { members.address(status.leader).map(str::to_owned) }
}

pub(crate) fn refused(refusal: Refusal, leader: Option<String>) -> HandleError {
    match refusal {
        Refusal::NotLeader => HandleError::NotLeader { leader },
        Refusal::NoRoom => HandleError::NoRoom,
        Refusal::Busy => HandleError::Busy,
    }
}
