//! `coord wait`: blocks until a job has ended and exits by how it ended.

use std::time::Duration;

use clap::Args;
use coord_common::Millis;
use coord_proto::v1;

use super::exit::{Exit, Problem};
use super::printer::Output;
use super::session::Session;
use super::{interrupt, names, shapes, submit};

#[derive(Debug, Args)]
pub struct WaitFlags {
    /// Job to wait for
    pub job: String,
    /// Give up after this time with exit status 4: seconds, or a number with s, m, h or d
    #[arg(long, value_parser = submit::duration, value_name = "TIME")]
    pub timeout: Option<Millis>,
}

pub async fn run(flags: WaitFlags, session: &mut Session) -> Result<Exit, Problem> {
    let name = names::job(&flags.job)?;
    let limit = flags.timeout.map_or(Duration::MAX, |limit| Duration::from_millis(limit.0));
    let ended = tokio::select! {
        ended = until_end(&name, session) => ended?,
        () = interrupt::requested() => {
            session.printer.talk(&interrupt::goes_on(&name, &format!("coord wait {name}")));
            return Ok(Exit::Interrupted);
        }
        () = tokio::time::sleep(limit) => {
            return Err(Problem::new(Exit::TimeLimit, format!("job {name} has not ended within the time limit"))
                .hint(format!("the job goes on: `coord describe {name}` shows how far it is")));
        }
    };
    match session.printer.output() {
        Output::Json => session.printer.json(&shapes::job(&ended))?,
        Output::Quiet => {}
        Output::Table => session.printer.line(shapes::phase_name(ended.phase()))?,
    }
    if let Some(failure) = &ended.failure {
        session.printer.talk(&format!("{}: {}", failure.replica, failure.text));
    }
    Ok(Exit::of_job(ended.phase(), &ended.ended_by).unwrap_or(Exit::Failed))
}

async fn until_end(name: &str, session: &mut Session) -> Result<v1::Job, Problem> {
    let mut version = 0;
    loop {
        let answer = session.client.watch(name, version).await.map_err(|error| removed(name, version, error.into()))?;
        let job = answer.job.unwrap_or_default();
        if Exit::of_job(job.phase(), &job.ended_by).is_some() {
            return Ok(job);
        }
        version = answer.version;
    }
}

/// A job that was there and is there no longer was removed meanwhile.
pub fn removed(name: &str, version: u64, problem: Problem) -> Problem {
    if problem.exit() == Exit::NotFound && version > 0 {
        Problem::new(Exit::NotFound, format!("job {name} was removed"))
    } else {
        problem.context("cannot follow job")
    }
}
