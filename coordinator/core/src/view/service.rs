//! The platform's own log of a job: derived from the state, growing only at its end, so a count of lines is a position.

use coord_common::{JobId, Millis};
use coord_proto::v1;

use crate::job::{Job, Severity};
use crate::state::ClusterState;

/// The task name of these lines.
pub const SERVICE: &str = "service";

/// All lines so far, oldest first; nothing for a job that does not exist.
pub fn service_lines(state: &ClusterState, id: &JobId) -> Vec<v1::LogLine> {
    let Some(job) = state.job(id) else { return Vec::new() };
    let submitted = submitted(job).map(|text| (job.created, Severity::Info, text));
    let events = job.events.iter().map(|event| (event.at, event.severity, event.text.clone()));
    (1..).zip(submitted.into_iter().chain(events)).map(|(position, line)| log_line(position, line)).collect()
}

/// The first lines, in the words of managed services. They follow from the submit and are not stored.
fn submitted(job: &Job) -> [String; 4] {
    [
        "Validating job requirements...".to_owned(),
        "Job creation request has been successfully validated.".to_owned(),
        format!("Job {} is queued.", job.spec.job),
        "Waiting for job to be provisioned.".to_owned(),
    ]
}

fn log_line(position: u64, (at, severity, text): (Millis, Severity, String)) -> v1::LogLine {
    v1::LogLine {
        severity: severity.as_str().to_owned(),
        at_millis: at.0,
        task: SERVICE.to_owned(),
        text,
        attempt: 0,
        next: Some(v1::LogPosition { task: SERVICE.to_owned(), attempt: 0, position }),
    }
}
