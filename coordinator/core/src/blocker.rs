//! Why a job waits, or what its cancel cost: a stable code and a text with the numbers.

use std::fmt;

use coord_common::{Device, JobId, Millis, NumericClass, Rank, Step, replica_name};

use crate::entry::CancelBy;

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
        /// For each replica, on one worker.
        each: u32,
        free: u32,
    },
    /// Jobs whose replicas are on the slots that the job waits for, by name.
    HeldBy {
        jobs: Vec<JobId>,
    },
    /// More than all workers have together: it waits for workers, and nobody waits for it.
    TooLarge {
        wanted: u32,
        /// For each replica, on one worker.
        each: u32,
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
        /// Its name.
        worker: String,
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
    /// The job runs, and its last step lies much further back than a step takes.
    NoStep {
        last: Step,
        quiet: Millis,
        /// What the master replica said that it does meanwhile, if anything.
        stage: String,
    },
    /// Replicas that say nothing to their agents: stopped, starved or hanging processes.
    SilentReplicas {
        ranks: Vec<Rank>,
        /// Of the one that has been silent longest.
        silence: Millis,
    },
    /// Why the last generation ended.
    Interrupted {
        reason: String,
    },
    /// The job was cancelled and is over: what became of its training.
    Cancelled {
        by: CancelBy,
        how: Stop,
        newest_checkpoint: Option<Step>,
        /// Steps were computed that no checkpoint holds.
        steps_lost: bool,
    },
    /// A decision is on its way through the log.
    BeingPlaced {
        replicas: u32,
    },
}

/// How the training of a cancelled job came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// No replica was ever placed.
    NeverBegun,
    /// The replicas ended by themselves, or were gone already.
    Ended,
    /// The master replica was still there when its grace was over.
    Killed { grace: Millis },
    /// Nobody heard how the master replica ended.
    Lost,
}

impl Blocker {
    pub fn code(&self) -> &'static str {
        match self {
            Blocker::NoWorkers => "no_workers",
            Blocker::NoSuchDevice { .. } => "no_such_device",
            Blocker::FreeSlots { .. } => "free_slots",
            Blocker::HeldBy { .. } => "held_by",
            Blocker::TooLarge { .. } => "too_large",
            Blocker::NumericClass { .. } => "numeric_class",
            Blocker::Behind { .. } => "behind",
            Blocker::SetAside { .. } => "set_aside",
            Blocker::WaitingForReplicas { .. } => "waiting_for_replicas",
            Blocker::WaitingForFirstStep { .. } => "waiting_for_first_step",
            Blocker::ReplicasEnding { .. } => "replicas_ending",
            Blocker::BackingOff { .. } => "backing_off",
            Blocker::Unreachable { .. } => "unreachable",
            Blocker::NoStep { .. } => "no_step",
            Blocker::SilentReplicas { .. } => "silent_replicas",
            Blocker::Interrupted { .. } => "interrupted",
            Blocker::Cancelled { .. } => "cancelled",
            Blocker::BeingPlaced { .. } => "being_placed",
        }
    }
}

impl fmt::Display for Blocker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Blocker::NoWorkers => {
                write!(formatter, "no worker is connected; start one with `coord-worker run --coordinator HOST:PORT`")
            }
            Blocker::NoSuchDevice { device } => write!(formatter, "no connected worker has the device {device}"),
            Blocker::FreeSlots { wanted, each, free } => {
                write!(formatter, "wants {}, {free} free", slots_in(*wanted, *each))
            }
            Blocker::HeldBy { jobs } => {
                let names: Vec<&str> = jobs.iter().map(JobId::as_str).collect();
                write!(formatter, "the slots are held by {}", first_five(&names))
            }
            Blocker::TooLarge { wanted, each, total } => {
                let wanted = slots_in(*wanted, *each);
                write!(
                    formatter,
                    "wants {wanted}, all workers it may use have {total} together; it waits for more workers"
                )
            }
            Blocker::NumericClass { wanted, free, class: Some(class) } => {
                // As much of it as `coord workers` shows.
                let (wanted, class) = (slots(*wanted), class.to_string().chars().take(12).collect::<String>());
                write!(formatter, "wants {wanted} on workers of the numeric class {class}, {free} free there")
            }
            Blocker::NumericClass { wanted, free, class: None } => {
                let wanted = slots(*wanted);
                write!(formatter, "wants {wanted} on workers of one numeric class, at most {free} are free in one")
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
            Blocker::NoStep { last, quiet, stage } => {
                write!(formatter, "no step for {} s, the last was step {last}", quiet.seconds_rounded_up())?;
                if stage.is_empty() { Ok(()) } else { write!(formatter, "; since then: {stage}") }
            }
            Blocker::SilentReplicas { ranks, silence } => {
                let (names, seconds) = (names(ranks), silence.seconds_rounded_up());
                write!(
                    formatter,
                    "silent for {seconds} s (process stopped or starved): {names}; if that lasts, it is ended"
                )
            }
            Blocker::Interrupted { reason } => write!(formatter, "the last generation ended: {reason}"),
            Blocker::Cancelled { by, how, newest_checkpoint, steps_lost } => {
                formatter.write_str(match by {
                    CancelBy::User => "cancelled by request",
                    CancelBy::TimeLimit => "cancelled by its time limit",
                })?;
                became_of_the_training(*how, *newest_checkpoint, *steps_lost, formatter)
            }
            Blocker::BeingPlaced { replicas: 1 } => write!(formatter, "1 replica is being placed"),
            Blocker::BeingPlaced { replicas } => write!(formatter, "{replicas} replicas are being placed"),
        }
    }
}

fn became_of_the_training(
    how: Stop,
    newest: Option<Step>,
    steps_lost: bool,
    formatter: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    match how {
        Stop::NeverBegun => return formatter.write_str(" before it began"),
        Stop::Ended => {}
        Stop::Killed { grace } => write!(formatter, "; killed after the grace of {} s", grace.seconds_rounded_up())?,
        Stop::Lost => formatter.write_str("; its master replica was lost")?,
    }
    match (newest, steps_lost) {
        (Some(step), true) => write!(formatter, "; what came after the newest checkpoint (step {step}) is lost"),
        (Some(step), false) => write!(formatter, "; newest checkpoint: step {step}"),
        (None, true) => formatter.write_str("; no checkpoint of it was saved, what it computed is lost"),
        (None, false) => formatter.write_str("; no checkpoint of it was saved"),
    }
}

fn slots(count: u32) -> String {
    if count == 1 { "1 slot".to_owned() } else { format!("{count} slots") }
}

/// Where a replica takes several, they must be on one worker.
fn slots_in(wanted: u32, each: u32) -> String {
    match each {
        1 => slots(wanted),
        each if each == wanted => format!("{} on one worker", slots(wanted)),
        each => format!("{} in groups of {each} on one worker", slots(wanted)),
    }
}

fn names(ranks: &[Rank]) -> String {
    first_five(&ranks.iter().map(|rank| replica_name(*rank)).collect::<Vec<_>>())
}

/// At most five names: a gang can be large.
fn first_five(names: &[impl AsRef<str>]) -> String {
    let shown: Vec<&str> = names.iter().take(5).map(AsRef::as_ref).collect();
    match names.len().checked_sub(5) {
        None | Some(0) => shown.join(", "),
        Some(more) => format!("{} and {more} more", shown.join(", ")),
    }
}
