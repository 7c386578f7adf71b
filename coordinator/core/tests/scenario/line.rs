//! One command of a scenario: a verb, names, and `key=value` settings.

use std::collections::BTreeMap;

use coord_common::{Generation, JobId, Millis, Rank, ReplicaKey};

pub struct Line<'a> {
    text: &'a str,
    pub verb: &'a str,
    names: Vec<&'a str>,
    settings: BTreeMap<&'a str, &'a str>,
}

impl<'a> Line<'a> {
    pub fn parse(text: &'a str) -> Line<'a> {
        let mut words = text.split_whitespace();
        let verb = words.next().expect("a verb");
        let (settings, names): (Vec<&str>, Vec<&str>) = words.partition(|word| word.contains('='));
        let settings = settings.into_iter().filter_map(|word| word.split_once('=')).collect();
        Line { text, verb, names, settings }
    }

    pub fn name(&self, index: usize) -> &'a str {
        self.names.get(index).unwrap_or_else(|| panic!("{:?} lacks a name", self.text))
    }

    pub fn job(&self, index: usize) -> JobId {
        JobId::parse(self.name(index)).expect("a job id")
    }

    pub fn key(&self, index: usize) -> ReplicaKey {
        key(self.name(index))
    }

    pub fn get(&self, setting: &str) -> Option<&'a str> {
        self.settings.get(setting).copied()
    }

    pub fn text_of(&self, setting: &str) -> String {
        self.get(setting).unwrap_or("").replace('_', " ")
    }

    pub fn number<T: std::str::FromStr>(&self, setting: &str) -> Option<T> {
        let text = self.get(setting)?;
        Some(text.parse().unwrap_or_else(|_| panic!("{:?}: {text:?} is no number", self.text)))
    }

    pub fn keys(&self, setting: &str) -> Vec<ReplicaKey> {
        self.get(setting).unwrap_or("").split(',').filter(|text| !text.is_empty()).map(key).collect()
    }
}

/// `job/generation/rank`.
fn key(text: &str) -> ReplicaKey {
    let parts: Vec<&str> = text.split('/').collect();
    let [job, generation, rank] = parts[..] else { panic!("{text:?} is no job/generation/rank") };
    ReplicaKey {
        job: JobId::parse(job).expect("a job id"),
        generation: Generation(generation.parse().expect("a generation")),
        rank: Rank(rank.parse().expect("a rank")),
    }
}

/// `90s`, or milliseconds.
pub fn time(text: &str) -> Millis {
    match text.strip_suffix('s') {
        Some(seconds) => Millis::from_seconds(seconds.parse().expect("seconds")),
        None => Millis(text.parse().expect("milliseconds")),
    }
}
