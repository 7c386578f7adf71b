//! The sub-commands of `coord-worker`: flags in, exit status out.

pub mod answer;
pub mod check;
pub mod checkpoints;
pub mod dialogs;
pub mod local;
pub mod run;

use std::process::ExitCode;

use clap::ValueEnum;
use tokio::runtime::Runtime;

/// How data is written: as `coord --output` has it, which passes it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
    Quiet,
}

/// A usage or environment error; `help` and `version` print to standard output and are no error.
pub fn usage(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        let text = error.to_string();
        eprint!("{text}");
        ExitCode::from(2)
    } else {
        print!("{error}");
        ExitCode::SUCCESS
    }
}

/// Prints an error and its hint in the project's form.
pub fn fail(error: &dyn std::fmt::Display, hint: Option<&str>) -> ExitCode {
    eprintln!("error: {error}");
    if let Some(hint) = hint {
        eprintln!("hint: {hint}");
    }
    ExitCode::from(1)
}

/// A runtime for commands that do a little I/O.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("threads can be started at the start of a process")
}
