//! `coord-worker run`: the agent.

use std::process::ExitCode;

use clap::Args;

#[derive(Debug, Args)]
pub struct RunFlags {}

pub fn run(_flags: RunFlags) -> ExitCode {
    ExitCode::from(2)
}
