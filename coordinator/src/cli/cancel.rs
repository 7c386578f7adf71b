//! `coord cancel`: asks jobs to end.

use clap::Args;
use coord_proto::v1;
use serde_json::json;

use super::exit::{Exit, Problem};
use super::printer::Output;
use super::session::Session;
use super::{each_job, shapes};

#[derive(Debug, Args)]
pub struct CancelFlags {
    /// Jobs to cancel; their stored checkpoints stay
    #[arg(required = true, value_name = "JOB")]
    pub jobs: Vec<String>,
}

pub async fn run(flags: CancelFlags, session: &mut Session) -> Result<Exit, Problem> {
    let mut exit = Exit::Done;
    for job in each_job::names(&flags.jobs)? {
        exit = each_job::add(exit, cancel(&job, session).await)?;
    }
    Ok(exit)
}

async fn cancel(job: &str, session: &mut Session) -> Result<Exit, Problem> {
    let answer = session.client.cancel(job).await.map_err(|error| session.problem("cancel job", error))?;
    let state = answer.job.as_ref().map_or("", |job| shapes::phase_name(job.phase()));
    if answer.already_ended {
        session.printer.talk(&format!("Job [{job}] had ended already ({state}); nothing was changed."));
    } else if answer.job.as_ref().is_some_and(|job| job.phase() == v1::Phase::Cancelled) {
        session.printer.talk(&format!("Job [{job}] is cancelled; it held no worker."));
    } else {
        session.printer.talk(&format!("Job [{job}] is being cancelled; `coord wait {job}` waits for the end."));
    }
    match session.printer.output() {
        Output::Json => session.printer.json_line(&json!({
            "already_ended": answer.already_ended,
            "job": answer.job.as_ref().map(shapes::job),
        }))?,
        Output::Quiet => session.printer.line(job)?,
        Output::Table => {}
    }
    Ok(Exit::Done)
}
