//! Program flags are read before a job's name is used up: by the trainer itself, where it is installed beside this client.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;
use std::time::Duration;

use coord_common::JobSpec;
use serde::Deserialize;
use tokio::process::Command;

use super::exit::Problem;
use super::worker_binary;

/// Far more than the start of a process takes.
const LIMIT: Duration = Duration::from_secs(5);

/// What `coord-worker check` says.
#[derive(Debug, Deserialize)]
struct Said {
    version: String,
    error: Option<String>,
    hint: Option<String>,
}

/// The trainer's refusal of a job's flags. A client may be alone on its machine, or stand beside another release: then
/// nothing is checked here, and the flags are read when the job runs.
pub async fn check(spec: &JobSpec) -> Result<(), Problem> {
    let Some(worker) = worker_binary::installed() else { return Ok(()) };
    let mut command = Command::new(worker);
    command.args(["check", "--trainer", &spec.trainer]);
    if let Some(job_dir) = &spec.job_dir {
        command.args(["--job-dir", job_dir]);
    }
    command.arg("--").args(spec.args.iter().map(|argument| OsStr::from_bytes(argument)));
    command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(LIMIT, command.output()).await {
        Ok(Ok(output)) => judge(&output.stdout),
        Ok(Err(_)) | Err(_) => Ok(()),
    }
}

fn judge(said: &[u8]) -> Result<(), Problem> {
    match serde_json::from_slice(said) {
        Ok(Said { version, error: Some(error), hint }) if version == worker_binary::VERSION => {
            let problem = Problem::usage(error);
            Err(match hint {
                Some(hint) => problem.hint(hint),
                None => problem,
            })
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_word_of_the_same_release_counts() {
        let own = worker_binary::VERSION;
        let refused = judge(format!(r#"{{"version": "{own}", "error": "no such flag", "hint": "see"}}"#).as_bytes());
        assert_eq!(refused.expect_err("a refusal").render(), "error: no such flag\nhint: see\n");
        for fine in [
            format!(r#"{{"version": "{own}"}}"#),
            r#"{"version": "0.0.0", "error": "no such flag", "hint": null}"#.to_owned(),
            "error: unrecognized subcommand 'check'".to_owned(),
            String::new(),
        ] {
            assert!(judge(fine.as_bytes()).is_ok(), "{fine}");
        }
    }
}
