//! What a submit should tell its user although it was taken.

use std::collections::BTreeSet;
use std::time::Duration;

use coord_common::{JobId, JobSpec};
use coord_io::storage::Storage;
use coordinator_core::{ClusterState, schedule};
use tokio::sync::Semaphore;

/// A look into storage holds up the answer to a submit for this long at most, and only so many look at once: where many
/// jobs are submitted together, some go without this warning.
const LOOK_LIMIT: Duration = Duration::from_millis(500);
static LOOKS: Semaphore = Semaphore::const_new(8);

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
    // Without any worker the job waits, which is nothing to be warned of.
    if workers().next().is_some() {
        warnings.extend(schedule::impossible(state, job).iter().map(ToString::to_string));
    }
    warnings
}

/// Whether the cluster's storage has something of an earlier job of this name, which the coordinator does not know: its
/// state was lost, or another coordinator shares the storage. Call before the job begins to write there.
pub async fn of_storage(storage: &str, spec: &JobSpec) -> Option<String> {
    if spec.job_dir.is_some() {
        return None;
    }
    let _turn = LOOKS.try_acquire().ok()?;
    let folder = Storage::open(storage).and_then(|storage| storage.folder(&format!("jobs/{}", spec.job))).ok()?;
    // A store that is unwell is told by the job itself, before its first step.
    let level = tokio::time::timeout(LOOK_LIMIT, folder.list_level("")).await.ok()?.ok()?;
    let is_empty = level.objects.is_empty() && level.folders.is_empty();
    let then = if spec.fresh { "begins anew beside its checkpoints" } else { "goes on from its checkpoints" };
    let instead = if spec.fresh { "" } else { "; `--fresh` would begin anew" };
    (!is_empty).then(|| format!("{} holds an earlier job of this name: the new one {then}{instead}", folder.url()))
}
