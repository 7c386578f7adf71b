//! `coord checkpoints`: lists, verifies and compares the checkpoints of a job or below a URL.

use std::ffi::OsString;

use clap::{Args, Subcommand};
use coord_proto::v1;

use super::exit::Problem;
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
    /// Only this step
    #[arg(long, value_name = "STEP")]
    at: Option<u64>,
}

pub async fn run(flags: CheckpointsFlags, session: &mut Session) -> Result<Problem, Problem> {
    let (action, place) = match flags.command {
        CheckpointsCommand::Ls(place) => ("ls", place),
        CheckpointsCommand::Verify(place) => ("verify", place),
        CheckpointsCommand::Digest(place) => ("digest", place),
    };
    let url = train_place(&place.place, session).await?;
    let mut arguments: Vec<OsString> =
        ["checkpoints", action, &url, "--output", session.printer.output().name()].map(OsString::from).to_vec();
    if let Some(step) = place.at {
        arguments.extend(["--at".into(), step.to_string().into()]);
    }
    Ok(worker_binary::become_worker(arguments))
}

/// Where the checkpoints lie: a URL or path as it is, a job's by asking the coordinator.
async fn train_place(place: &str, session: &mut Session) -> Result<String, Problem> {
    if is_place(place) {
        return Ok(place.to_owned());
    }
    let name = names::job_or_place(place)?;
    let job = session.client.describe(&name).await;
    let job = job.map_err(|error| names::folder_hint(session.problem("find checkpoints", error), place))?;
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
