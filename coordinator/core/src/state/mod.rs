//! Everything that all nodes agree on, with the indices that make questions about it cheap.

mod index;

use std::collections::{BTreeMap, BTreeSet};

use coord_common::{Device, JobId, Millis, ReplicaKey, RequestId, WorkerId};

pub use index::Index;

use crate::job::Job;
use crate::queue::QueuePlace;
use crate::worker::Worker;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClusterState {
    now: Millis,
    begun: Millis,
    submissions: u64,
    jobs: BTreeMap<JobId, Job>,
    workers: BTreeMap<WorkerId, Worker>,
    taken_ids: BTreeSet<JobId>,
    index: Index,
}

impl ClusterState {
    /// The larger of all stamps applied so far.
    pub fn now(&self) -> Millis {
        self.now
    }

    /// Stamp of the first entry. It tells this state from that of a cluster which lost all its directories and began
    /// again, with the same addresses, workers and names of jobs.
    pub fn begun(&self) -> Millis {
        self.begun
    }

    /// How many jobs were ever submitted.
    pub fn submissions(&self) -> u64 {
        self.submissions
    }

    pub fn job(&self, id: &JobId) -> Option<&Job> {
        self.jobs.get(id)
    }

    /// By id.
    pub fn jobs(&self) -> impl ExactSizeIterator<Item = &Job> {
        self.jobs.values()
    }

    pub fn worker(&self, id: &WorkerId) -> Option<&Worker> {
        self.workers.get(id)
    }

    /// By id.
    pub fn workers(&self) -> impl ExactSizeIterator<Item = (&WorkerId, &Worker)> {
        self.workers.iter()
    }

    /// What people call a worker: its name; with the id where another worker has the same name; the id alone once the
    /// worker has left the state.
    pub fn worker_name(&self, id: &WorkerId) -> String {
        let Some(worker) = self.workers.get(id) else { return id.to_string() };
        let name = &worker.registration.name;
        let is_namesake = |(other, worker): (&WorkerId, &Worker)| other != id && worker.registration.name == *name;
        if self.workers.iter().any(is_namesake) { format!("{name} ({id})") } else { name.clone() }
    }

    /// Ids of jobs that left the state: never free again.
    pub fn taken_ids(&self) -> impl ExactSizeIterator<Item = &JobId> {
        self.taken_ids.iter()
    }

    /// True for jobs in the state and for those that left it.
    pub fn is_taken(&self, id: &JobId) -> bool {
        self.jobs.contains_key(id) || self.taken_ids.contains(id)
    }

    pub fn job_of_request(&self, request: &RequestId) -> Option<&JobId> {
        self.index.requests.get(request)
    }

    /// Queued jobs that want this device, first first.
    pub fn queue(&self, device: Device) -> impl Iterator<Item = &QueuePlace> {
        self.index.queue.get(&device).into_iter().flatten()
    }

    /// Jobs that were placed and are not over, or whose replicas are not all gone.
    pub fn active(&self) -> impl Iterator<Item = &QueuePlace> {
        self.index.active.iter()
    }

    /// Newest submission first, before the one given.
    pub fn newest_before(&self, submission: u64) -> impl Iterator<Item = &Job> {
        self.index.by_submission.range(..submission).rev().map(|(_, id)| &self.jobs[id])
    }

    /// Finished jobs without replicas, the earliest ended first.
    pub fn finished(&self) -> impl ExactSizeIterator<Item = &JobId> {
        self.index.finished.iter().map(|(_, _, id)| id)
    }

    /// Live replicas on a worker, with the slots that each holds.
    pub fn held_by(&self, worker: &WorkerId) -> impl Iterator<Item = (&ReplicaKey, u32)> {
        self.index.held.get(worker).into_iter().flatten().map(|(key, slots)| (key, *slots))
    }

    pub fn holds(&self, worker: &WorkerId, key: &ReplicaKey) -> bool {
        self.index.held.get(worker).is_some_and(|held| held.contains_key(key))
    }

    pub fn slots_used(&self, worker: &WorkerId) -> u32 {
        self.held_by(worker).map(|(_, slots)| slots).sum()
    }

    pub(crate) fn advance_clock(&mut self, stamp: Millis) -> Millis {
        self.now = self.now.max(stamp);
        if self.begun == Millis::ZERO {
            self.begun = self.now;
        }
        self.now
    }

    pub(crate) fn count_submission(&mut self) -> u64 {
        self.submissions += 1;
        self.submissions
    }

    /// Takes a job out, to be changed and `put` back: so no index can be forgotten.
    pub(crate) fn take(&mut self, id: &JobId) -> Option<Job> {
        let job = self.jobs.remove(id)?;
        self.index.remove(&job);
        Some(job)
    }

    pub(crate) fn put(&mut self, job: Job) {
        self.index.insert(&job);
        self.jobs.insert(job.spec.job.clone(), job);
    }

    /// The job leaves, its id stays taken.
    pub(crate) fn forget(&mut self, id: &JobId) {
        if self.take(id).is_some() {
            self.taken_ids.insert(id.clone());
        }
    }

    pub(crate) fn worker_mut(&mut self, id: &WorkerId) -> Option<&mut Worker> {
        self.workers.get_mut(id)
    }

    pub(crate) fn put_worker(&mut self, worker: Worker) {
        self.workers.insert(worker.registration.worker.clone(), worker);
    }

    pub(crate) fn remove_worker(&mut self, id: &WorkerId) {
        self.workers.remove(id);
    }

    pub(crate) fn restore(
        begun: Millis,
        now: Millis,
        submissions: u64,
        jobs: impl IntoIterator<Item = Job>,
        workers: impl IntoIterator<Item = Worker>,
        taken_ids: BTreeSet<JobId>,
    ) -> ClusterState {
        let mut state = ClusterState { begun, now, submissions, taken_ids, ..ClusterState::default() };
        jobs.into_iter().for_each(|job| state.put(job));
        workers.into_iter().for_each(|worker| state.put_worker(worker));
        state
    }

    /// The indices as they must be, computed afresh.
    pub(crate) fn index_is_right(&self) -> bool {
        let mut afresh = Index::default();
        self.jobs.values().for_each(|job| afresh.insert(job));
        afresh == self.index
    }
}
