//! `coord wait`: blocks until jobs have ended and exits by how they ended.

use std::time::Duration;

use clap::Args;
use coord_common::Millis;
use coord_proto::v1;

use super::exit::{Exit, Problem};
use super::printer::{Output, Printer};
use super::session::Session;
use super::{each_job, interrupt, list, shapes, submit};

#[derive(Debug, Args)]
pub struct WaitFlags {
    /// Jobs to wait for; the exit status is that of the one that ended worst
    #[arg(required = true, value_name = "JOB")]
    pub jobs: Vec<String>,
    /// Give up after this time with exit status 4: seconds, or a number with s, m, h or d
    #[arg(long, value_parser = submit::duration, value_name = "TIME")]
    pub timeout: Option<Millis>,
}

pub async fn run(flags: WaitFlags, session: &mut Session) -> Result<Exit, Problem> {
    let jobs = each_job::names(&flags.jobs)?;
    let limit = flags.timeout.map_or(Duration::MAX, |limit| Duration::from_millis(limit.0));
    let all = jobs.join(" ");
    let printer = session.printer;
    tokio::select! {
        exit = all_ended(&jobs, session) => exit,
        () = interrupt::requested() => {
            printer.talk(&interrupt::goes_on(&jobs, &format!("coord wait {all}")));
            Ok(Exit::Interrupted)
        }
        () = tokio::time::sleep(limit) => {
            let what = if jobs.len() == 1 { format!("job {all} has") } else { format!("the jobs {all} have") };
            Err(Problem::new(Exit::TimeLimit, format!("{what} not ended within the time limit"))
                .hint(format!("what runs goes on: `coord describe {}` shows how far it is", jobs[0])))
        }
    }
}

/// One after the other, in the order given: the last one to end decides when this does, whatever the order.
async fn all_ended(jobs: &[String], session: &mut Session) -> Result<Exit, Problem> {
    let mut exit = Exit::Done;
    for job in jobs {
        let outcome = match until_end(job, session).await {
            Ok(ended) => tell(&ended, jobs.len() > 1, &session.printer),
            Err(problem) => Err(problem),
        };
        exit = each_job::add(exit, outcome)?;
    }
    Ok(exit)
}

fn tell(ended: &v1::Job, named: bool, printer: &Printer) -> Result<Exit, Problem> {
    let (name, state) = (list::name(ended), shapes::phase_name(ended.phase()));
    match printer.output() {
        Output::Json => printer.json_line(&shapes::job(ended))?,
        Output::Quiet | Output::Table if named => printer.line(&format!("{name}  {state}"))?,
        Output::Quiet | Output::Table => printer.line(state)?,
    }
    let of_job = if named { format!("{name}  ") } else { String::new() };
    for reason in &ended.reasons {
        printer.talk(&format!("{of_job}{}", reason.text));
    }
    if let Some(failure) = &ended.failure {
        printer.talk(&format!("{of_job}{}: {}", failure.replica, failure.text));
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
