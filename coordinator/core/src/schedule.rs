//! One pass over all jobs that wait for slots: who goes where, and who waits for what.
//!
//! Order: interrupted jobs, then the queue; within each, larger priority first, then earlier submission. The first job of
//! a device that must wait holds all later ones back, so that smaller ones cannot overtake it for ever. A job that even
//! empty workers could not hold keeps nobody back.

use std::collections::{BTreeMap, BTreeSet};

use coord_common::{Device, JobId, Millis, Phase, Rank, WorkerId};

use crate::blocker::Blocker;
use crate::entry::PlaceJob;
use crate::job::{Job, SetAside};
use crate::liveness::Liveness;
use crate::placement::{Kind, Placement, Problem, Room, Rooms, Verdict, solve};
use crate::queue::QueuePlace;
use crate::state::ClusterState;
use crate::worker::Worker;

/// All placements that are possible now.
pub fn placements(state: &ClusterState, seen: &Liveness, now: Millis) -> Vec<PlaceJob> {
    let mut pass = Pass::new(state, seen, now);
    let mut placed = Vec::new();
    for (job, verdict) in pass.by_ref() {
        if let Verdict::Place(placement) = verdict {
            let generation = job.generation.next();
            let place =
                PlaceJob { job: job.spec.job.clone(), generation, workers: placement.workers, secret: String::new() };
            placed.push(place);
        }
    }
    placed
}

/// What one pass says of every job that waits, for people who ask about several of them.
pub struct Verdicts {
    found: BTreeMap<JobId, Verdict>,
    held_for: BTreeMap<Device, JobId>,
}

impl Verdicts {
    pub fn new(state: &ClusterState, seen: &Liveness, now: Millis) -> Verdicts {
        let mut pass = Pass::new(state, seen, now);
        let found = pass.by_ref().map(|(job, verdict)| (job.spec.job.clone(), verdict)).collect();
        Verdicts { found, held_for: pass.held_for }
    }

    /// Nothing when the job does not wait for slots. `position` is its place in the queue of its device, from 1.
    pub fn on(&self, state: &ClusterState, job: &Job, position: Option<u32>) -> Option<Verdict> {
        if !job.awaits_placement() {
            return None;
        }
        if let Some(verdict) = self.found.get(&job.spec.job) {
            return Some(verdict.clone());
        }
        // Not reached, because another job of its device holds the queue.
        let first = self.held_for.get(&job.spec.device)?;
        let first_is_queued = state.job(first).is_some_and(|first| first.phase == Phase::Queued);
        let jobs = position.unwrap_or(1).saturating_sub(u32::from(first_is_queued)).max(1);
        Some(Verdict::Wait(vec![Blocker::Behind { jobs, first: first.clone() }]))
    }
}

/// Why no worker that is known could take the job, were all of them connected and empty: it waits for others.
pub fn impossible(state: &ClusterState, job: &Job) -> Vec<Blocker> {
    let capacity = capacity(state);
    match solve(&problem(job, &capacity, &BTreeSet::new())) {
        Verdict::Place(_) => Vec::new(),
        Verdict::Wait(blockers) => too_large(&capacity, job, blockers),
    }
}

/// All slots of all workers that take replicas.
fn capacity(state: &ClusterState) -> Rooms {
    let takers = state.workers().filter(|(_, worker)| worker.takes_replicas());
    Rooms::new(takers.map(|(id, worker)| room(id, worker, worker.registration.slots)))
}

fn room(id: &WorkerId, worker: &Worker, free: u32) -> Room {
    let registration = &worker.registration;
    let kind = Kind { device: registration.device, class: registration.numeric_class.clone() };
    Room { worker: id.clone(), kind, free }
}

fn too_large(capacity: &Rooms, job: &Job, blockers: Vec<Blocker>) -> Vec<Blocker> {
    let replace = |blocker| match blocker {
        Blocker::FreeSlots { wanted, each, .. } => {
            Blocker::TooLarge { wanted, each, total: capacity.total(job.spec.device) }
        }
        other => other,
    };
    blockers.into_iter().map(replace).collect()
}

/// Places of these jobs in the queue of their device, from 1; jobs that are not queued have none.
pub fn positions<'a>(state: &ClusterState, jobs: impl IntoIterator<Item = &'a Job>) -> BTreeMap<JobId, u32> {
    let queued = jobs.into_iter().filter(|job| job.phase == Phase::Queued);
    let mut wanted: BTreeMap<Device, BTreeSet<QueuePlace>> = BTreeMap::new();
    for job in queued {
        wanted.entry(job.spec.device).or_default().insert(job.place_in_queue());
    }
    let mut positions = BTreeMap::new();
    for (device, places) in wanted {
        let Some(last) = places.last() else { continue };
        let ahead_of_last = state.queue(device).take_while(|place| *place <= last);
        let found = (1..).zip(ahead_of_last).filter(|(_, place)| places.contains(*place));
        positions.extend(found.map(|(position, place)| (place.job.clone(), position)));
    }
    positions
}

struct Pass<'a> {
    state: &'a ClusterState,
    seen: &'a Liveness,
    now: Millis,
    /// Free slots of reachable workers.
    rooms: Rooms,
    capacity: Rooms,
    /// Whether the smallest gang of this shape fits empty workers: (device, slots of each, smallest size).
    possible: BTreeMap<(Device, u32, u32), bool>,
    /// Devices whose first waiting job holds the others back.
    held_for: BTreeMap<Device, JobId>,
    waiting: std::vec::IntoIter<&'a JobId>,
    queues: Vec<(Device, Box<dyn Iterator<Item = &'a JobId> + 'a>)>,
}

impl<'a> Pass<'a> {
    fn new(state: &'a ClusterState, seen: &'a Liveness, now: Millis) -> Pass<'a> {
        let takers = state.workers().filter(|(_, worker)| worker.takes_replicas());
        let reachable = takers.filter(|(id, worker)| seen.is_reachable(id, worker, now));
        let rooms = reachable.map(|(id, worker)| room(id, worker, seen.free_slots(state, id, worker)));
        let interrupted = state.active().map(|place| &place.job);
        let interrupted: Vec<&JobId> =
            interrupted.filter(|id| state.job(id).is_some_and(Job::awaits_placement)).collect();
        let queue = |device| -> Box<dyn Iterator<Item = &'a JobId> + 'a> {
            Box::new(state.queue(device).map(|place| &place.job))
        };
        Pass {
            state,
            seen,
            now,
            rooms: Rooms::new(rooms),
            capacity: capacity(state),
            possible: BTreeMap::new(),
            held_for: BTreeMap::new(),
            waiting: interrupted.into_iter(),
            queues: vec![(Device::Cuda, queue(Device::Cuda)), (Device::Cpu, queue(Device::Cpu))],
        }
    }

    fn next_job(&mut self) -> Option<&'a Job> {
        if let Some(id) = self.waiting.next() {
            return self.state.job(id);
        }
        while let Some((device, queue)) = self.queues.last_mut() {
            let next = if self.held_for.contains_key(device) { None } else { queue.next() };
            match next {
                Some(id) => return self.state.job(id),
                None => drop(self.queues.pop()),
            }
        }
        None
    }

    fn decide(&mut self, job: &Job) -> Verdict {
        let blockers = self.not_yet(job);
        if !blockers.is_empty() {
            self.reserve(job);
            return Verdict::Wait(blockers);
        }
        if let Some(first) = self.held_for.get(&job.spec.device) {
            return Verdict::Wait(vec![Blocker::Behind { jobs: 1, first: first.clone() }]);
        }
        let avoid = self.avoid(job);
        match solve(&problem(job, &self.rooms, &avoid)) {
            Verdict::Place(placement) => {
                self.take(job, &placement);
                Verdict::Place(placement)
            }
            Verdict::Wait(mut blockers) => {
                if self.is_possible(job) {
                    self.held_for.insert(job.spec.device, job.spec.job.clone());
                } else {
                    blockers = too_large(&self.capacity, job, blockers);
                }
                blockers.extend(self.set_aside(job));
                Verdict::Wait(blockers)
            }
        }
    }

    /// An interrupted job does not start before what is left of it is gone, nor before its pause is over.
    fn not_yet(&self, job: &Job) -> Vec<Blocker> {
        let mut blockers = Vec::new();
        let is_reachable =
            |id: &WorkerId| self.state.worker(id).is_some_and(|worker| self.seen.is_reachable(id, worker, self.now));
        // A replica that cannot be reached is left behind: the next generation fences whatever it still does.
        let ending = job.live().filter(|(_, replica)| is_reachable(&replica.worker));
        let ranks: Vec<Rank> = ending.map(|(rank, _)| rank).collect();
        if !ranks.is_empty() {
            blockers.push(Blocker::ReplicasEnding { ranks });
        }
        if job.retry_at > self.now {
            blockers.push(Blocker::BackingOff { until: job.retry_at, restarts: job.restarts });
        }
        blockers
    }

    /// Keeps for the job what it will take in a moment, its own ending replicas' slots first.
    fn reserve(&mut self, job: &Job) {
        let mut rooms = self.rooms.clone();
        for (_, replica) in job.live() {
            if let Some(kind) = self.kind_of(&replica.worker) {
                rooms.give(&kind, &replica.worker, job.spec.slots_per_worker);
            }
        }
        let avoid = self.avoid(job);
        match solve(&problem(job, &rooms, &avoid)) {
            Verdict::Place(placement) => {
                for worker in &placement.workers {
                    rooms.take(&placement.kind, worker, job.spec.slots_per_worker);
                }
                for worker in BTreeSet::from_iter(&placement.workers) {
                    let (before, after) =
                        (self.rooms.free_on(&placement.kind, worker), rooms.free_on(&placement.kind, worker));
                    self.rooms.take(&placement.kind, worker, before.saturating_sub(after));
                }
            }
            Verdict::Wait(_) if self.is_possible(job) => {
                self.held_for.entry(job.spec.device).or_insert_with(|| job.spec.job.clone());
            }
            Verdict::Wait(_) => {}
        }
    }

    fn take(&mut self, job: &Job, placement: &Placement) {
        for worker in &placement.workers {
            self.rooms.take(&placement.kind, worker, job.spec.slots_per_worker);
        }
    }

    fn kind_of(&self, worker: &WorkerId) -> Option<Kind> {
        let registration = &self.state.worker(worker)?.registration;
        Some(Kind { device: registration.device, class: registration.numeric_class.clone() })
    }

    fn avoid(&self, job: &Job) -> BTreeSet<WorkerId> {
        let still = job.set_aside.iter().filter(|(_, aside)| aside.until > self.now);
        still.map(|(worker, _)| worker.clone()).collect()
    }

    fn set_aside(&self, job: &Job) -> Vec<Blocker> {
        let still = job.set_aside.iter().filter(|(_, aside)| aside.until > self.now);
        let blocker = |(worker, aside): (&WorkerId, &SetAside)| Blocker::SetAside {
            worker: self.state.worker_name(worker),
            until: aside.until,
            reason: aside.reason.clone(),
        };
        still.map(blocker).collect()
    }

    /// Whether the job could run if all workers that take replicas were connected and empty.
    fn is_possible(&mut self, job: &Job) -> bool {
        let nobody = BTreeSet::new();
        let fits = |capacity: &Rooms| matches!(solve(&problem(job, capacity, &nobody)), Verdict::Place(_));
        if job.numeric_class.is_some() {
            return fits(&self.capacity);
        }
        let shape = (job.spec.device, job.spec.slots_per_worker, job.spec.workers_min());
        *self.possible.entry(shape).or_insert_with(|| fits(&self.capacity))
    }
}

impl<'a> Iterator for Pass<'a> {
    type Item = (&'a Job, Verdict);

    fn next(&mut self) -> Option<(&'a Job, Verdict)> {
        let job = self.next_job()?;
        Some((job, self.decide(job)))
    }
}

fn problem<'p>(job: &'p Job, rooms: &'p Rooms, avoid: &'p BTreeSet<WorkerId>) -> Problem<'p> {
    Problem {
        rooms,
        device: job.spec.device,
        class: job.numeric_class.as_ref(),
        min: job.spec.workers_min(),
        max: job.spec.workers_max(),
        slots_each: job.spec.slots_per_worker,
        avoid,
    }
}
