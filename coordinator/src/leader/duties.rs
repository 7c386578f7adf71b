//! The leader's decisions: after each change and every 200 ms, what `plan` says is proposed.

use std::time::{Duration, Instant};

use coord_common::Millis;
use coordinator_core::{Command, Reply, plan};

use super::Leader;
use super::agents::{Agents, LOOK_EVERY};

const INTERVAL: Duration = Duration::from_millis(200);
/// Between two decisions lies this many times what the last one took: applying must not wait for a planner of a very
/// large cluster.
const PACE: u32 = 4;

/// One loop per node; it decides only while this node leads.
pub(super) async fn run(leader: Leader) {
    let handle = leader.handle().clone();
    let mut views = handle.views();
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut term_begun = 0;
    loop {
        tokio::select! {
            changed = views.changed() => if changed.is_err() { return },
            _ = ticks.tick() => {}
        }
        let raft = views.borrow_and_update().raft;
        if !raft.leads {
            term_begun = 0;
            continue;
        }
        if term_begun != raft.term {
            // Everything that earlier leaders committed must be applied before the first decision.
            if handle.barrier().await.is_err() {
                continue;
            }
            leader.agents().begin(raft.term, leader.now(), leader.policy());
            term_begun = raft.term;
        }
        let began = Instant::now();
        let commands = handle.peek(|state| {
            let mut agents = leader.agents();
            look(&mut agents, leader.now());
            agents.liveness.progress.retain(|job, _| state.job(job).is_some());
            plan(state, &agents.liveness, leader.now())
        });
        let rest = (began.elapsed() * PACE).min(INTERVAL);
        if commands.is_empty() {
            tokio::time::sleep(rest).await;
            continue;
        }
        if !propose(&leader, commands).await {
            // A plan that was refused would be made again at once: the next one waits for the tick.
            ticks.tick().await;
        }
    }
}

/// Beside the decisions, which may wait for a commit.
pub(super) async fn watch_the_clock(leader: Leader) {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let views = leader.handle().views();
    // An error: the node has ended.
    while views.has_changed().is_ok() {
        looks.tick().await;
        look(&mut leader.agents(), leader.now());
    }
}

fn look(agents: &mut Agents, now: Millis) {
    if let Some(gap) = agents.look(now) {
        tracing::warn!(seconds = gap.0 as f64 / 1e3, "this process stood still; no worker is called silent for it");
    }
}

/// True if all commands had their effect.
async fn propose(leader: &Leader, commands: Vec<Command>) -> bool {
    let mut answers = Vec::with_capacity(commands.len());
    for command in commands {
        let command = with_secret(command);
        tracing::debug!(?command, "decision");
        match leader.handle().enqueue(command).await {
            Ok(answer) => answers.push(answer),
            Err(_) => return false,
        }
    }
    let mut all = true;
    for answer in answers {
        match answer.await {
            Ok(Reply::Rejected(rejection)) => {
                tracing::debug!(code = rejection.code, reason = %rejection, "decision refused");
                all = false;
            }
            Ok(Reply::Ignored { .. }) | Err(_) => all = false,
            Ok(Reply::Done | Reply::Submitted { .. } | Reply::Cancelled { .. }) => {}
        }
    }
    all
}

/// `plan` knows no randomness: the secret that opens connections between the replicas of a generation is made here.
fn with_secret(command: Command) -> Command {
    match command {
        Command::PlaceJob(mut place) => {
            place.secret = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
            Command::PlaceJob(place)
        }
        other => other,
    }
}
