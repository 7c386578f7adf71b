//! What `coord serve` means to do: flags, environment, file and defaults, checked once.

mod layers;

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use coord_common::Millis;
use coord_common::error::Coded;
use coord_io::storage::StorageUrl;
use coordinator_core::Policy;
use thiserror::Error;

use crate::raft::membership::{Members, MembersError};
use layers::Layers;

/// Below it a worker would be lost between two of its heartbeats; above it a lost one would be missed by nobody.
const LEASE_SECONDS: RangeInclusive<u64> = 2..=86_400;
const NODE_IDS: RangeInclusive<u64> = 1..=65_535;
/// All of them are in the memory of each node and in each snapshot.
const KEEP_JOBS: RangeInclusive<u64> = 1..=1_000_000;

/// What was typed. Nothing is checked here, so that every value is checked in one place, wherever it came from.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ServeFlags {
    /// TOML file with the long names of these flags as keys
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where the state lies; one directory per node [default: coord-data]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<String>,
    /// Address of the gRPC services [default: 127.0.0.1:7070]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Address of metrics and health, or `off` [default: 127.0.0.1:7071]
    #[arg(long, value_name = "ADDRESS")]
    pub http: Option<String>,
    /// Number of this node among the members [default: 1]
    #[arg(long, value_name = "NUMBER")]
    pub node_id: Option<String>,
    /// All members, this one included: 1=HOST:PORT,2=HOST:PORT,3=HOST:PORT [default: this node alone]
    #[arg(long, value_name = "MEMBERS")]
    pub peers: Option<String>,
    /// Where the objects of jobs lie [default: file://DATA_DIR/storage]
    #[arg(long, value_name = "URL")]
    pub storage: Option<String>,
    /// Finished jobs that stay listed, 1 to 1000000 [default: 10000]
    #[arg(long, value_name = "NUMBER")]
    pub keep_jobs: Option<String>,
    /// Seconds that a silent worker keeps its replicas, 2 to 86400 [default: 60]
    #[arg(long, value_name = "SECONDS")]
    pub lease: Option<String>,
    /// Listen on addresses that other hosts can reach, without encryption or passwords
    #[arg(long)]
    pub insecure: bool,
    /// The data directory of this member of several was lost: begin a new one, filled by the leader; for one start
    #[arg(long)]
    pub rejoin: bool,
    /// Print the settings with their origin, and exit
    #[arg(long)]
    pub print_config: bool,
}

#[derive(Debug, Clone)]
pub struct ServeSettings {
    pub data_dir: PathBuf,
    pub listen: SocketAddr,
    /// Nothing for `off`.
    pub http: Option<SocketAddr>,
    pub members: Members,
    /// URL without a slash at the end.
    pub storage: String,
    pub policy: Policy,
    pub insecure: bool,
    /// A new data directory takes the place of one that was lost.
    pub rejoin: bool,
    /// Print [`ServeSettings::printed`] and do nothing else.
    pub print_config: bool,
    printed: String,
}

#[derive(Debug, Error)]
pub enum SettingsError {
    #[error(transparent)]
    Storage(coord_io::storage::StorageError),
    #[error("read configuration {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("parse configuration {}: {reason}", path.display())]
    Parse { path: PathBuf, reason: String },
    #[error("configuration {} has an unknown key `{key}`", path.display())]
    UnknownKey { path: PathBuf, key: String },
    #[error("{name} (from {origin}) must be {expected}, got `{got}`")]
    Value { name: &'static str, origin: String, expected: &'static str, got: String },
    #[error("{name} (from {origin}) must be {expected} from {} to {}, got {got}", range.start(), range.end())]
    Range { name: &'static str, origin: String, expected: &'static str, range: RangeInclusive<u64>, got: u64 },
    #[error("--rejoin is for one of several nodes, and --peers names no others")]
    RejoinAlone,
    #[error("peers: {0}")]
    Members(#[from] MembersError),
    #[error("{name} {address} can be reached from other hosts, and nothing here asks for passwords yet")]
    Insecure { name: &'static str, address: SocketAddr },
    #[error("data directory {path:?} cannot be made absolute: {source}")]
    DataDir { path: String, source: std::io::Error },
}

impl Coded for SettingsError {
    fn code(&self) -> &'static str {
        "invalid_settings"
    }

    fn retryable(&self) -> bool {
        false
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownKey { .. } => Some(format!("the keys are {}", layers::NAMES.join(", "))),
            Self::Insecure { .. } => Some("add `--insecure` if only trusted hosts can reach this address".to_owned()),
            Self::RejoinAlone => Some("add `--peers` with all members".to_owned()),
            Self::Members(_) => Some("write `--node-id 1 --peers 1=a:7070,2=b:7070,3=c:7070`".to_owned()),
            Self::Storage(error) => error.hint(),
            Self::Read { .. } | Self::Parse { .. } | Self::Value { .. } | Self::Range { .. } | Self::DataDir { .. } => {
                None
            }
        }
    }
}

impl ServeSettings {
    /// Default, then file, then environment (`COORD_DATA_DIR` and so on), then flag: the last one that speaks counts.
    pub fn resolve(flags: ServeFlags, environment: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let layers = Layers::gather(&flags, environment)?;
        let listen: SocketAddr = layers.parse("listen", "an IP address and port such as 127.0.0.1:7070")?;
        let http: Option<SocketAddr> = match layers.text("http").trim() {
            "off" => None,
            _ => Some(layers.parse("http", "`off` or an IP address and port such as 127.0.0.1:7071")?),
        };
        let node = layers.number("node-id", "a number", NODE_IDS)?;
        let peers = layers.text("peers");
        let members = match peers.trim() {
            "" => Members::alone(node, address_for_clients(listen))?,
            peers => Members::parse(node, peers)?,
        };
        if flags.rejoin && members.are_alone() {
            return Err(SettingsError::RejoinAlone);
        }
        let insecure: bool = layers.parse("insecure", "true or false")?;
        for (name, address) in [("listen", Some(listen)), ("http", http)] {
            let Some(address) = address else { continue };
            if !address.ip().is_loopback() && !insecure {
                return Err(SettingsError::Insecure { name, address });
            }
        }
        let data_dir = std::path::absolute(layers.text("data-dir"))
            .map_err(|source| SettingsError::DataDir { path: layers.text("data-dir").to_owned(), source })?;
        let storage = match layers.text("storage") {
            "" => format!("file://{}/storage", data_dir.display()),
            // A plain path is made a URL here: relative to this process it would mean other folders elsewhere.
            text => StorageUrl::parse(text).map_err(SettingsError::Storage)?.as_str().to_owned(),
        };
        let policy = Policy {
            lease: Millis::from_seconds(layers.number("lease", "a number of seconds", LEASE_SECONDS)?),
            keep_jobs: layers.number("keep-jobs", "a number", KEEP_JOBS)? as usize,
        };
        let printed = layers.printed(&[("storage", &storage)]);
        Ok(Self {
            data_dir,
            listen,
            http,
            members,
            storage,
            policy,
            insecure,
            rejoin: flags.rejoin,
            print_config: flags.print_config,
            printed,
        })
    }

    /// One line per setting with its origin, in the form of a configuration file.
    pub fn printed(&self) -> &str {
        &self.printed
    }
}

/// A lone node that listens on every address is found under its own host.
fn address_for_clients(listen: SocketAddr) -> String {
    match listen.ip().is_unspecified() {
        true => format!("localhost:{}", listen.port()),
        false => listen.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(flags: ServeFlags, environment: &[(&str, &str)]) -> Result<ServeSettings, SettingsError> {
        ServeSettings::resolve(flags, |name| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_last_layer_that_speaks_counts_and_the_print_tells_which() {
        let folder = tempfile::TempDir::new().expect("folder");
        let file = folder.path().join("coord.toml");
        std::fs::write(&file, "listen = \"127.0.0.1:1\"\nhttp = \"127.0.0.1:2\"\nkeep-jobs = 5\n").expect("write");
        let flags = ServeFlags {
            config: Some(file),
            listen: Some("127.0.0.1:9".to_owned()),
            data_dir: Some("/var/lib/coord".to_owned()),
            ..ServeFlags::default()
        };
        let settings =
            resolve(flags, &[("COORD_LISTEN", "127.0.0.1:8"), ("COORD_HTTP", "127.0.0.1:7")]).expect("valid");
        assert_eq!(settings.listen.port(), 9);
        assert_eq!(settings.http.map(|address| address.port()), Some(7));
        assert_eq!(settings.policy.keep_jobs, 5);
        assert_eq!(settings.policy.lease, Millis::from_seconds(60));
        assert_eq!(settings.storage, "file:///var/lib/coord/storage");
        assert_eq!(settings.members.voters(), [1]);
        for line in [
            "listen = \"127.0.0.1:9\"  # flag --listen",
            "http = \"127.0.0.1:7\"  # environment COORD_HTTP",
            "lease = 60  # default",
            "storage = \"file:///var/lib/coord/storage\"  # default",
        ] {
            assert!(settings.printed().lines().any(|printed| printed == line), "{line} in\n{}", settings.printed());
        }
        assert!(settings.printed().contains("keep-jobs = 5  # file "));
    }

    #[test]
    fn an_address_that_others_reach_needs_the_word_insecure() {
        let flags = ServeFlags { listen: Some("0.0.0.0:7070".to_owned()), ..ServeFlags::default() };
        let error = resolve(flags.clone(), &[]).expect_err("refused");
        assert!(error.hint().is_some_and(|hint| hint.contains("--insecure")));
        assert!(resolve(ServeFlags { insecure: true, ..flags.clone() }, &[]).is_ok());
        assert!(resolve(flags, &[("COORD_INSECURE", "true")]).is_ok());
    }

    #[test]
    fn a_wrong_value_names_its_origin_and_a_wrong_key_the_right_ones() {
        let error = resolve(ServeFlags::default(), &[("COORD_LEASE", "soon")]).expect_err("refused");
        assert_eq!(error.to_string(), "lease (from environment COORD_LEASE) must be a number of seconds, got `soon`");
        let folder = tempfile::TempDir::new().expect("folder");
        let file = folder.path().join("coord.toml");
        std::fs::write(&file, "port = 1\n").expect("write");
        let error = resolve(ServeFlags { config: Some(file), ..ServeFlags::default() }, &[]).expect_err("refused");
        assert!(error.to_string().contains("unknown key `port`"));
        assert!(error.hint().is_some_and(|hint| hint.contains("data-dir")));
    }

    #[test]
    fn a_number_out_of_its_range_is_refused_with_flag_range_and_value() {
        let flags = |lease: &str, keep: &str| ServeFlags {
            lease: Some(lease.to_owned()),
            keep_jobs: Some(keep.to_owned()),
            ..ServeFlags::default()
        };
        let said = |flags| resolve(flags, &[]).expect_err("refused").to_string();
        assert_eq!(
            said(flags("0", "1")),
            "lease (from flag --lease) must be a number of seconds from 2 to 86400, got 0"
        );
        assert_eq!(
            said(flags("2", "0")),
            "keep-jobs (from flag --keep-jobs) must be a number from 1 to 1000000, got 0"
        );
        assert!(resolve(flags("86401", "1"), &[]).is_err());
        assert!(resolve(flags("60", "1000001"), &[]).is_err());
        assert!(resolve(flags("86400", "1000000"), &[]).is_ok());
        let zero = ServeFlags { node_id: Some("0".to_owned()), ..ServeFlags::default() };
        assert!(said(zero).starts_with("node-id (from flag --node-id) must be a number from 1 to "));
    }

    #[test]
    fn http_can_be_switched_off() {
        let flags = ServeFlags { http: Some("off".to_owned()), ..ServeFlags::default() };
        assert_eq!(resolve(flags, &[]).expect("valid").http, None);
        let flags = ServeFlags { http: Some("on".to_owned()), ..ServeFlags::default() };
        assert!(resolve(flags, &[]).expect_err("refused").to_string().contains("`off` or an IP address"));
    }

    #[test]
    fn members_must_contain_this_node() {
        let flags = ServeFlags {
            node_id: Some("4".to_owned()),
            peers: Some("1=a:7070,2=b:7070,3=c:7070".to_owned()),
            ..ServeFlags::default()
        };
        let error = resolve(flags, &[]).expect_err("refused");
        assert_eq!(error.to_string(), "peers: node 4 is not among the members [1, 2, 3]");
    }
}
