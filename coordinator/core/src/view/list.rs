//! Pages of jobs, newest first.

use std::collections::BTreeMap;

use coord_common::{Millis, Phase};
use coord_proto::v1;

use super::job::message;
use crate::explain::explain_with;
use crate::job::Job;
use crate::liveness::Liveness;
use crate::reply::Rejection;
use crate::schedule::{self, Verdicts};
use crate::state::ClusterState;

pub const PAGE_DEFAULT: u32 = 20;
pub const PAGE_MAX: u32 = 100;

/// Which jobs; the default is all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobFilter {
    /// Any of these; empty = all.
    pub phases: Vec<Phase>,
    /// All of these.
    pub labels: BTreeMap<String, String>,
}

impl JobFilter {
    pub fn accepts(&self, job: &Job) -> bool {
        let phase_fits = self.phases.is_empty() || self.phases.contains(&job.phase);
        phase_fits && self.labels.iter().all(|(key, value)| job.spec.labels.get(key) == Some(value))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct JobPage {
    /// Without arguments, checkpoints and tails: a page must stay small, and `job` has them.
    pub jobs: Vec<v1::Job>,
    /// Empty on the last page.
    pub next_page_token: String,
}

/// A token is the submission number of the last job of the page before, so that pages neither skip nor repeat jobs while
/// others come and go. Size 0 means the default; more than the most is cut.
pub fn list(
    state: &ClusterState,
    seen: &Liveness,
    now: Millis,
    filter: &JobFilter,
    page_token: &str,
    page_size: u32,
) -> Result<JobPage, Rejection> {
    let before = match page_token {
        "" => u64::MAX,
        token => token.parse().map_err(|_| {
            let text = format!("page token must be one that an earlier page gave, got {token:?}");
            Rejection::new("invalid_page_token", text)
        })?,
    };
    let size = if page_size == 0 { PAGE_DEFAULT } else { page_size.min(PAGE_MAX) } as usize;
    let mut found = state.newest_before(before).filter(|job| filter.accepts(job));
    let page: Vec<&Job> = found.by_ref().take(size).collect();
    let has_more = found.next().is_some();
    let next_page_token = match page.last() {
        Some(last) if has_more => last.submission.to_string(),
        _ => String::new(),
    };
    let positions = schedule::positions(state, page.iter().copied());
    let verdicts = Verdicts::new(state, seen, now);
    let brief = |job: &&Job| {
        let position = positions.get(&job.spec.job).copied();
        let blockers = explain_with(state, seen, now, job, &verdicts, position);
        shortened(message(state, seen, now, job, blockers, position))
    };
    Ok(JobPage { jobs: page.iter().map(brief).collect(), next_page_token })
}

fn shortened(mut job: v1::Job) -> v1::Job {
    if let Some(spec) = &mut job.spec {
        spec.args.clear();
    }
    job.checkpoints.clear();
    if let Some(failure) = &mut job.failure {
        failure.tail.clear();
    }
    job
}
