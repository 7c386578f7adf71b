//! `coord-worker run`: the agent of this host.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use coord_common::time::Millis;

use super::fail;
use crate::agent::service;
use crate::agent::settings::AgentSettings;

#[derive(Debug, Args)]
pub struct RunFlags {
    /// Coordinator nodes, separated by commas
    #[arg(long, env = "COORD_ADDRESS", default_value = "127.0.0.1:7070", value_delimiter = ',', value_name = "A,A,A")]
    coordinator: Vec<String>,
    /// Replicas that may run at once; `auto` = one for each two cores
    #[arg(long, default_value = "auto", value_name = "N|auto")]
    slots: String,
    /// Logs and marks of running replicas; one agent for each directory
    #[arg(long, default_value = "./coord-worker-data", value_name = "D")]
    work_dir: PathBuf,
    /// Address of /metrics, /healthz and /readyz; `off` for none
    #[arg(long, default_value = "127.0.0.1:7072", value_name = "A")]
    http: String,
    /// Address that replicas listen on, and that their peers call
    #[arg(long, default_value = "127.0.0.1", value_name = "HOST")]
    host: String,
    /// Seconds after which a replica that says nothing is ended: its process is stopped or hangs, and its peers wait
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(5..=86_400), value_name = "SECONDS")]
    replica_silence: u64,
    /// Accept addresses other than loopback without encryption
    #[arg(long)]
    insecure: bool,
}

/// Cores for each slot under `--slots auto`.
const CORES_PER_SLOT: u32 = 2;

pub fn run(flags: RunFlags) -> ExitCode {
    coord_io::telemetry::init("info");
    let settings = match settings(flags) {
        Ok(settings) => settings,
        Err((error, hint)) => {
            fail(&error, hint.as_deref());
            return ExitCode::from(2);
        }
    };
    match super::runtime().block_on(service::run(settings)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            fail(&error, error.hint());
            ExitCode::from(2)
        }
    }
}

fn settings(flags: RunFlags) -> Result<AgentSettings, (String, Option<String>)> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    let slots = match flags.slots.as_str() {
        "auto" => (cores / CORES_PER_SLOT).max(1),
        text => text
            .parse()
            .ok()
            .filter(|slots| (1..=1024).contains(slots))
            .ok_or_else(|| (format!("--slots must be a number from 1 to 1024 or `auto`, got {text}"), None))?,
    };
    let http: Option<SocketAddr> = match flags.http.as_str() {
        "off" => None,
        text => Some(
            text.parse()
                .map_err(|_| (format!("--http must be an address like 127.0.0.1:7072 or `off`, got {text}"), None))?,
        ),
    };
    let open = http.is_some_and(|address| !address.ip().is_loopback())
        || !(flags.host == "localhost" || flags.host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback()));
    if open && !flags.insecure {
        let hint = "this release has no encryption: add `--insecure` on a network that you trust".to_owned();
        return Err(("--host and --http may only be loopback addresses".to_owned(), Some(hint)));
    }
    if open {
        tracing::warn!("replicas and metrics are reachable from other hosts without encryption (--insecure)");
    }
    Ok(AgentSettings {
        coordinators: flags.coordinator,
        slots,
        threads_per_slot: (cores / slots).max(1),
        work_dir: flags.work_dir,
        http,
        replica_silence: Millis::from_seconds(flags.replica_silence),
        host: flags.host,
    })
}
