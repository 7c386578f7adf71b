//! The first word of a job that people talk to: the step that answers, or why none can answer yet.

use coord_proto::v1;

use super::chat::Answer;
use super::client::Client;
use super::exit::{Exit, Problem};
use super::printer::Printer;
use super::{shapes, wait, watch};

const DOING: &str = "cannot chat with job";

/// Asks which step answers. A job that has no checkpoint yet says so once; then, if `patient`, it is waited for.
pub async fn greet(
    client: &mut Client,
    printer: &Printer,
    name: &str,
    at: Option<u64>,
    patient: bool,
) -> Result<Answer, Problem> {
    let mut said = false;
    loop {
        let refusal = match client.ask(probe(name, at)).await {
            Ok(answer) => return Ok(Answer { step: answer.step, text: answer.text, notes: answer.notes }),
            Err(refusal) => refusal,
        };
        // A step that was asked for by its number may never come.
        if at.is_some() || !matches!(refusal.code(), "no_checkpoint" | "no_worker") {
            return Err(Problem::from(refusal).context(DOING));
        }
        let (job, version) = look(client, name, 0).await?;
        if !job.checkpoints.is_empty() {
            match refusal.code() {
                // It came in this moment.
                "no_checkpoint" => continue,
                // No matter of its training.
                _ => return Err(Problem::from(refusal).context(DOING)),
            }
        }
        if has_ended(&job) {
            return Err(never(name, &job));
        }
        if !patient {
            return Err(Problem::failed(format!("{DOING}: {}", not_yet(name, &job)))
                .hint(format!("`coord watch {name}` shows how far it is")));
        }
        if !said {
            printer.talk(&format!("{}; this waits for it", not_yet(name, &job)));
            said = true;
        }
        wait_for_news(client, name, &job, version).await?;
    }
}

fn probe(name: &str, at: Option<u64>) -> v1::AskJobRequest {
    v1::AskJobRequest { job: name.to_owned(), at_step: at, prompt: String::new(), probe: true }
}

async fn look(client: &mut Client, name: &str, version: u64) -> Result<(v1::Job, u64), Problem> {
    let answer = client.watch(name, version).await.map_err(|error| wait::removed(name, version, error.into()))?;
    Ok((answer.job.unwrap_or_default(), answer.version))
}

/// Until there is a reason to ask again.
async fn wait_for_news(client: &mut Client, name: &str, before: &v1::Job, version: u64) -> Result<(), Problem> {
    let mut version = version;
    loop {
        let (job, newer) = look(client, name, version).await?;
        if is_news(before, &job) {
            return Ok(());
        }
        version = newer;
    }
}

fn is_news(before: &v1::Job, now: &v1::Job) -> bool {
    let newest = |job: &v1::Job| job.checkpoints.iter().map(|checkpoint| checkpoint.step).max();
    before.phase != now.phase || newest(before) != newest(now)
}

fn has_ended(job: &v1::Job) -> bool {
    Exit::of_job(job.phase(), &job.ended_by).is_some()
}

/// `job [night] is QUEUED: wants 1 slot, 0 free; it answers from its first complete checkpoint on`
fn not_yet(name: &str, job: &v1::Job) -> String {
    let state = watch::line(job).replacen("  ", ": ", 1);
    format!("job [{name}] is {state}; it answers from its first complete checkpoint on")
}

fn never(name: &str, job: &v1::Job) -> Problem {
    let state = shapes::phase_name(job.phase());
    Problem::failed(format!("{DOING}: job [{name}] is {state} and has no complete checkpoint"))
        .hint(format!("`coord why {name}` tells how it ended"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(phase: v1::Phase, steps: &[u64]) -> v1::Job {
        let checkpoint = |&step| v1::CheckpointRecord { step, ..v1::CheckpointRecord::default() };
        v1::Job { phase: phase.into(), checkpoints: steps.iter().map(checkpoint).collect(), ..v1::Job::default() }
    }

    #[test]
    fn a_new_state_or_a_new_checkpoint_is_a_reason_to_ask_again() {
        let before = job(v1::Phase::Running, &[10]);
        assert!(!is_news(&before, &before));
        assert!(is_news(&before, &job(v1::Phase::Running, &[10, 20])));
        assert!(is_news(&before, &job(v1::Phase::Failed, &[10])));
    }

    #[test]
    fn a_job_that_cannot_answer_yet_says_its_state_and_why() {
        let mut queued = job(v1::Phase::Queued, &[]);
        queued.reasons = vec![v1::Reason { text: "wants 1 slot, 0 free".into(), ..v1::Reason::default() }];
        let rest = "it answers from its first complete checkpoint on";
        assert_eq!(not_yet("night", &queued), format!("job [night] is QUEUED: wants 1 slot, 0 free; {rest}"));
        assert_eq!(not_yet("night", &job(v1::Phase::Running, &[])), format!("job [night] is RUNNING; {rest}"));
    }
}
