//! Ctrl-C in a command that follows a job: the job goes on, and the user learns how to come back.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::each_job;

/// Completes when the process is asked to end: Ctrl-C, SIGTERM, or a terminal that was closed. Signals are caught from
/// the call on, not from the first poll; those that cannot be caught end the process in their default way.
pub fn requested() -> impl Future<Output = ()> {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let mut signals: Vec<Signal> = kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect();
    async move {
        let any = signals.iter_mut().map(|signal| Box::pin(signal.recv()));
        if any.len() == 0 {
            return std::future::pending().await;
        }
        futures::future::select_all(any).await;
    }
}

/// The remark that is printed then.
pub fn goes_on(jobs: &[String], command: &str) -> String {
    let (named, all) = (each_job::named("Job", jobs), jobs.join(" "));
    let (goes, them) = if jobs.len() == 1 { ("goes", "it") } else { ("go", "them") };
    format!("\n{named} {goes} on. Come back with `{command}`, or end {them} with `coord cancel {all}`.")
}
