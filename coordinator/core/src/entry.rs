//! What lies in the log: one command with the clock of the leader that proposed it.

use coord_common::{
    CheckpointRecord, Fact, Generation, Incarnation, JobId, JobSpec, Millis, Registration, RequestId, WorkerId,
};

#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The proposing leader's clock; the state's time is the larger of this and what it was.
    pub at: Millis,
    /// Ties the entry to its waiter on the node that proposed it; means nothing to the state.
    pub proposal: u64,
    pub command: Command,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    SubmitJob(SubmitJob),
    CancelJob { job: JobId, by: CancelBy },
    DeleteJob { job: JobId },
    ForgetJobs { jobs: Vec<JobId> },
    RegisterWorker(Registration),
    DrainWorker { worker: WorkerId, incarnation: Incarnation },
    LoseWorker { worker: WorkerId, incarnation: Incarnation, reason: String },
    PlaceJob(PlaceJob),
    BeginGeneration { job: JobId, generation: Generation, restore: Option<CheckpointRecord> },
    ReplicaFact { worker: WorkerId, incarnation: Incarnation, fact: Fact },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmitJob {
    pub request: RequestId,
    pub spec: Box<JobSpec>,
    /// The cluster's storage URL when the job was submitted: where its objects lie if it names no place of its own.
    pub storage: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceJob {
    pub job: JobId,
    pub generation: Generation,
    /// The worker of each rank, in the order of ranks.
    pub workers: Vec<WorkerId>,
    /// `plan` knows no randomness and leaves it empty: the leader fills it in before it proposes.
    pub secret: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CancelBy {
    User,
    TimeLimit,
}

impl CancelBy {
    pub fn as_str(self) -> &'static str {
        match self {
            CancelBy::User => "user",
            CancelBy::TimeLimit => "time_limit",
        }
    }

    pub fn from_name(name: &str) -> Option<CancelBy> {
        [CancelBy::User, CancelBy::TimeLimit].into_iter().find(|by| by.as_str() == name)
    }
}
