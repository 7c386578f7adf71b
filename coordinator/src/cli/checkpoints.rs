//! `coord checkpoints`: lists, verifies and compares the checkpoints of a job or below a URL.

use std::ffi::OsString;

use clap::{Args, Subcommand};
use coord_proto::v1;

use super::exit::Problem;
use super::printer::Output;
use super::session::Session;
use super::{names, worker_binary};

#[derive(Debug, Args)]
pub struct CheckpointsFlags {
    #[command(subcommand)]
    command: CheckpointsCommand,
}

#[derive(Debug, Subcommand)]
enum CheckpointsCommand {
    /// List complete checkpoints
    Ls(Place),
    /// Read every object of every checkpoint and compare it with its manifest
    Verify(Place),
    /// Print the digest of the newest training state: equal digests mean equal weights
    Digest(Place),
}

#[derive(Debug, Args)]
struct Place {
    /// A job, or the URL or path of a job directory or train directory
    #[arg(value_name = "JOB|URL")]
    place: String,
    /// Passed on as they are
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<OsString>,
}

pub async fn run(flags: CheckpointsFlags, session: &mut Session) -> Result<Problem, Problem> {
    let (action, place) = match flags.command {
        CheckpointsCommand::Ls(place) => ("ls", place),
        CheckpointsCommand::Verify(place) => ("verify", place),
        CheckpointsCommand::Digest(place) => ("digest", place),
    };
    let url = train_place(&place.place, session).await?;
    let output = match session.printer.output() {
        Output::Table => "table",
        Output::Json => "json",
        Output::Quiet => "quiet",
    };
    let arguments = ["checkpoints", action, &url, "--output", output].map(OsString::from);
    Ok(worker_binary::become_worker(arguments.into_iter().chain(place.rest)))
}

/// Where the checkpoints lie: a URL or path as it is, a job's by asking the coordinator.
async fn train_place(place: &str, session: &mut Session) -> Result<String, Problem> {
    if is_place(place) {
        return Ok(place.to_owned());
    }
    let name = names::job(place)
        .map_err(|problem| problem.hint(format!("a path begins with `.` or `/`: `./{place}`; a URL holds `://`")))?;
    let job = session.client.describe(&name).await.map_err(|error| session.problem("find checkpoints", error))?;
    Ok(train_url(&job))
}

/// True for what is a URL or path by its looks; anything else is a job's name.
pub fn is_place(text: &str) -> bool {
    text.contains("://") || text.starts_with('.') || text.starts_with('/')
}

fn train_url(job: &v1::Job) -> String {
    let args = job.spec.as_ref().map_or(&[][..], |spec| &spec.args);
    coord_common::job::train_url(args, &job.job_dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_from_a_job_by_its_looks() {
        for place in ["s3://b/x", "./x", "../x", "/x", "file:///x"] {
            assert!(is_place(place), "{place}");
        }
        assert!(!is_place("dialogs_1"));
    }
}
