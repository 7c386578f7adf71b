//! The one way the state changes: an entry of the log, applied alike on every node.

mod begin_generation;
mod cancel_job;
mod delete_job;
mod drain_worker;
mod forget_jobs;
mod lose_worker;
mod place_job;
mod register_worker;
mod replica_fact;
mod submit_job;

use coord_common::Millis;

use crate::effect::{Applied, Effect};
use crate::entry::{Command, Entry};
use crate::reply::Reply;
use crate::state::ClusterState;

/// Never fails: what cannot be done is refused in the reply, and then nothing has changed but the clock.
pub fn apply(state: &mut ClusterState, entry: Entry) -> Applied {
    let at = state.advance_clock(entry.at);
    let mut effects = Vec::new();
    let reply = apply_command(state, at, entry.command, &mut effects);
    Applied { reply, effects }
}

fn apply_command(state: &mut ClusterState, at: Millis, command: Command, out: &mut Vec<Effect>) -> Reply {
    match command {
        Command::SubmitJob(submit) => submit_job::apply(state, at, submit, out),
        Command::CancelJob { job, by } => cancel_job::apply(state, at, &job, by, out),
        Command::DeleteJob { job } => delete_job::apply(state, &job, out),
        Command::ForgetJobs { jobs } => forget_jobs::apply(state, &jobs, out),
        Command::RegisterWorker(registration) => register_worker::apply(state, at, registration, out),
        Command::DrainWorker { worker, incarnation } => drain_worker::apply(state, at, &worker, &incarnation, out),
        Command::LoseWorker { worker, incarnation, reason } => {
            lose_worker::apply(state, at, &worker, &incarnation, &reason, out)
        }
        Command::PlaceJob(place) => place_job::apply(state, at, place, out),
        Command::BeginGeneration { job, generation, restore } => {
            begin_generation::apply(state, at, &job, generation, restore, out)
        }
        Command::ReplicaFact { worker, incarnation, fact } => {
            replica_fact::apply(state, at, worker, incarnation, fact, out)
        }
    }
}
