//! What users' clients ask: submit, look, cancel, wait, read, ask.

use std::time::Duration;

use coord_common::job::check_trainer;
use coord_common::{Coded, JobId, RequestId, convert};
use coord_proto::v1::job_service_server::JobService;
use coord_proto::v1::{
    AskJobRequest, AskJobResponse, CancelJobRequest, CancelJobResponse, DeleteJobRequest, DeleteJobResponse,
    DescribeJobRequest, DescribeJobResponse, ExplainJobRequest, ExplainJobResponse, Job, ListJobsRequest,
    ListJobsResponse, ReadLogsRequest, ReadLogsResponse, SubmitJobRequest, SubmitJobResponse, WatchJobRequest,
    WatchJobResponse,
};
use coordinator_core::entry::SubmitJob;
use coordinator_core::view::{self, JobFilter, JobPage};
use coordinator_core::{CancelBy, Command, Rejection, Reply};
use prost::Message;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status};

use super::status::{no_such_job, plain, refused};
use super::{ask, logs, warnings};
use crate::handle::{CoordinatorHandle, HandleError};
use crate::leader::Leader;

/// A long poll answers after this long even if nothing changed.
const WATCH_LIMIT: Duration = Duration::from_secs(20);
/// Progress changes without an entry in the log: it is looked at this often.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);
/// Entries of other jobs wake a watcher too: it looks at most this often.
const WATCH_PACE: Duration = Duration::from_millis(50);
const LOG_MESSAGES: usize = 16;

pub struct Jobs {
    pub handle: CoordinatorHandle,
    pub leader: Leader,
    /// The cluster's storage URL.
    pub storage: String,
}

fn job_id(text: &str) -> Result<JobId, Status> {
    JobId::parse(text).map_err(|error| refused(Code::InvalidArgument, &error))
}

fn rejected(rejection: &Rejection) -> Status {
    let code = match rejection.code() {
        "no_such_job" => Code::NotFound,
        "job_exists" => Code::AlreadyExists,
        "too_many_jobs" | "too_many_workers" => Code::ResourceExhausted,
        _ => Code::FailedPrecondition,
    };
    refused(code, rejection)
}

impl Jobs {
    fn look(&self, id: &JobId) -> Result<Job, Status> {
        let agents = || self.leader.agents();
        let now = self.leader.now();
        let job = self.handle.peek(|state| view::job(state, &agents().liveness, now, id));
        job.ok_or_else(|| no_such_job(id.as_str()))
    }

    async fn command(&self, command: Command) -> Result<Reply, Status> {
        match self.handle.propose(command).await? {
            Reply::Rejected(rejection) => Err(rejected(&rejection)),
            reply => Ok(reply),
        }
    }
}

/// A job as it is right after its submit. Why it waits is left out: that takes a look at the whole queue, and a thousand
/// submits a second must not.
fn receipt(job: &coordinator_core::job::Job) -> Job {
    Job {
        spec: Some(convert::spec_to_wire(&job.spec)),
        phase: convert::phase_to_wire(job.phase).into(),
        created_millis: job.created.0,
        generation: job.generation.0,
        job_dir: job.job_dir.clone(),
        ..Job::default()
    }
}

/// Equal exactly for jobs that look equal, on every node; never 0.
fn version(job: &Job) -> u64 {
    let mut timeless = job.clone();
    // When a reason or a gauge was told last is no change of the job.
    timeless.reasons.iter_mut().for_each(|reason| reason.at_millis = 0);
    timeless.progress.iter_mut().for_each(|progress| progress.at_millis = 0);
    let digest = Sha256::digest(timeless.encode_to_vec());
    let first = digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
    first.max(1)
}

#[tonic::async_trait]
impl JobService for Jobs {
    async fn submit_job(&self, request: Request<SubmitJobRequest>) -> Result<Response<SubmitJobResponse>, Status> {
        let SubmitJobRequest { request_id, spec } = request.into_inner();
        let request = RequestId::parse(&request_id).map_err(|error| refused(Code::InvalidArgument, &error))?;
        let spec = spec.ok_or_else(|| plain(Code::InvalidArgument, "invalid_spec", "the request has no spec", ""))?;
        let spec = convert::spec_from_wire(&spec).map_err(|error| refused(Code::InvalidArgument, &error))?;
        check_trainer(&spec.trainer).map_err(|error| refused(Code::InvalidArgument, &error))?;
        self.handle.require_lead()?;
        let in_storage = {
            let (storage, spec) = (self.storage.clone(), spec.clone());
            tokio::spawn(async move { warnings::of_storage(&storage, &spec).await })
        };
        let submit = SubmitJob { request, spec: Box::new(spec), storage: self.storage.clone() };
        let Reply::Submitted { job, existing } = self.command(Command::SubmitJob(submit)).await? else {
            return Err(plain(Code::Internal, "internal", "a submit had no answer of its kind", ""));
        };
        tracing::info!(%job, existing, "job submitted");
        if existing {
            // By now its own objects may lie there.
            in_storage.abort();
            let warnings = self.handle.peek(|state| warnings::of(state, &job));
            return Ok(Response::new(SubmitJobResponse { job: Some(self.look(&job)?), warnings }));
        }
        let (receipt, mut warnings) =
            self.handle.peek(|state| (state.job(&job).map(receipt), warnings::of(state, &job)));
        warnings.extend(in_storage.await.ok().flatten());
        Ok(Response::new(SubmitJobResponse { job: receipt, warnings }))
    }

    async fn describe_job(
        &self,
        request: Request<DescribeJobRequest>,
    ) -> Result<Response<DescribeJobResponse>, Status> {
        let id = job_id(&request.into_inner().job)?;
        self.handle.barrier().await?;
        Ok(Response::new(DescribeJobResponse { job: Some(self.look(&id)?) }))
    }

    async fn list_jobs(&self, request: Request<ListJobsRequest>) -> Result<Response<ListJobsResponse>, Status> {
        let ListJobsRequest { page_size, page_token, phases, labels } = request.into_inner();
        let phases = phases.into_iter().map(convert::phase_from_wire).collect::<Result<_, _>>();
        let phases = phases.map_err(|error| refused(Code::InvalidArgument, &error))?;
        let filter = JobFilter { phases, labels };
        self.handle.barrier().await?;
        let agents = || self.leader.agents();
        let now = self.leader.now();
        let page =
            self.handle.peek(|state| view::list(state, &agents().liveness, now, &filter, &page_token, page_size));
        let JobPage { jobs, next_page_token } = page.map_err(|error| refused(Code::InvalidArgument, &error))?;
        Ok(Response::new(ListJobsResponse { jobs, next_page_token }))
    }

    async fn cancel_job(&self, request: Request<CancelJobRequest>) -> Result<Response<CancelJobResponse>, Status> {
        let id = job_id(&request.into_inner().job)?;
        let cancel = Command::CancelJob { job: id.clone(), by: CancelBy::User };
        let already_ended = matches!(self.command(cancel).await?, Reply::Cancelled { already_ended: true, .. });
        tracing::info!(job = %id, already_ended, "job cancelled by its user");
        Ok(Response::new(CancelJobResponse { job: Some(self.look(&id)?), already_ended }))
    }

    async fn delete_job(&self, request: Request<DeleteJobRequest>) -> Result<Response<DeleteJobResponse>, Status> {
        let id = job_id(&request.into_inner().job)?;
        self.command(Command::DeleteJob { job: id.clone() }).await?;
        tracing::info!(job = %id, "job deleted");
        Ok(Response::new(DeleteJobResponse {}))
    }

    async fn watch_job(&self, request: Request<WatchJobRequest>) -> Result<Response<WatchJobResponse>, Status> {
        let request = request.into_inner();
        let id = job_id(&request.job)?;
        self.handle.barrier().await?;
        let mut views = self.handle.views();
        let limit = tokio::time::Instant::now() + WATCH_LIMIT;
        loop {
            views.borrow_and_update();
            self.handle.require_lead()?;
            let job = self.look(&id)?;
            let present = version(&job);
            if present != request.version || tokio::time::Instant::now() >= limit {
                return Ok(Response::new(WatchJobResponse { job: Some(job), version: present }));
            }
            tokio::time::sleep(WATCH_PACE).await;
            tokio::select! {
                changed = views.changed() => changed.map_err(|_| HandleError::Stopping)?,
                () = tokio::time::sleep(WATCH_INTERVAL) => {}
                () = tokio::time::sleep_until(limit) => {}
            }
        }
    }

    type ReadLogsStream = ReceiverStream<Result<ReadLogsResponse, Status>>;

    async fn read_logs(&self, request: Request<ReadLogsRequest>) -> Result<Response<Self::ReadLogsStream>, Status> {
        let request = request.into_inner();
        let id = job_id(&request.job)?;
        self.handle.barrier().await?;
        self.look(&id)?;
        let (outgoing, messages) = mpsc::channel(LOG_MESSAGES);
        tokio::spawn(logs::serve(self.leader.clone(), id, request, outgoing));
        Ok(Response::new(ReceiverStream::new(messages)))
    }

    async fn explain_job(&self, request: Request<ExplainJobRequest>) -> Result<Response<ExplainJobResponse>, Status> {
        let id = job_id(&request.into_inner().job)?;
        self.handle.barrier().await?;
        let Job { phase, reasons, failure, .. } = self.look(&id)?;
        Ok(Response::new(ExplainJobResponse { phase, reasons, failure }))
    }

    async fn ask_job(&self, request: Request<AskJobRequest>) -> Result<Response<AskJobResponse>, Status> {
        let request = request.into_inner();
        let id = job_id(&request.job)?;
        self.handle.barrier().await?;
        Ok(Response::new(ask::relay(&self.leader, &id, request).await?))
    }
}
