//! Jobs that run and do not move, as far as the leader hears.

use coord_common::{Millis, Phase};

use crate::blocker::Blocker;
use crate::job::Job;
use crate::liveness::Liveness;
use crate::state::ClusterState;

/// A job moves while its last step lies no further back than this, or than [`STEPS_QUIET`] of its steps take.
const QUIET: Millis = Millis(10_000);
const STEPS_QUIET: f64 = 10.0;

/// The job stands still, and since when.
pub fn of(seen: &Liveness, now: Millis, job: &Job) -> Option<Blocker> {
    let gauge = seen.progress.get(&job.spec.job).filter(|_| job.phase == Phase::Running)?;
    let quiet = now.since(gauge.at.max(seen.since));
    // A gauge of nonsense makes the longest time, which never comes.
    let usual = Millis((gauge.seconds_per_step * 1_000.0 * STEPS_QUIET) as u64);
    let stands_still = quiet > usual.max(QUIET);
    stands_still.then(|| Blocker::NoStep { last: gauge.step, quiet, stage: gauge.stage.clone() })
}

/// Replicas that their agents do not hear. Of agents that are not heard themselves nothing is known.
pub fn silent(state: &ClusterState, seen: &Liveness, now: Millis, job: &Job) -> Option<Blocker> {
    let silences = job.live().filter_map(|(rank, replica)| {
        let worker = state.worker(&replica.worker)?;
        let reachable = seen.is_reachable(&replica.worker, worker, now);
        let since = seen.silent_since(&replica.worker, worker, &job.key(rank)).filter(|_| reachable)?;
        Some((rank, now.since(since)))
    });
    let (ranks, silences): (Vec<_>, Vec<_>) = silences.unzip();
    let silence = silences.into_iter().max()?;
    Some(Blocker::SilentReplicas { ranks, silence })
}
