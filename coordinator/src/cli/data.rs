//! `coord data`: prepares training data.

use std::ffi::OsString;

use clap::{Args, Subcommand};

use super::exit::Problem;
use super::worker_binary;

#[derive(Debug, Args)]
pub struct DataFlags {
    #[command(subcommand)]
    command: DataCommand,
}

#[derive(Debug, Subcommand)]
enum DataCommand {
    /// Make pairs of prompt and reply from a file of film dialogues: IN OUT [--last-digit-pairing] [--seed N] ...
    #[command(disable_help_flag = true)]
    Dialogs(PassedOn),
}

#[derive(Debug, Args)]
struct PassedOn {
    /// Passed on as they are; `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "IN OUT FLAGS")]
    arguments: Vec<OsString>,
}

pub fn run(flags: DataFlags) -> Problem {
    let DataCommand::Dialogs(passed_on) = flags.command;
    worker_binary::become_worker(std::iter::once("dialogs".into()).chain(passed_on.arguments))
}
