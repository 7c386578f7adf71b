//! A job as all nodes know it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use coord_common::exit_rule;
use coord_common::{
    CheckpointRecord, ExitReport, Generation, JobSpec, Millis, NumericClass, Phase, Rank, ReplicaKey, RequestId, Step,
    WorkerId,
};

use crate::entry::CancelBy;
use crate::queue::QueuePlace;

#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    pub spec: Arc<JobSpec>,
    pub request: RequestId,
    /// Counts submits: gives the queue its order.
    pub submission: u64,
    /// Resolved.
    pub job_dir: String,
    pub phase: Phase,
    pub created: Millis,
    /// When it first was `Running`.
    pub started: Option<Millis>,
    pub ended: Option<Millis>,
    pub generation: Generation,
    /// Of the present generation, by rank.
    pub replicas: Vec<Replica>,
    pub secret: String,
    /// All ranks were ready, and the checkpoint to restore is decided.
    pub begun: bool,
    pub restore: Option<CheckpointRecord>,
    /// Set once the present generation is to end; no other one begins before its replicas are gone.
    pub ending: Option<Ending>,
    pub checkpoints: Vec<CheckpointRecord>,
    pub interruptions: Vec<Interruption>,
    /// Ends by the program's own fault that were worth another try.
    pub restarts: u32,
    pub failure: Option<Failure>,
    pub cancelled_by: Option<CancelBy>,
    pub events: Vec<Event>,
    /// Furthest step that a fact ever told of.
    pub best_step: Step,
    /// The same when the present generation was placed.
    pub best_step_before: Step,
    /// Generations in a row that ended by no fault of the program and without a new best step.
    pub idle_generations: u32,
    /// Workers that refused a launch, and until when they are not asked again.
    pub set_aside: BTreeMap<WorkerId, SetAside>,
    /// No placement before.
    pub retry_at: Millis,
    /// Fixed when the first generation begins: from then on the job's bits belong to it.
    pub numeric_class: Option<NumericClass>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Replica {
    pub worker: WorkerId,
    pub stage: Stage,
    /// Where peers reach it; empty until it is ready.
    pub endpoint: String,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    Launching,
    Ready,
    Running,
    Ended {
        end: End,
        /// From 0 in the order in which the ends were applied.
        order: u64,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum End {
    Exited(ExitReport),
    /// Its worker was lost, or came back without it.
    Lost {
        reason: String,
    },
    Refused {
        reason: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    pub cause: EndCause,
    /// "worker b was lost", for people.
    pub reason: String,
    /// The rank whose end came first; all others that end after it are consequences.
    pub first: Option<Rank>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndCause {
    /// Only consequences so far: the next end that is none gives the true cause.
    PeerLost,
    LostWorker,
    Preempted,
    Program,
    Refused,
    JobEnded,
}

impl EndCause {
    pub const ALL: [EndCause; 6] = [
        EndCause::PeerLost,
        EndCause::LostWorker,
        EndCause::Preempted,
        EndCause::Program,
        EndCause::Refused,
        EndCause::JobEnded,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            EndCause::PeerLost => "peer_lost",
            EndCause::LostWorker => "lost_worker",
            EndCause::Preempted => "preempted",
            EndCause::Program => "program",
            EndCause::Refused => "refused",
            EndCause::JobEnded => "job_ended",
        }
    }

    pub fn from_name(name: &str) -> Option<EndCause> {
        EndCause::ALL.into_iter().find(|cause| cause.as_str() == name)
    }
}

/// A generation that ended early, and how the job got over it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interruption {
    pub at: Millis,
    /// The one that ended.
    pub generation: Generation,
    pub reason: String,
    pub step_before: Step,
    /// Nothing while the interruption lasts.
    pub over: Option<Resumption>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resumption {
    pub step: Step,
    pub pause: Millis,
}

/// Why the job ended badly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// user_error, out_of_memory, lost_worker, restarts, data, storage
    pub cause: &'static str,
    pub replica: Option<Rank>,
    pub generation: Generation,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub text: String,
    pub tail: String,
}

/// The causes that a failure can have.
pub const FAILURE_CAUSES: [&str; 6] = ["user_error", "out_of_memory", "lost_worker", "restarts", "data", "storage"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub at: Millis,
    pub severity: Severity,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Info,
    Warning,
    Error,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Info => "INFO",
            Severity::Warning => "WARNING",
            Severity::Error => "ERROR",
        }
    }

    pub fn from_name(name: &str) -> Option<Severity> {
        [Severity::Info, Severity::Warning, Severity::Error].into_iter().find(|severity| severity.as_str() == name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    pub refusals: u32,
    pub until: Millis,
    pub reason: String,
}

impl Replica {
    /// Holds its slots.
    pub fn is_live(&self) -> bool {
        !matches!(self.stage, Stage::Ended { .. })
    }

    /// From 0 in the order of ends; nothing while it lives.
    pub fn end_order(&self) -> Option<u64> {
        match self.stage {
            Stage::Ended { order, .. } => Some(order),
            Stage::Launching | Stage::Ready | Stage::Running => None,
        }
    }

    /// "exit 0", "signal 9", "lost"; empty while it lives.
    pub fn outcome(&self) -> String {
        match &self.stage {
            Stage::Launching | Stage::Ready | Stage::Running => String::new(),
            Stage::Ended { end: End::Exited(report), .. } => exit_rule::describe(&report.exit),
            Stage::Ended { end: End::Lost { .. }, .. } => "lost".to_owned(),
            Stage::Ended { end: End::Refused { .. }, .. } => "refused".to_owned(),
        }
    }
}

impl Stage {
    pub fn as_str(&self) -> &'static str {
        match self {
            Stage::Launching => "launching",
            Stage::Ready => "ready",
            Stage::Running => "running",
            Stage::Ended { .. } => "exited",
        }
    }
}

impl Job {
    pub fn place_in_queue(&self) -> QueuePlace {
        QueuePlace { priority: Reverse(self.spec.priority), submission: self.submission, job: self.spec.job.clone() }
    }

    pub fn key(&self, rank: Rank) -> ReplicaKey {
        ReplicaKey { job: self.spec.job.clone(), generation: self.generation, rank }
    }

    pub fn ranks(&self) -> impl Iterator<Item = (Rank, &Replica)> {
        (0..).map(Rank).zip(&self.replicas)
    }

    pub fn live(&self) -> impl Iterator<Item = (Rank, &Replica)> {
        self.ranks().filter(|(_, replica)| replica.is_live())
    }

    pub fn has_live_replicas(&self) -> bool {
        self.replicas.iter().any(Replica::is_live)
    }

    /// The present generation is meant to go on.
    pub fn is_wanted(&self) -> bool {
        matches!(self.phase, Phase::Preparing | Phase::Running) && self.ending.is_none()
    }

    /// A next generation is due, now or once the replicas of the last are gone.
    pub fn awaits_placement(&self) -> bool {
        self.phase == Phase::Queued || (self.phase == Phase::Preparing && self.ending.is_some())
    }

    pub fn newest_checkpoint(&self) -> Option<&CheckpointRecord> {
        self.checkpoints.iter().max_by_key(|record| record.age_order())
    }
}
