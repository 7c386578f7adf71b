//! Why a job waits: a stable code and a text with the numbers.

use std::fmt;

use coord_common::{Device, JobId, Millis, NumericClass, Rank, WorkerId, replica_name};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocker {
    /// No worker is connected at all.
    NoWorkers,
    NoSuchDevice {
        device: Device,
    },
    /// Slots for the smallest gang that the job accepts, and those that are free where it may run.
    FreeSlots {
        wanted: u32,
        free: u32,
    },
    /// More than all workers have together: it waits for workers, and nobody waits for it.
    TooLarge {
        wanted: u32,
        total: u32,
    },
    /// There are enough free slots, but not among workers whose bits agree.
    NumericClass {
        wanted: u32,
        free: u32,
        class: Option<NumericClass>,
    },
    /// Jobs that are served first, and the first of them that itself waits.
    Behind {
        jobs: u32,
        first: JobId,
    },
    SetAside {
        worker: WorkerId,
        until: Millis,
        reason: String,
    },
    WaitingForReplicas {
        ranks: Vec<Rank>,
    },
    /// They have met and restore or initialise.
    WaitingForFirstStep {
        ranks: Vec<Rank>,
    },
    ReplicasEnding {
        ranks: Vec<Rank>,
    },
    BackingOff {
        until: Millis,
        restarts: u32,
    },
    Unreachable {
        workers: Vec<String>,
    },
    /// Why the last generation ended.
    Interrupted {
        reason: String,
    },
    /// A decision is on its way through the log.
    BeingPlaced {
        replicas: u32,
    },
}

impl Blocker {
    pub fn code(&self) -> &'static str {
        match self {
            Blocker::NoWorkers => "no_workers",
            Blocker::NoSuchDevice { .. } => "no_such_device",
            Blocker::FreeSlots { .. } => "free_slots",
            Blocker::TooLarge { .. } => "too_large",
            Blocker::NumericClass { .. } => "numeric_class",
            Blocker::Behind { .. } => "behind",
            Blocker::SetAside { .. } => "set_aside",
            Blocker::WaitingForReplicas { .. } => "waiting_for_replicas",
            Blocker::WaitingForFirstStep { .. } => "waiting_for_first_step",
            Blocker::ReplicasEnding { .. } => "replicas_ending",
            Blocker::BackingOff { .. } => "backing_off",
            Blocker::Unreachable { .. } => "unreachable",
            Blocker::Interrupted { .. } => "interrupted",
            Blocker::BeingPlaced { .. } => "being_placed",
        }
    }
}

impl fmt::Display for Blocker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Blocker::NoWorkers => write!(formatter, "no worker is connected"),
            Blocker::NoSuchDevice { device } => write!(formatter, "no connected worker has the device {device}"),
            Blocker::FreeSlots { wanted, free } => write!(formatter, "wants {wanted} slots, {free} free"),
            Blocker::TooLarge { wanted, total } => {
                write!(formatter, "wants {wanted} slots, all workers it may use have {total} together")
            }
            Blocker::NumericClass { wanted, free, class: Some(class) } => {
                write!(formatter, "wants {wanted} slots on workers of the numeric class {class}, {free} free there")
            }
            Blocker::NumericClass { wanted, free, class: None } => {
                write!(
                    formatter,
                    "wants {wanted} slots on workers of one numeric class, at most {free} are free in one"
                )
            }
            Blocker::Behind { jobs: 1, first } => write!(formatter, "waits behind job {first}"),
            Blocker::Behind { jobs, first } => write!(formatter, "waits behind {jobs} jobs, the first is {first}"),
            Blocker::SetAside { worker, reason, .. } => {
                write!(formatter, "worker {worker} is set aside after it refused to start a replica: {reason}")
            }
            Blocker::WaitingForReplicas { ranks } if ranks.is_empty() => {
                write!(formatter, "all replicas are ready and about to meet")
            }
            Blocker::WaitingForReplicas { ranks } => {
                write!(formatter, "waits until ready: {}", names(ranks))
            }
            Blocker::WaitingForFirstStep { ranks } => {
                write!(formatter, "waits for the first step of {}", names(ranks))
            }
            Blocker::ReplicasEnding { ranks } => write!(formatter, "replicas are still ending: {}", names(ranks)),
            Blocker::BackingOff { restarts, .. } => write!(formatter, "waits a moment before restart {restarts}"),
            Blocker::Unreachable { workers } => {
                write!(formatter, "not reachable: {}", workers.join(", "))
            }
            Blocker::Interrupted { reason } => write!(formatter, "the last generation ended: {reason}"),
            Blocker::BeingPlaced { replicas: 1 } => write!(formatter, "1 replica is being placed"),
            Blocker::BeingPlaced { replicas } => write!(formatter, "{replicas} replicas are being placed"),
        }
    }
}

/// At most five names: a gang can be large.
fn names(ranks: &[Rank]) -> String {
    let shown: Vec<String> = ranks.iter().take(5).map(|rank| replica_name(*rank)).collect();
    match ranks.len().checked_sub(5) {
        None | Some(0) => shown.join(", "),
        Some(more) => format!("{} and {more} more", shown.join(", ")),
    }
}
