//! Ways into the jobs: by request, by submission, by queue, by worker. Derived, never stored.

use std::collections::{BTreeMap, BTreeSet};

use coord_common::{Device, JobId, Millis, Phase, ReplicaKey, RequestId, WorkerId};

use crate::job::Job;
use crate::queue::QueuePlace;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Index {
    pub(super) requests: BTreeMap<RequestId, JobId>,
    pub(super) by_submission: BTreeMap<u64, JobId>,
    pub(super) queue: BTreeMap<Device, BTreeSet<QueuePlace>>,
    pub(super) active: BTreeSet<QueuePlace>,
    pub(super) finished: BTreeSet<(Millis, u64, JobId)>,
    pub(super) held: BTreeMap<WorkerId, BTreeMap<ReplicaKey, u32>>,
}

enum Shelf {
    Queue,
    Active,
    Finished(Millis),
}

fn shelf_of(job: &Job) -> Shelf {
    match (job.phase, job.ended) {
        (Phase::Queued, _) => Shelf::Queue,
        (phase, Some(ended)) if phase.is_final() && !job.has_live_replicas() => Shelf::Finished(ended),
        _ => Shelf::Active,
    }
}

impl Index {
    pub(super) fn insert(&mut self, job: &Job) {
        let id = &job.spec.job;
        self.requests.insert(job.request.clone(), id.clone());
        self.by_submission.insert(job.submission, id.clone());
        match shelf_of(job) {
            Shelf::Queue => self.queue.entry(job.spec.device).or_default().insert(job.place_in_queue()),
            Shelf::Active => self.active.insert(job.place_in_queue()),
            Shelf::Finished(ended) => self.finished.insert((ended, job.submission, id.clone())),
        };
        for (rank, replica) in job.live() {
            let held = self.held.entry(replica.worker.clone()).or_default();
            held.insert(job.key(rank), job.spec.slots_per_worker);
        }
    }

    pub(super) fn remove(&mut self, job: &Job) {
        let id = &job.spec.job;
        self.requests.remove(&job.request);
        self.by_submission.remove(&job.submission);
        match shelf_of(job) {
            Shelf::Queue => {
                if let Some(queue) = self.queue.get_mut(&job.spec.device) {
                    queue.remove(&job.place_in_queue());
                    if queue.is_empty() {
                        self.queue.remove(&job.spec.device);
                    }
                }
            }
            Shelf::Active => {
                self.active.remove(&job.place_in_queue());
            }
            Shelf::Finished(ended) => {
                self.finished.remove(&(ended, job.submission, id.clone()));
            }
        }
        for (rank, replica) in job.live() {
            if let Some(held) = self.held.get_mut(&replica.worker) {
                held.remove(&job.key(rank));
                if held.is_empty() {
                    self.held.remove(&replica.worker);
                }
            }
        }
    }
}
