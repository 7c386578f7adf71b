//! `coord cancel`: asks a job to end.

use clap::Args;

use super::exit::{Exit, Problem};
use super::printer::Output;
use super::session::Session;
use super::{names, shapes};

#[derive(Debug, Args)]
pub struct CancelFlags {
    /// Job to cancel; its stored checkpoints stay
    pub job: String,
}

pub async fn run(flags: CancelFlags, session: &mut Session) -> Result<Exit, Problem> {
    let job = names::job(&flags.job)?;
    let answer = session.client.cancel(&job).await.map_err(|error| session.problem("cancel job", error))?;
    let state = answer.job.as_ref().map_or("", |job| shapes::phase_name(job.phase()));
    if answer.already_ended {
        session.printer.talk(&format!("Job [{job}] had ended already ({state}); nothing was changed."));
    } else {
        session.printer.talk(&format!("Job [{job}] is being cancelled; `coord wait {job}` waits for the end."));
    }
    if session.printer.output() == Output::Json {
        session.printer.json(&serde_json::json!({
            "already_ended": answer.already_ended,
            "job": answer.job.as_ref().map(shapes::job),
        }))?;
    }
    Ok(Exit::Done)
}
