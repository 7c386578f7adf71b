//! `coord demo`: a cluster in a directory trains a small chatbot, loses a worker on the way, and answers.

mod cluster;
mod place;
mod processes;
mod story;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::client::Client;
use super::exit::{Exit, Problem};
use super::printer::Printer;
use super::{interrupt, worker_binary};
use cluster::Cluster;
use place::Place;
use processes::Process;

/// Generous: the demonstration takes a minute on two cores.
const LIMIT: Duration = Duration::from_secs(300);

#[derive(Debug, Args)]
pub struct DemoFlags {
    /// Directory for everything the demonstration makes; without it, a new one among the temporary files
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

pub async fn run(flags: DemoFlags, printer: &Printer) -> Result<Exit, Problem> {
    let interrupted = interrupt::requested();
    let worker = worker_binary::find()?;
    let place = Place::create(flags.keep.as_deref())?;
    let told = async {
        let convert = vec!["dialogs".into(), place.movie_lines().into(), place.dialogues().into()];
        Process::start("dialogs", &worker, convert, &place.logs())?.finish().await?;
        let mut cluster = Cluster::start(&place, &worker)?;
        let mut client = Client::new(vec![cluster.address.clone()]);
        let told = story::tell(&mut cluster, &mut client, &place, printer).await;
        cluster.end().await;
        told
    };
    // Whichever way this ends, the processes go with the value that holds them.
    tokio::select! {
        told = tokio::time::timeout(LIMIT, told) => told.unwrap_or_else(|_| Err(too_slow(&place))),
        () = interrupted => {
            printer.talk("\nInterrupted: the coordinator and both workers were ended.");
            Ok(Exit::Interrupted)
        }
    }
}

fn too_slow(place: &Place) -> Problem {
    Problem::failed(format!("the demonstration has not ended within {} s", LIMIT.as_secs()))
        .hint(format!("the logs are in {}", place.logs().display()))
}
