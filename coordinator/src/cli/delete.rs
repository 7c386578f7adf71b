//! `coord delete`: removes finished jobs from the coordinator's state.

use clap::Args;
use serde_json::json;

use super::exit::{Exit, Problem};
use super::printer::Output;
use super::session::Session;
use super::{confirm, each_job};

#[derive(Debug, Args)]
pub struct DeleteFlags {
    /// Finished jobs to remove; their objects in storage stay, their ids stay taken
    #[arg(required = true, value_name = "JOB")]
    pub jobs: Vec<String>,
    /// Do not ask
    #[arg(long, short = 'y')]
    pub yes: bool,
}

pub async fn run(flags: DeleteFlags, session: &mut Session) -> Result<Exit, Problem> {
    let jobs = each_job::names(&flags.jobs)?;
    let question = format!("Remove {} from the list for good?", each_job::named("job", &jobs));
    if !flags.yes && !confirm::confirmed(&question, &session.printer)? {
        session.printer.talk("Nothing was removed.");
        return Ok(Exit::Failed);
    }
    let mut exit = Exit::Done;
    for job in jobs {
        exit = each_job::add(exit, delete(&job, session).await)?;
    }
    Ok(exit)
}

async fn delete(job: &str, session: &mut Session) -> Result<Exit, Problem> {
    session.client.delete(job).await.map_err(|error| session.problem("delete job", error))?;
    session.printer.talk(&format!("Job [{job}] was removed. Its objects in storage stay; its id stays taken."));
    match session.printer.output() {
        Output::Json => session.printer.json_line(&json!({ "job": job, "removed": true }))?,
        Output::Quiet => session.printer.line(job)?,
        Output::Table => {}
    }
    Ok(Exit::Done)
}
