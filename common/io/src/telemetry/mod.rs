//! Logs of the process itself: to standard error, filtered by `COORD_LOG`.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Starts logging. `COORD_LOG` takes tracing's filter language (`info`, `coordinator::raft=debug`);
/// `COORD_LOG_FORMAT=json` writes one JSON object a line.
pub fn init(default_filter: &str) {
    let filter = EnvFilter::try_from_env("COORD_LOG").unwrap_or_else(|_| EnvFilter::new(default_filter));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second call (tests in one process) keeps the first subscriber.
    let _ = if std::env::var("COORD_LOG_FORMAT").is_ok_and(|format| format == "json") {
        builder.json().try_init()
    } else {
        builder.with_ansi(std::io::stderr().is_terminal()).with_target(false).try_init()
    };
}
