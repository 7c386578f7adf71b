//! The tables of `coord describe`: replicas, interruptions, checkpoints.

use coord_proto::v1;

use super::printer::Table;
use super::text;

/// Rows of the checkpoint table; older ones are counted.
const CHECKPOINTS_SHOWN: usize = 5;

pub fn replicas(job: &v1::Job) -> String {
    if job.replicas.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["NAME", "WORKER", "GENERATION", "STATE", "SAMPLES", "OUTCOME"]).indented(2);
    for replica in &job.replicas {
        let outcome = match (replica.outcome.as_str(), replica.consequence) {
            ("", _) => "-".to_owned(),
            (outcome, true) => format!("{outcome} (consequence)"),
            (outcome, false) => outcome.to_owned(),
        };
        let worker = if replica.worker_name.is_empty() { &replica.worker } else { &replica.worker_name };
        table.row([
            replica.name.clone(),
            worker.clone(),
            replica.generation.to_string(),
            replica.state.clone(),
            text::count(replica.samples),
            outcome,
        ]);
    }
    format!("Replicas:\n{}", table.render())
}

pub fn interruptions(job: &v1::Job) -> String {
    if job.interruptions.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["TIME", "GENERATION", "PAUSE", "STEP BEFORE", "STEP AFTER", "REASON"]).indented(2);
    for interruption in &job.interruptions {
        table.row([
            text::stamp(interruption.at_millis),
            interruption.generation.to_string(),
            if interruption.over { text::duration(interruption.pause_millis) } else { "lasts".to_owned() },
            interruption.step_before.to_string(),
            if interruption.over { interruption.step_after.to_string() } else { "-".to_owned() },
            interruption.reason.clone(),
        ]);
    }
    format!("Interruptions:\n{}", table.render())
}

/// The newest first.
pub fn checkpoints(job: &v1::Job) -> String {
    if job.checkpoints.is_empty() {
        return String::new();
    }
    let mut newest_first: Vec<&v1::CheckpointRecord> = job.checkpoints.iter().collect();
    newest_first.sort_by_key(|checkpoint| std::cmp::Reverse((checkpoint.step, checkpoint.generation)));
    let mut table = Table::new(&["STEP", "GENERATION", "SAVED", "DIGEST"]).indented(2);
    for checkpoint in newest_first.iter().take(CHECKPOINTS_SHOWN) {
        table.row([
            checkpoint.step.to_string(),
            checkpoint.generation.to_string(),
            text::stamp(checkpoint.at_millis),
            text::short_digest(&checkpoint.state_digest),
        ]);
    }
    let older = newest_first.len().saturating_sub(CHECKPOINTS_SHOWN);
    let rest =
        if older > 0 { format!("  and {older} recorded earlier; the newest 5 are kept\n") } else { String::new() };
    format!("Checkpoints:\n{}{rest}", table.render())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// JOB-06: who failed first, and who only followed.
    #[test]
    fn replicas_that_fell_with_another_are_marked_as_consequence() {
        let replica = |rank: u32, outcome: &str, consequence| v1::Replica {
            rank,
            name: format!("worker-replica-{rank}"),
            worker_name: "a".into(),
            generation: 1,
            state: "exited".into(),
            samples: 1_200,
            outcome: outcome.into(),
            consequence,
            ..v1::Replica::default()
        };
        let job =
            v1::Job { replicas: vec![replica(2, "exit 7", false), replica(3, "exit 1", true)], ..v1::Job::default() };
        assert_eq!(
            replicas(&job),
            "Replicas:\n  \
             NAME              WORKER  GENERATION  STATE   SAMPLES  OUTCOME\n  \
             worker-replica-2  a       1           exited  1,200    exit 7\n  \
             worker-replica-3  a       1           exited  1,200    exit 1 (consequence)\n"
        );
    }

    #[test]
    fn an_interruption_that_lasts_has_no_pause_and_no_step_after_it() {
        let lasting = v1::Interruption { generation: 1, reason: "worker a lost".into(), ..v1::Interruption::default() };
        let over =
            v1::Interruption { over: true, pause_millis: 340, step_before: 9, step_after: 10, ..lasting.clone() };
        let job = v1::Job { interruptions: vec![over, lasting], ..v1::Job::default() };
        let text = interruptions(&job);
        assert!(text.contains("340 ms  9            10          worker a lost"), "{text}");
        assert!(text.contains("lasts   0            -           worker a lost"), "{text}");
    }
}
