//! Ctrl-C in a command that follows a job: the job goes on, and the user learns how to come back.

/// Completes at SIGINT or SIGTERM. Where signals cannot be caught, the default action ends the process anyway.
pub async fn requested() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// The remark that is printed then.
pub fn goes_on(job: &str, command: &str) -> String {
    format!("\nJob [{job}] goes on. Come back with `{command}`, or end it with `coord cancel {job}`.")
}
