//! What a submit should tell its user although it was taken.

use std::collections::BTreeSet;

use coord_common::JobId;
use coordinator_core::ClusterState;

/// Warnings for a job as the cluster is now.
pub fn of(state: &ClusterState, id: &JobId) -> Vec<String> {
    let Some(job) = state.job(id) else { return Vec::new() };
    let hosts: BTreeSet<&str> = state
        .workers()
        .filter(|(_, worker)| !worker.lost)
        .map(|(_, worker)| worker.registration.host.as_str())
        .collect();
    let local = job.job_dir.starts_with("file://") || !job.job_dir.contains("://");
    let mut warnings = Vec::new();
    if local && hosts.len() > 1 {
        warnings.push(format!(
            "{} is a path on each host by itself, and the workers are on {} hosts: use a file system that all of them \
             share, or `--job-dir s3://...`",
            job.job_dir,
            hosts.len()
        ));
    }
    warnings
}
