//! What the demonstration shows, in order.

use coord_common::convert::spec_to_wire;
use coord_common::{JobId, JobSettings, JobSpec};
use coord_proto::v1;
use serde_json::json;
use uuid::Uuid;

use super::super::chat::{Answer, ask_job};
use super::super::client::Client;
use super::super::exit::{Exit, Problem};
use super::super::printer::{Output, Printer};
use super::super::watch::View;
use super::super::{describe, describe_tables, list, names, shapes};
use super::cluster::Cluster;
use super::place::Place;

const JOB: &str = "chatbot";
const STEPS: u64 = 1_200;
const STEPS_PER_CHECKPOINT: u64 = 100;
/// The worker is killed when the training has come this far: between two checkpoints.
const KILL_AT: u64 = 430;
const QUESTIONS: [&str; 3] = ["hello , how are you ?", "what is your favorite movie ?", "did you like it ?"];

pub async fn tell(
    cluster: &mut Cluster,
    client: &mut Client,
    place: &Place,
    printer: &Printer,
) -> Result<Exit, Problem> {
    let teller = Teller { printer };
    teller.say(&format!("A cluster starts in {}: one coordinator, two workers.", place.root().display()))?;
    cluster.ready(client).await?;
    submit(client, place, &teller).await?;

    // Programs get one value at the end, so nothing moves for them.
    let shown = if printer.output() == Output::Table { *printer } else { Printer::new(Output::Quiet) };
    let mut scene = Scene { cluster, client, view: View::new(shown), version: 0 };
    let at_kill = scene.follow(|job| kill_is_due(job) || has_ended(job)).await?;
    let interruption = if has_ended(&at_kill) { None } else { scene.kill(&at_kill, place, &teller).await? };
    let ended = scene.follow(has_ended).await?;
    scene.view.finish();
    if ended.phase() != v1::Phase::Succeeded {
        return Err(not_succeeded(&ended, place));
    }
    teller.say("\nThe job has succeeded. Its checkpoints:")?;
    teller.say(describe_tables::checkpoints(&ended).trim_end())?;
    let answers = talk(scene.client, &teller).await?;
    teller.say(&farewell(place))?;
    if printer.output() == Output::Json {
        printer.json(&summary(&ended, interruption.as_ref(), &answers, place))?;
    }
    Ok(Exit::Done)
}

/// Tells the story: on standard output for people, beside the data for programs.
struct Teller<'a> {
    printer: &'a Printer,
}

impl Teller<'_> {
    fn say(&self, text: &str) -> Result<(), Problem> {
        match self.printer.output() {
            Output::Table => self.printer.line(text),
            Output::Json | Output::Quiet => {
                self.printer.talk(text);
                Ok(())
            }
        }
    }
}

/// The job while it is followed.
struct Scene<'a> {
    cluster: &'a mut Cluster,
    client: &'a mut Client,
    view: View,
    version: u64,
}

impl Scene<'_> {
    /// Shows every state until one fits.
    async fn follow(&mut self, fits: impl Fn(&v1::Job) -> bool) -> Result<v1::Job, Problem> {
        loop {
            let answer = self
                .client
                .watch(JOB, self.version)
                .await
                .map_err(|error| Problem::from(error).context("cannot follow job"))?;
            self.version = answer.version;
            let job = answer.job.unwrap_or_default();
            self.view.show(&job)?;
            if fits(&job) {
                return Ok(job);
            }
            self.cluster.check_alive()?;
        }
    }

    /// Kills a worker with its replica and waits until the job has got over it.
    async fn kill(
        &mut self,
        job: &v1::Job,
        place: &Place,
        teller: &Teller<'_>,
    ) -> Result<Option<v1::Interruption>, Problem> {
        // Not the master, which reports the progress: so the figures shown go on without a gap.
        let Some(replica) = job.replicas.iter().rfind(|replica| replica.outcome.is_empty()) else { return Ok(None) };
        let Some((worker, id)) = self.cluster.kill_worker_of(replica, place) else { return Ok(None) };
        let step = job.progress.as_ref().map_or(0, |progress| progress.step);
        self.view.pause(|| {
            teller.say(&format!("\nAt step {step}, {worker} (process {id}) is killed, and {} with it.", replica.name))
        })?;
        let after = self.follow(|job| newest_pause(job).is_some() || has_ended(job)).await?;
        let interruption = newest_pause(&after);
        if let Some(interruption) = interruption {
            self.view.pause(|| teller.say(&recovered(interruption)))?;
        }
        Ok(interruption.cloned())
    }
}

fn has_ended(job: &v1::Job) -> bool {
    Exit::of_job(job.phase(), &job.ended_by).is_some()
}

/// Both replicas are at work and have got somewhere.
fn kill_is_due(job: &v1::Job) -> bool {
    let live = job.replicas.iter().filter(|replica| replica.outcome.is_empty()).count();
    let step = job.progress.as_ref().map_or(0, |progress| progress.step);
    job.phase() == v1::Phase::Running && live > 1 && step >= KILL_AT
}

/// The newest interruption, once it is over.
fn newest_pause(job: &v1::Job) -> Option<&v1::Interruption> {
    job.interruptions.last().filter(|interruption| interruption.over)
}

fn recovered(interruption: &v1::Interruption) -> String {
    let v1::Interruption { step_before, step_after, pause_millis, .. } = interruption;
    let redone = match step_before.saturating_sub(*step_after) {
        0 => "No step was lost or repeated.".to_owned(),
        steps => format!("{steps} steps since the newest checkpoint are computed again, to the same bits."),
    };
    format!(
        "Last step before: {step_before}. Pause: {pause_millis} ms. Training goes on after step {step_after}. {redone}\n"
    )
}

async fn submit(client: &mut Client, place: &Place, teller: &Teller<'_>) -> Result<(), Problem> {
    let flags = program_flags(place);
    teller.say(&format!(
        "Real dialogues become pairs of prompt and reply; a small model learns from them:\n\n  \
         coord submit {JOB} --trainer translate --workers 1:2 --cpus 1 -- \\\n    {}\n",
        flags.join(" \\\n    ")
    ))?;
    let mut settings = JobSettings::new(JobId::parse(JOB).map_err(|error| names::coded(&error))?, "translate");
    settings.workers = 1..=2;
    settings.cpus = Some(1);
    settings.args = flags.into_iter().map(String::into_bytes).collect();
    let spec = JobSpec::new(settings).map_err(|error| names::coded(&error))?;
    let request = v1::SubmitJobRequest { request_id: Uuid::new_v4().to_string(), spec: Some(spec_to_wire(&spec)) };
    client.submit(request).await.map_err(|error| Problem::from(error).context("cannot submit job"))?;
    Ok(())
}

fn program_flags(place: &Place) -> Vec<String> {
    let mut flags = Vec::new();
    for (flag, file) in [
        ("from_train_data", "train.a"),
        ("to_train_data", "train.b"),
        ("from_dev_data", "test.a"),
        ("to_dev_data", "test.b"),
    ] {
        flags.push(format!("--{flag}={}", place.dialogue_url(file)));
    }
    for (flag, value) in [
        ("size", 128),
        ("num_layers", 1),
        ("from_vocab_size", 2_000),
        ("to_vocab_size", 2_000),
        ("steps", STEPS),
        ("steps_per_checkpoint", STEPS_PER_CHECKPOINT),
    ] {
        flags.push(format!("--{flag}={value}"));
    }
    flags
}

async fn talk(client: &mut Client, teller: &Teller<'_>) -> Result<Vec<Answer>, Problem> {
    teller.say("\nA model this small, after so few steps, says little. Three questions all the same:\n")?;
    let mut answers = Vec::new();
    for question in QUESTIONS {
        let answer = ask_job(client, JOB, None, question.to_owned()).await?;
        teller.say(&format!("[step {}] > {question}\n{}", answer.step, answer.text))?;
        answers.push(answer);
    }
    Ok(answers)
}

fn not_succeeded(job: &v1::Job, place: &Place) -> Problem {
    let why = job.failure.as_ref().map(|failure| format!("\n{}", describe::failure(failure).trim_end()));
    Problem::failed(format!("the job is {}{}", shapes::phase_name(job.phase()), why.unwrap_or_default()))
        .hint(format!("the logs are in {}", place.logs().display()))
}

fn farewell(place: &Place) -> String {
    let root = place.root().display();
    let job_dir = format!("{}/jobs/{JOB}", place.storage_url());
    format!(
        "\nEverything lies in {root}; `rm -r {root}` removes it. Go on talking without a cluster:\n\n  \
         coord chat {job_dir}\n\n\
         The same by hand:\n\n  \
         coord data dialogs movie_lines.txt {root}/dialogues\n  \
         coord serve --data-dir {root}/coordinator --storage {}\n  \
         coord-worker run --slots 1 --work-dir ./worker-1\n  \
         coord-worker run --slots 1 --work-dir ./worker-2 --http 127.0.0.1:7073\n  \
         coord submit NAME --trainer translate --workers 1:2 -- ...\n  \
         coord watch NAME\n  \
         coord chat NAME",
        place.storage_url()
    )
}

fn summary(
    job: &v1::Job,
    interruption: Option<&v1::Interruption>,
    answers: &[Answer],
    place: &Place,
) -> serde_json::Value {
    json!({
        "directory": place.root(),
        "job": list::name(job),
        "state": shapes::phase_name(job.phase()),
        "interruption": interruption.map(shapes::interruption),
        "checkpoints": job.checkpoints.iter().map(shapes::checkpoint).collect::<Vec<_>>(),
        "answers": answers.iter().zip(QUESTIONS).map(|(answer, question)| {
            json!({ "prompt": question, "step": answer.step, "text": answer.text })
        }).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replica(outcome: &str) -> v1::Replica {
        v1::Replica { outcome: outcome.into(), ..v1::Replica::default() }
    }

    #[test]
    fn a_worker_is_killed_only_while_both_replicas_train() {
        let mut job = v1::Job {
            phase: v1::Phase::Running.into(),
            replicas: vec![replica(""), replica("")],
            progress: Some(v1::Progress { step: KILL_AT, ..v1::Progress::default() }),
            ..v1::Job::default()
        };
        assert!(kill_is_due(&job));
        job.replicas[1] = replica("exit 1");
        assert!(!kill_is_due(&job));
        job.replicas[1] = replica("");
        job.progress = Some(v1::Progress { step: KILL_AT - 1, ..v1::Progress::default() });
        assert!(!kill_is_due(&job));
    }

    #[test]
    fn an_interruption_counts_when_its_pause_is_over() {
        let mut job = v1::Job { interruptions: vec![v1::Interruption::default()], ..v1::Job::default() };
        assert_eq!(newest_pause(&job), None);
        job.interruptions[0].over = true;
        assert_eq!(newest_pause(&job), job.interruptions.last());
    }
}
