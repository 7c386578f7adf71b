//! What must hold after every entry: for tests and for one metric.

use std::collections::BTreeSet;
use std::fmt;

use coord_common::{JobId, Phase, WorkerId};

use crate::job::Job;
use crate::limits::{CHECKPOINTS_KEPT, INTERRUPTIONS_KEPT};
use crate::state::ClusterState;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    SlotsExceeded {
        worker: WorkerId,
        used: u32,
        slots: u32,
    },
    /// Live replicas on a worker that is lost or unknown.
    HeldByTheLost {
        worker: WorkerId,
    },
    Job {
        job: JobId,
        rule: &'static str,
    },
    Index,
    TakenTwice {
        job: JobId,
    },
    ClockBehind {
        job: JobId,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::SlotsExceeded { worker, used, slots } => {
                write!(formatter, "worker {worker} has {slots} slots, {used} are used")
            }
            Violation::HeldByTheLost { worker } => write!(formatter, "worker {worker} is gone and holds replicas"),
            Violation::Job { job, rule } => write!(formatter, "job {job}: {rule}"),
            Violation::Index => write!(formatter, "an index differs from what it is derived from"),
            Violation::TakenTwice { job } => write!(formatter, "the id {job} is free and in use at once"),
            Violation::ClockBehind { job } => write!(formatter, "job {job} has a time after the state's own"),
        }
    }
}

/// Empty for every state that `apply` can make.
pub fn check(state: &ClusterState) -> Vec<Violation> {
    let mut violations = Vec::new();
    check_workers(state, &mut violations);
    let mut submissions = BTreeSet::new();
    for job in state.jobs() {
        let id = &job.spec.job;
        let broken = rules(job).into_iter().filter(|(holds, _)| !holds);
        violations.extend(broken.map(|(_, rule)| Violation::Job { job: id.clone(), rule }));
        if !submissions.insert(job.submission) || job.submission > state.submissions() {
            violations.push(Violation::Job { job: id.clone(), rule: "submission numbers are given once" });
        }
        if [Some(job.created), job.started, job.ended].into_iter().flatten().any(|time| time > state.now()) {
            violations.push(Violation::ClockBehind { job: id.clone() });
        }
    }
    let taken_twice = state.taken_ids().filter(|id| state.job(id).is_some());
    violations.extend(taken_twice.map(|id| Violation::TakenTwice { job: id.clone() }));
    if !state.index_is_right() {
        violations.push(Violation::Index);
    }
    violations
}

fn check_workers(state: &ClusterState, violations: &mut Vec<Violation>) {
    for (id, worker) in state.workers() {
        let (used, slots) = (state.slots_used(id), worker.registration.slots);
        if used > slots {
            violations.push(Violation::SlotsExceeded { worker: id.clone(), used, slots });
        }
    }
    for job in state.jobs() {
        for (_, replica) in job.live() {
            if state.worker(&replica.worker).is_none_or(|worker| worker.lost) {
                violations.push(Violation::HeldByTheLost { worker: replica.worker.clone() });
            }
        }
    }
}

fn rules(job: &Job) -> Vec<(bool, &'static str)> {
    let size = job.replicas.len();
    let sizes = job.spec.workers_min() as usize..=job.spec.workers_max() as usize;
    let placed = job.generation.0 > 0;
    let ends: BTreeSet<u64> = job.replicas.iter().filter_map(crate::job::Replica::end_order).collect();
    let ended = job.replicas.iter().filter(|replica| !replica.is_live()).count();
    let generations = job.interruptions.iter().map(|interruption| interruption.generation);
    vec![
        (placed == sizes.contains(&size), "a placed gang has a size that the job accepts"),
        (placed || size == 0, "replicas exist only after a placement"),
        (placed != (job.phase == Phase::Queued) || job.phase == Phase::Cancelled, "queued means never placed"),
        (job.phase.is_final() == job.ended.is_some(), "an end has its time"),
        ((job.phase == Phase::Failed) == job.failure.is_some(), "a failure is told if and only if there is one"),
        (job.phase != Phase::Running || (job.begun && job.started.is_some()), "running means begun"),
        (job.phase != Phase::Running || job.ending.is_none(), "a running generation is not ending"),
        (job.phase != Phase::Cancelling || job.has_live_replicas(), "cancelling waits for somebody"),
        (job.phase != Phase::Preparing || job.ending.is_some() || job.has_live_replicas(), "a wanted gang is there"),
        (job.phase != Phase::Cancelled || job.cancelled_by.is_some(), "a cancelled job was cancelled"),
        (job.phase != Phase::Cancelled || !job.has_live_replicas(), "cancelled means that all are gone"),
        (ends.len() == ended, "ends have an order"),
        (job.restarts <= job.spec.max_restarts, "restarts are limited"),
        (job.checkpoints.is_sorted_by_key(|record| record.age_order()), "checkpoints are in order"),
        (
            job.checkpoints.iter().all(|record| record.generation <= job.generation),
            "checkpoints are of known generations",
        ),
        (job.checkpoints.len() <= CHECKPOINTS_KEPT, "checkpoints are limited"),
        (
            generations.clone().is_sorted() && generations.into_iter().all(|one| one <= job.generation),
            "generations grow",
        ),
        (job.interruptions.len() <= INTERRUPTIONS_KEPT, "interruptions are limited"),
    ]
}
