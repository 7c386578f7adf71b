//! A gang takes its slots, all or none, and a generation is born.

use std::collections::BTreeMap;

use coord_common::{Millis, NumericClass, Phase, Rank, WorkerId};

use crate::effect::Effect;
use crate::entry::PlaceJob;
use crate::job::{Job, Replica, Severity, Stage};
use crate::limits::REFUSALS_REMEMBERED;
use crate::orders;
use crate::reply::{Rejection, Reply};
use crate::state::ClusterState;

pub fn apply(state: &mut ClusterState, at: Millis, place: PlaceJob, out: &mut Vec<Effect>) -> Reply {
    let Some(job) = state.job(&place.job) else { return Reply::Rejected(Rejection::no_such_job(&place.job)) };
    if let Err(why) = fits(state, job, &place) {
        return Reply::Rejected(Rejection::new("stale_plan", format!("job {} is not placed: {why}", place.job)));
    }
    let mut job = state.take(&place.job).expect("it was there a line ago");
    job.generation = place.generation;
    job.phase = Phase::Preparing;
    job.secret = place.secret;
    let launching = |worker| Replica { worker, stage: Stage::Launching, endpoint: String::new() };
    job.replicas = place.workers.into_iter().map(launching).collect();
    job.begun = false;
    job.restore = None;
    job.ending = None;
    job.best_step_before = job.best_step;
    job.set_aside.retain(|_, aside| aside.until + REFUSALS_REMEMBERED > at);
    let size = job.replicas.len();
    let gang = if size == 1 { "1 replica".to_owned() } else { format!("{size} replicas") };
    job.say(at, Severity::Info, format!("Generation {} is preparing with {gang}.", job.generation));
    job.say(at, Severity::Info, "Waiting for training program to start.".to_owned());
    for (rank, replica) in job.ranks() {
        out.push(Effect::Send { worker: replica.worker.clone(), order: orders::launch(&job, rank) });
    }
    out.push(Effect::JobChanged { job: place.job });
    state.put(job);
    Reply::Done
}

/// The plan was made on an older state: what it rests on must still hold.
fn fits(state: &ClusterState, job: &Job, place: &PlaceJob) -> Result<(), String> {
    if !job.awaits_placement() || place.generation != job.generation.next() {
        return Err(format!("it is {} in generation {}", job.phase, job.generation));
    }
    let size = place.workers.len();
    let (min, max) = (job.spec.workers_min(), job.spec.workers_max());
    if size < min as usize || size > max as usize {
        return Err(format!("it wants {min} to {max} replicas, got {size}"));
    }
    let mut wanted: BTreeMap<&WorkerId, u32> = BTreeMap::new();
    for worker in &place.workers {
        *wanted.entry(worker).or_default() += job.spec.slots_per_worker;
    }
    let mut class: Option<&NumericClass> = job.numeric_class.as_ref();
    for (id, slots) in wanted {
        let worker = state.worker(id).filter(|worker| worker.takes_replicas());
        let Some(worker) = worker else { return Err(format!("worker {id} takes no replicas")) };
        let registration = &worker.registration;
        if registration.device != job.spec.device
            || *class.get_or_insert(&registration.numeric_class) != &registration.numeric_class
        {
            return Err(format!("worker {id} is of another kind"));
        }
        let free = registration.slots.saturating_sub(state.slots_used(id));
        if slots > free {
            return Err(format!("worker {id} has {free} free slots, {slots} are wanted"));
        }
    }
    Ok(())
}

/// Where rank 0 runs decides the class of numerics: all ranks share it.
pub(super) fn class_of(state: &ClusterState, job: &Job) -> Option<NumericClass> {
    let master = job.replicas.get(Rank::MASTER.index())?;
    state.worker(&master.worker).map(|worker| worker.registration.numeric_class.clone())
}
