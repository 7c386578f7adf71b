//! How answers read in a scenario.

use coord_common::{Millis, replica_name};
use coordinator_core::job::Job;
use coordinator_core::{ClusterState, Command, Effect, Reply};

/// A proposal of the plan; nothing for commands that only users and agents give.
pub fn proposal(command: &Command) -> Option<String> {
    Some(match command {
        Command::PlaceJob(place) => {
            let ranks = place.workers.iter().enumerate().map(|(rank, worker)| format!("{rank}={worker}"));
            format!("place {} gen={} {}", place.job, place.generation, ranks.collect::<Vec<_>>().join(" "))
        }
        Command::BeginGeneration { job, generation, restore } => {
            let restore = restore.as_ref().map_or("none".to_owned(), |record| record.step.to_string());
            format!("begin {job} gen={generation} restore={restore}")
        }
        Command::CancelJob { job, by } => format!("cancel {job} by {}", by.as_str()),
        Command::LoseWorker { worker, reason, .. } => format!("lose {worker}: {reason}"),
        Command::ForgetJobs { jobs } => {
            let names: Vec<&str> = jobs.iter().map(|job| job.as_str()).collect();
            format!("forget {}", names.join(" "))
        }
        _ => return None,
    })
}

/// Nothing for a plain "done".
pub fn reply(reply: &Reply) -> Option<String> {
    match reply {
        Reply::Done => None,
        Reply::Submitted { job, existing: false } => Some(format!("submitted {job}")),
        Reply::Submitted { job, existing: true } => {
            Some(format!("submitted {job}, which this request had made before"))
        }
        Reply::Cancelled { job, already_ended: false } => Some(format!("cancel accepted for {job}")),
        Reply::Cancelled { job, already_ended: true } => Some(format!("{job} had already ended")),
        Reply::Ignored { why } => Some(format!("ignored: {why}")),
        Reply::Rejected(rejection) => {
            let hint = rejection.hint.as_ref().map_or(String::new(), |hint| format!(" (hint: {hint})"));
            Some(format!("rejected {}: {}{hint}", rejection.code, rejection.text))
        }
    }
}

/// Acknowledgements and change marks go with nearly every entry: they are left to the unit tests.
pub fn effect(effect: &Effect) -> Option<String> {
    matches!(effect, Effect::Send { .. }).then(|| format!("  {effect}"))
}

pub fn job(job: &Job) -> Vec<String> {
    let mut head = format!("{} {} gen={} restarts={}", job.spec.job, job.phase, job.generation, job.restarts);
    if let Some(by) = job.cancelled_by {
        head += &format!(" by={}", by.as_str());
    }
    if let Some(failure) = &job.failure {
        head += &format!(" failure={}: {}", failure.cause, failure.text);
    }
    let mut lines = vec![head];
    for (rank, replica) in job.ranks() {
        let outcome = replica.outcome();
        let state = if outcome.is_empty() { replica.stage.as_str().to_owned() } else { outcome };
        lines.push(format!("  {} on {}: {state}", replica_name(rank), replica.worker));
    }
    for interruption in &job.interruptions {
        let over = interruption.over.map_or(String::new(), |resumption| {
            format!(", went on at step {} after {}", resumption.step, resumption.pause)
        });
        let (generation, step) = (interruption.generation, interruption.step_before);
        lines.push(format!("  interrupted gen={generation} at step {step}: {}{over}", interruption.reason));
    }
    lines
}

pub fn slots(state: &ClusterState) -> Vec<String> {
    let line = |(id, worker): (&coord_common::WorkerId, &coordinator_core::worker::Worker)| {
        let condition = match (worker.lost, worker.leaving) {
            (true, _) => " lost",
            (_, true) => " leaving",
            _ => "",
        };
        format!("{id} {}/{} slots used{condition}", state.slots_used(id), worker.registration.slots)
    };
    state.workers().map(line).collect()
}

pub fn at(time: Millis) -> String {
    format!("{}", time.0 as f64 / 1000.0)
}
