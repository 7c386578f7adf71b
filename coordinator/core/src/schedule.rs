//! One pass over all jobs that wait for slots: who goes where, and who waits for what.
//!
//! Order: interrupted jobs, then the queue; within each, larger priority first, then earlier submission. The first job of
//! a device that must wait holds all later ones back, so that smaller ones cannot overtake it for ever. A job that even
//! empty workers could not hold keeps nobody back.

use std::collections::{BTreeMap, BTreeSet};

use coord_common::{Device, JobId, Millis, Rank, WorkerId};

use crate::blocker::Blocker;
use crate::entry::PlaceJob;
use crate::job::Job;
use crate::liveness::Liveness;
use crate::placement::{Kind, Placement, Problem, Room, Rooms, Verdict, solve};
use crate::state::ClusterState;

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

/// What the same pass says of one job; nothing when it does not wait for slots.
pub fn verdict_on(state: &ClusterState, seen: &Liveness, now: Millis, id: &JobId) -> Option<Verdict> {
    let wanted = state.job(id).filter(|job| job.awaits_placement())?;
    let mut pass = Pass::new(state, seen, now);
    let found = pass.by_ref().find(|(job, _)| job.spec.job == *id).map(|(_, verdict)| verdict);
    found.or_else(|| pass.behind(wanted))
}

struct Pass<'a> {
    state: &'a ClusterState,
    seen: &'a Liveness,
    now: Millis,
    /// Free slots of connected workers.
    rooms: Rooms,
    /// All slots of all workers that take replicas.
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
        let takers = || state.workers().filter(|(_, worker)| worker.takes_replicas());
        let room = |id: &WorkerId, worker: &crate::worker::Worker, free| {
            let registration = &worker.registration;
            let kind = Kind { device: registration.device, class: registration.numeric_class.clone() };
            Room { worker: id.clone(), kind, free }
        };
        let connected = takers().filter(|(id, worker)| seen.is_connected(id, worker));
        let rooms = connected.map(|(id, worker)| room(id, worker, seen.free_slots(state, id, worker)));
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
            capacity: Rooms::new(takers().map(|(id, worker)| room(id, worker, worker.registration.slots))),
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
                    blockers = self.too_large(job, blockers);
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
            |id: &WorkerId| self.state.worker(id).is_some_and(|worker| self.seen.is_connected(id, worker));
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
        let blocker = |(worker, aside): (&WorkerId, &crate::job::SetAside)| Blocker::SetAside {
            worker: worker.clone(),
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

    fn too_large(&self, job: &Job, blockers: Vec<Blocker>) -> Vec<Blocker> {
        let replace = |blocker| match blocker {
            Blocker::FreeSlots { wanted, .. } => {
                Blocker::TooLarge { wanted, total: self.capacity.total(job.spec.device) }
            }
            other => other,
        };
        blockers.into_iter().map(replace).collect()
    }

    /// The job was not reached because another one of its device waits.
    fn behind(&self, job: &Job) -> Option<Verdict> {
        let first = self.held_for.get(&job.spec.device)?;
        let place = job.place_in_queue();
        let jobs = 1 + self.state.queue(job.spec.device).take_while(|other| **other < place).count();
        let head_is_queued = self.state.queue(job.spec.device).any(|other| other.job == *first);
        let jobs = (jobs - usize::from(head_is_queued)) as u32;
        Some(Verdict::Wait(vec![Blocker::Behind { jobs, first: first.clone() }]))
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
