//! The four places a setting can come from, laid over each other as text.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use super::{ServeFlags, SettingsError};

pub const NAMES: [&str; 9] =
    ["data-dir", "listen", "http", "node-id", "peers", "storage", "keep-jobs", "lease", "insecure"];

const DEFAULTS: [&str; 9] = ["coord-data", "127.0.0.1:7070", "127.0.0.1:7071", "1", "", "", "10000", "60", "false"];

#[derive(Debug, Clone)]
enum Origin {
    Default,
    File(PathBuf),
    Environment(String),
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::File(path) => write!(formatter, "file {}", path.display()),
            Self::Environment(name) => write!(formatter, "environment {name}"),
            Self::Flag(name) => write!(formatter, "flag --{name}"),
        }
    }
}

pub struct Layers {
    values: BTreeMap<&'static str, (String, Origin)>,
}

impl Layers {
    pub fn gather(flags: &ServeFlags, environment: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let mut values: BTreeMap<_, _> =
            NAMES.into_iter().zip(DEFAULTS).map(|(name, value)| (name, (value.to_owned(), Origin::Default))).collect();
        let config = flags.config.clone().or_else(|| environment("COORD_CONFIG").map(PathBuf::from));
        if let Some(path) = config {
            for (name, value) in file_values(&path)? {
                values.insert(name, (value, Origin::File(path.clone())));
            }
        }
        for name in NAMES {
            let variable = format!("COORD_{}", name.replace('-', "_").to_uppercase());
            if let Some(value) = environment(&variable) {
                values.insert(name, (value, Origin::Environment(variable)));
            }
        }
        for (name, value) in flag_values(flags) {
            if let Some(value) = value {
                values.insert(name, (value, Origin::Flag(name)));
            }
        }
        Ok(Self { values })
    }

    pub fn text(&self, name: &'static str) -> &str {
        &self.values[name].0
    }

    pub fn parse<T: FromStr>(&self, name: &'static str, expected: &'static str) -> Result<T, SettingsError> {
        let (value, origin) = &self.values[name];
        value.trim().parse().map_err(|_| SettingsError::Value {
            name,
            origin: origin.to_string(),
            expected,
            got: value.clone(),
        })
    }

    /// A number within a range.
    pub fn number(
        &self,
        name: &'static str,
        expected: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<u64, SettingsError> {
        let got: u64 = self.parse(name, expected)?;
        if range.contains(&got) {
            return Ok(got);
        }
        Err(SettingsError::Range { name, origin: self.values[name].1.to_string(), expected, range, got })
    }

    /// As a configuration file; `derived` are values that a default stands for.
    pub fn printed(&self, derived: &[(&str, &str)]) -> String {
        let mut text = String::new();
        for name in NAMES {
            let (value, origin) = &self.values[name];
            let derived = derived.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
            let value = derived.unwrap_or(value);
            let plain = value.parse::<u64>().is_ok() || value.parse::<bool>().is_ok();
            let value = if plain { value.to_owned() } else { toml::Value::from(value).to_string() };
            let _ = writeln!(text, "{name} = {value}  # {origin}");
        }
        text
    }
}

fn file_values(path: &PathBuf) -> Result<Vec<(&'static str, String)>, SettingsError> {
    let text = std::fs::read_to_string(path).map_err(|source| SettingsError::Read { path: path.clone(), source })?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| SettingsError::Parse {
        path: path.clone(),
        reason: error.message().to_owned(),
    })?;
    let mut values = Vec::new();
    for (key, value) in table {
        let Some(name) = NAMES.into_iter().find(|name| *name == key) else {
            return Err(SettingsError::UnknownKey { path: path.clone(), key });
        };
        let value = match value {
            toml::Value::String(text) => text,
            other => other.to_string(),
        };
        values.push((name, value));
    }
    Ok(values)
}

fn flag_values(flags: &ServeFlags) -> [(&'static str, Option<String>); 9] {
    [
        ("data-dir", flags.data_dir.clone()),
        ("listen", flags.listen.clone()),
        ("http", flags.http.clone()),
        ("node-id", flags.node_id.clone()),
        ("peers", flags.peers.clone()),
        ("storage", flags.storage.clone()),
        ("keep-jobs", flags.keep_jobs.clone()),
        ("lease", flags.lease.clone()),
        ("insecure", flags.insecure.then(|| "true".to_owned())),
    ]
}
