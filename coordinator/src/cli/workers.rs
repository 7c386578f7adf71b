//! `coord workers`: the hosts that train.

use coord_proto::v1;
use jiff::Timestamp;
use serde_json::Value;

use super::exit::{Exit, Problem};
use super::printer::{Output, Table};
use super::session::Session;
use super::{shapes, text};

pub async fn run(session: &mut Session) -> Result<Exit, Problem> {
    let workers = session.client.workers().await.map_err(|error| session.problem("list workers", error))?;
    match session.printer.output() {
        Output::Json => session.printer.json(&Value::Array(workers.iter().map(shapes::worker).collect()))?,
        Output::Quiet => workers.iter().try_for_each(|worker| session.printer.line(&worker.name))?,
        Output::Table if workers.is_empty() => {
            session.printer.talk("No workers. Start one on each host: `coord-worker run --coordinator HOST:PORT`")
        }
        Output::Table => session.printer.table(&table(&workers, Timestamp::now()))?,
    }
    Ok(Exit::Done)
}

fn table(workers: &[v1::Worker], now: Timestamp) -> Table {
    let mut table = Table::new(&["WORKER", "STATE", "SLOTS", "FREE", "DEVICE", "CLASS", "JOBS", "LAST SEEN"]);
    for worker in workers {
        let mut jobs: Vec<&str> = worker.replicas.iter().map(|replica| replica.job.as_str()).collect();
        jobs.dedup();
        table.row([
            worker.name.clone(),
            worker.state.clone(),
            worker.slots.to_string(),
            worker.slots_free.to_string(),
            shapes::device_name(worker.device()),
            text::short_digest(&worker.numeric_class),
            if jobs.is_empty() { "-".to_owned() } else { jobs.join(",") },
            text::stamp_and_age(worker.last_seen_millis, now),
        ]);
    }
    table
}
