//! A job enters the queue, once per request and once per id.

use std::collections::BTreeMap;
use std::sync::Arc;

use coord_common::{Generation, Millis, Phase, Step};

use crate::effect::Effect;
use crate::entry::SubmitJob;
use crate::job::Job;
use crate::limits::JOBS_MAX;
use crate::reply::{Rejection, Reply};
use crate::state::ClusterState;

pub fn apply(state: &mut ClusterState, at: Millis, submit: SubmitJob, out: &mut Vec<Effect>) -> Reply {
    let SubmitJob { request, spec, storage } = submit;
    if let Some(job) = state.job_of_request(&request) {
        return Reply::Submitted { job: job.clone(), existing: true };
    }
    let id = spec.job.clone();
    if state.is_taken(&id) {
        let refusal =
            Rejection::new("job_exists", format!("a job with the id {id} already exists; ids are never used again"));
        return Reply::Rejected(refusal.with_hint("use `--unique` to add a time suffix to the id"));
    }
    if state.jobs().len() >= JOBS_MAX {
        let refusal =
            Rejection::new("too_many_jobs", format!("the coordinator holds {JOBS_MAX} jobs, the most it takes"));
        return Reply::Rejected(refusal.with_hint("wait for jobs to end, or remove finished ones with `coord delete`"));
    }
    let submission = state.count_submission();
    state.put(Job {
        job_dir: spec.resolve_job_dir(&storage),
        spec: Arc::new(*spec),
        request,
        submission,
        phase: Phase::Queued,
        created: at,
        started: None,
        ended: None,
        generation: Generation(0),
        replicas: Vec::new(),
        secret: String::new(),
        begun: false,
        restore: None,
        ending: None,
        checkpoints: Vec::new(),
        interruptions: Vec::new(),
        restarts: 0,
        failure: None,
        cancelled_by: None,
        events: Vec::new(),
        best_step: Step(0),
        best_step_before: Step(0),
        idle_generations: 0,
        set_aside: BTreeMap::new(),
        retry_at: Millis::ZERO,
        numeric_class: None,
    });
    out.push(Effect::JobChanged { job: id.clone() });
    Reply::Submitted { job: id, existing: false }
}
