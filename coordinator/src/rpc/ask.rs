//! Relays a question to an answering process: on a worker of the job, otherwise on any.

use coord_common::job::train_url;
use coord_common::{JobId, WorkerId};
use coord_proto::v1::{Ask, AskJobRequest, AskJobResponse};
use tonic::{Code, Status};

use super::status::{no_such_job, plain};
use crate::leader::Leader;
use crate::leader::requests::RequestError;

/// Characters of a prompt; the model cuts far below.
const PROMPT_MAX: usize = 16_384;
/// Workers tried before the question is given up.
const TRIES: usize = 3;

struct Target {
    train_url: String,
    args: Vec<Vec<u8>>,
    has_checkpoint: bool,
    /// Its own first.
    workers: Vec<WorkerId>,
}

pub async fn relay(leader: &Leader, id: &JobId, request: AskJobRequest) -> Result<AskJobResponse, Status> {
    if request.prompt.chars().count() > PROMPT_MAX {
        let text = format!("a prompt has at most {PROMPT_MAX} characters");
        return Err(plain(Code::InvalidArgument, "too_large", text, "ask less at once"));
    }
    let target = target(leader, id).ok_or_else(|| no_such_job(id.as_str()))?;
    if target.workers.is_empty() {
        let hint = "start a worker, or use `coord chat URL` with the job's directory";
        return Err(plain(Code::FailedPrecondition, "no_worker", "no worker is connected that could answer", hint));
    }
    let mut last = None;
    for worker in target.workers.iter().take(TRIES) {
        let question = Ask {
            request: 0,
            job: id.to_string(),
            train_url: target.train_url.clone(),
            args: target.args.iter().map(|argument| argument.clone().into()).collect(),
            at_step: request.at_step,
            prompt: request.prompt.clone(),
            probe: request.probe,
        };
        match leader.ask(worker, question).await {
            Ok(answer) if answer.error.is_empty() => {
                return Ok(AskJobResponse { step: answer.step, text: answer.text, notes: answer.notes });
            }
            Ok(answer) => return Err(failed(answer.error, target.has_checkpoint)),
            Err(error @ RequestError::NotConnected(_)) => last = Some(error),
            Err(error @ RequestError::Deadline { .. }) => {
                return Err(plain(Code::DeadlineExceeded, "answer_late", error.to_string(), "ask again"));
            }
        }
    }
    let text = last.map_or_else(String::new, |error| error.to_string());
    Err(plain(Code::Unavailable, "no_worker", text, "ask again"))
}

fn failed(error: String, has_checkpoint: bool) -> Status {
    if has_checkpoint {
        return plain(Code::FailedPrecondition, "answer_failed", error, "`coord logs` of the job may tell more");
    }
    let hint = "the job answers once its first checkpoint is complete";
    plain(Code::FailedPrecondition, "no_checkpoint", error, hint)
}

fn target(leader: &Leader, id: &JobId) -> Option<Target> {
    let connected = leader.agents().connected();
    leader.handle().peek(|state| {
        let job = state.job(id)?;
        let own = |worker: &WorkerId| job.replicas.iter().any(|replica| replica.worker == *worker);
        let mut workers = connected;
        workers.sort_by_key(|worker| !own(worker));
        Some(Target {
            train_url: train_url(&job.spec.args, &job.job_dir),
            args: job.spec.args.clone(),
            has_checkpoint: job.newest_checkpoint().is_some(),
            workers,
        })
    })
}
