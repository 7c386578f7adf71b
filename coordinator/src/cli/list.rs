//! `coord list`: jobs, newest first.

use clap::Args;
use coord_common::Phase;
use coord_common::convert::phase_to_wire;
use coord_proto::v1;
use serde_json::Value;

use super::exit::{Exit, Problem};
use super::printer::{Output, Table};
use super::session::Session;
use super::{names, shapes, text};

/// The coordinator gives no more jobs than this in one answer.
const PAGE_SIZE_MAX: u32 = 100;

/// Rows of a table that nobody asked to be longer.
const TABLE_LIMIT: usize = 100;

#[derive(Debug, Args)]
pub struct ListFlags {
    /// Show at most this many jobs, 0 for all; without it, 100 in a table and all in JSON or quietly
    #[arg(long, value_name = "N")]
    pub limit: Option<u32>,
    /// Only jobs in these states
    #[arg(long, value_delimiter = ',', value_parser = state, value_name = "STATE,...")]
    pub state: Vec<Phase>,
    /// Only jobs that carry all these labels
    #[arg(long = "label", visible_alias = "labels", value_delimiter = ',', value_name = "KEY=VALUE,...")]
    pub labels: Vec<String>,
}

fn state(text: &str) -> Result<Phase, String> {
    Phase::from_name(text).ok_or_else(|| format!("must be one of {}", Phase::ALL.map(Phase::as_str).join(", ")))
}

pub async fn run(flags: ListFlags, session: &mut Session) -> Result<Exit, Problem> {
    let limit = match flags.limit {
        Some(0) => usize::MAX,
        Some(limit) => limit as usize,
        // A person looks at the newest; a program must not miss one.
        None if session.printer.output() == Output::Table => TABLE_LIMIT,
        None => usize::MAX,
    };
    let mut request = v1::ListJobsRequest {
        phases: flags.state.iter().map(|&state| phase_to_wire(state).into()).collect(),
        labels: names::labels(&flags.labels)?,
        ..v1::ListJobsRequest::default()
    };
    let mut jobs = Vec::new();
    let more = loop {
        let wanted = limit - jobs.len();
        request.page_size = u32::try_from(wanted).unwrap_or(PAGE_SIZE_MAX).min(PAGE_SIZE_MAX);
        let page = session.client.list(request.clone()).await.map_err(|error| session.problem("list jobs", error))?;
        jobs.extend(page.jobs.into_iter().take(wanted));
        if page.next_page_token.is_empty() {
            break false;
        }
        if jobs.len() >= limit {
            break true;
        }
        request.page_token = page.next_page_token;
    };
    print(&jobs, session)?;
    if more {
        session.printer.talk(&format!("There are more jobs than these {limit}: `--limit 0` shows all."));
    }
    Ok(Exit::Done)
}

fn print(jobs: &[v1::Job], session: &Session) -> Result<(), Problem> {
    match session.printer.output() {
        Output::Json => session.printer.json(&Value::Array(jobs.iter().map(shapes::listed_job).collect())),
        Output::Quiet => jobs.iter().try_for_each(|job| session.printer.line(name(job))),
        Output::Table if jobs.is_empty() => {
            session.printer.talk("No jobs.");
            Ok(())
        }
        Output::Table => {
            let mut table = Table::new(&["JOB", "STATE", "WORKERS", "STEP", "CREATED"]);
            for job in jobs {
                let created = text::stamp(job.created_millis);
                table.row([name(job), shapes::phase_name(job.phase()), &workers(job), &step(job), &created]);
            }
            session.printer.table(&table)
        }
    }
}

pub fn name(job: &v1::Job) -> &str {
    job.spec.as_ref().map_or("", |spec| &spec.job)
}

/// Replicas that live now and how many may: `2 of 1:4`; without a placement only how many may.
pub fn workers(job: &v1::Job) -> String {
    let spec = job.spec.clone().unwrap_or_default();
    let wanted = if spec.workers_min == spec.workers_max {
        spec.workers_max.to_string()
    } else {
        format!("{}:{}", spec.workers_min, spec.workers_max)
    };
    let live = job.replicas.iter().filter(|replica| replica.outcome.is_empty()).count();
    if live > 0 && live.to_string() != wanted { format!("{live} of {wanted}") } else { wanted }
}

/// `120/300`, `120` without a limit, nothing before the first step.
pub fn step(job: &v1::Job) -> String {
    match &job.progress {
        Some(progress) if progress.steps > 0 => format!("{}/{}", progress.step, progress.steps),
        Some(progress) if progress.step > 0 => progress.step.to_string(),
        _ => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_elastic_job_shows_how_many_of_its_workers_live() {
        let mut job = v1::Job {
            spec: Some(v1::JobSpec { workers_min: 1, workers_max: 4, ..v1::JobSpec::default() }),
            ..v1::Job::default()
        };
        assert_eq!(workers(&job), "1:4");
        job.replicas = vec![v1::Replica::default(), v1::Replica { outcome: "signal 9".into(), ..Default::default() }];
        assert_eq!(workers(&job), "1 of 1:4");
        job.spec = Some(v1::JobSpec { workers_min: 1, workers_max: 1, ..v1::JobSpec::default() });
        assert_eq!(workers(&job), "1");
    }
}
