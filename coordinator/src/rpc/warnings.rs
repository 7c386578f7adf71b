//! What a submit should tell its user although it was taken.

use std::collections::BTreeSet;

use coord_common::JobId;
use coordinator_core::ClusterState;

/// Warnings for a job as the cluster is now.
pub fn of(state: &ClusterState, id: &JobId) -> Vec<String> {
    let Some(job) = state.job(id) else { return Vec::new() };
    let workers = || state.workers().filter(|(_, worker)| !worker.lost).map(|(_, worker)| &worker.registration);
    let hosts: BTreeSet<&str> = workers().map(|registration| registration.host.as_str()).collect();
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
    let device = job.spec.device;
    let slots: u32 = workers().filter(|registration| registration.device == device).map(|known| known.slots).sum();
    let wanted = job.spec.workers.start().saturating_mul(job.spec.slots_per_worker);
    if workers().next().is_some() && slots < wanted {
        warnings.push(format!(
            "the job needs {wanted} slots of the device {device}, all workers together have {slots}: it waits for more \
             workers"
        ));
    }
    warnings
}
