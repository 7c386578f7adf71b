//! `coord-worker check`: reads the program flags of a job and says whether it could begin with them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use clap::Args;
use coord_common::Coded;
use coord_common::job::check_trainer;
use serde_json::json;

use crate::translate::error::TrainError;
use crate::translate::flags::Flags;
use crate::translate::settings::Settings;

#[derive(Debug, Args)]
pub struct CheckFlags {
    /// Built-in trainer
    #[arg(long, default_value = "translate", value_name = "NAME")]
    trainer: String,
    /// Where checkpoints and results go; without it, somewhere below the cluster's storage
    #[arg(long, value_name = "URL")]
    job_dir: Option<String>,
    /// Program flags
    #[arg(last = true)]
    arguments: Vec<OsString>,
}

/// Stands for the folder that the cluster gives to a job: which one it is decides nothing here.
const SOMEWHERE: &str = "file:///job";

/// One JSON line with this program's version, so that a client can tell whether the word of this release counts.
pub fn run(flags: &CheckFlags) -> ExitCode {
    let version = env!("CARGO_PKG_VERSION");
    match refusal(flags) {
        None => {
            println!("{}", json!({"version": version}));
            ExitCode::SUCCESS
        }
        Some((error, hint)) => {
            println!("{}", json!({"version": version, "error": error, "hint": hint}));
            ExitCode::from(2)
        }
    }
}

fn refusal(flags: &CheckFlags) -> Option<(String, Option<String>)> {
    if let Err(error) = check_trainer(&flags.trainer) {
        return Some((error.to_string(), error.hint()));
    }
    let arguments: Vec<&[u8]> = flags.arguments.iter().map(|argument| argument.as_os_str().as_bytes()).collect();
    let job_dir = flags.job_dir.as_deref().unwrap_or(SOMEWHERE);
    let settings =
        Flags::parse(&arguments).map_err(TrainError::from).and_then(|flags| Settings::new(&flags, Some(job_dir)));
    settings.err().map(|error| (error.to_string(), error.hint()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(arguments: &[&str]) -> Option<(String, Option<String>)> {
        let arguments = arguments.iter().map(OsString::from).collect();
        refusal(&CheckFlags { trainer: "translate".to_owned(), job_dir: None, arguments })
    }

    #[test]
    fn flags_that_could_train_are_accepted_without_a_look_at_the_data() {
        assert_eq!(refused(&["--from_train_data=/nowhere/a", "--to_train_data=/nowhere/b", "--steps=5"]), None);
    }

    #[test]
    fn typos_bad_values_and_missing_data_are_refused_as_the_trainer_would() {
        let error = |arguments: &[&str]| refused(arguments).map(|(error, _)| error).unwrap_or_default();
        assert_eq!(error(&["--step=5"]), "unknown program flag --step; did you mean --steps?");
        assert_eq!(error(&["--size=x"]), "program flag --size: expected a whole number from 1 to 65536, got \"x\"");
        assert_eq!(error(&[]), "--from_train_data is missing");
    }
}
