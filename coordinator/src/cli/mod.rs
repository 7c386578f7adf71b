//! The command line of `coord`: flags become settings, settings become one action, an action ends with a status.

mod address;
mod answerer;
mod args;
mod call_error;
mod cancel;
mod chat;
mod checkpoints;
mod client;
mod confirm;
mod data;
mod delete;
mod demo;
mod describe;
mod describe_tables;
mod each_job;
mod exit;
mod greeting;
mod interrupt;
mod list;
mod local;
mod log_reader;
mod logs;
mod members;
mod names;
mod outage;
mod paths;
mod printer;
mod program_check;
mod serve;
mod session;
pub mod shapes;
mod storage;
mod storage_list;
mod submit;
mod text;
mod usage;
mod wait;
mod watch;
mod why;
mod worker_binary;
mod workers;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::error::ErrorKind;

use args::{Command, CommonFlags, Flags};
use exit::{Exit, Problem};
use printer::Printer;
use session::Session;

/// Runs the command that the arguments name, and says what went wrong.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let outcome = match Flags::read(&arguments) {
        Ok(flags) => run(flags),
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            Printer::new(printer::Output::Table).bytes(error.render().to_string().as_bytes()).map(|()| Exit::Done)
        }
        Err(error) => Err(usage::problem(&error, arguments.get(1..).unwrap_or_default())),
    };
    outcome.unwrap_or_else(|problem| report(&problem)).into()
}

fn report(problem: &Problem) -> Exit {
    // There is nobody left to tell when standard error is closed; the exit status still tells.
    let _ = std::io::stderr().lock().write_all(problem.render().as_bytes());
    problem.exit()
}

fn run(flags: Flags) -> Result<Exit, Problem> {
    let common = flags.common;
    match flags.command {
        Command::Local(flags) => Err(local::run(flags)),
        Command::Data(flags) => Err(data::run(flags, common.output)),
        Command::Serve(flags) => serve::run(flags),
        Command::Demo(flags) => block_on(demo::run(flags, &Printer::new(common.output))),
        Command::Storage(flags) => block_on(storage::run(flags, &Printer::new(common.output))),
        command => block_on(with_session(command, &common)),
    }
}

/// The commands that talk to a coordinator.
async fn with_session(command: Command, common: &CommonFlags) -> Result<Exit, Problem> {
    let mut session = Session::open(common)?;
    let session = &mut session;
    match command {
        Command::Submit(flags) => submit::run(flags, session).await,
        Command::List(flags) => list::run(flags, session).await,
        Command::Describe(flags) => describe::run(flags, session).await,
        Command::Cancel(flags) => cancel::run(flags, session).await,
        Command::Delete(flags) => delete::run(flags, session).await,
        Command::Wait(flags) => wait::run(flags, session).await,
        Command::Watch(flags) => watch::run(flags, session).await,
        Command::Why(flags) => why::run(flags, session).await,
        Command::Logs(flags) => logs::run(flags, session).await,
        Command::Checkpoints(flags) => Err(checkpoints::run(flags, session).await?),
        Command::Chat(flags) => chat::run(flags, session).await,
        Command::Workers => workers::run(session).await,
        Command::Members => members::run(session).await,
        Command::Serve(_) | Command::Demo(_) | Command::Storage(_) | Command::Local(_) | Command::Data(_) => {
            unreachable!("these talk to no coordinator")
        }
    }
}

/// One thread is enough for a client, and starts at once.
fn block_on(action: impl Future<Output = Result<Exit, Problem>>) -> Result<Exit, Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(action);
    // A thread that waits for standard input must not keep the process.
    runtime.shutdown_background();
    outcome
}
