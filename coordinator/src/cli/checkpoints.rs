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

/// The program's own `--train_dir` wins over the job directory. As in the trainer, `-` and `_` are the same in a flag's
/// name, and the last one counts.
fn train_url(job: &v1::Job) -> String {
    let arguments = job.spec.iter().flat_map(|spec| &spec.args).map(|argument| String::from_utf8_lossy(argument));
    let mut train_dir = None;
    let mut value_follows = false;
    for argument in arguments {
        if value_follows {
            train_dir = Some(argument.into_owned());
            value_follows = false;
            continue;
        }
        let bare = argument.strip_prefix("--").unwrap_or_default();
        let (name, value) = match bare.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (bare, None),
        };
        if name.replace('-', "_") == "train_dir" {
            train_dir = value.map(str::to_owned).or(train_dir);
            value_follows = value.is_none();
        }
    }
    train_dir.unwrap_or_else(|| job.job_dir.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_train_directory_among_the_program_flags_wins_and_the_last_one_counts() {
        let url = |arguments: &[&'static str]| {
            let args = arguments.iter().map(|argument| argument.as_bytes().into()).collect();
            let spec = v1::JobSpec { args, ..v1::JobSpec::default() };
            train_url(&v1::Job { spec: Some(spec), job_dir: "s3://b/jobs/a".into(), ..v1::Job::default() })
        };
        assert_eq!(url(&["--size=64", "--train_director=x"]), "s3://b/jobs/a");
        assert_eq!(url(&["--train_dir=s3://b/t"]), "s3://b/t");
        assert_eq!(url(&["--train-dir", "s3://b/t", "--size=64"]), "s3://b/t");
        assert_eq!(url(&["--train_dir=x", "--train_dir", "y"]), "y");
    }

    #[test]
    fn a_place_is_told_from_a_job_by_its_looks() {
        for place in ["s3://b/x", "./x", "../x", "/x", "file:///x"] {
            assert!(is_place(place), "{place}");
        }
        assert!(!is_place("dialogs_1"));
    }
}
