//! Where a run begins: at the newest complete checkpoint of its own lineage, or fresh.

use coord_io::storage::Storage;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::runtime::Handle;

use super::error::TrainError;
use super::settings::{Settings, differences};
use super::state::State;
use crate::checkpoint::{CheckpointError, Checkpoints, Complete, Lineage, Rejected, Search};
use crate::model::translate::Translate;

/// What the master replica found; all ranks begin with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Beginning {
    pub lineage: String,
    /// Name of the manifest to restore.
    pub manifest: Option<String>,
    /// For the log.
    pub lines: Vec<String>,
    /// The rate that the user gave anew.
    pub new_rate: Option<f64>,
}

pub struct Finder<'a> {
    pub settings: &'a Settings,
    pub fixed: &'a Map<String, Value>,
    pub model: &'a Translate,
    pub job: &'a str,
    pub run: &'a str,
    pub numeric_class: &'a str,
    pub fresh: bool,
}

impl Finder<'_> {
    /// Looks in `train_dir`. Call on the master replica only.
    pub fn find(&self, runtime: &Handle, storage: &Storage) -> Result<Beginning, TrainError> {
        let checkpoints = Checkpoints::new(storage.clone());
        let lineage = runtime.block_on(checkpoints.lineage())?;
        if let Some(owner) = lineage.as_ref().filter(|owner| owner.earlier.iter().any(|run| run == self.run)) {
            return Err(CheckpointError::TakenOver { url: storage.url().to_owned(), job: owner.job.clone() }.into());
        }
        // A later generation of this run goes on.
        if self.fresh && lineage.as_ref().is_none_or(|owner| owner.run != self.run) {
            return self.begin(runtime, storage, lineage, "--fresh was given");
        }
        let search = Search { lineage: lineage.as_ref().map(|run| run.lineage.clone()), step: None };
        let (found, rejected) = runtime.block_on(checkpoints.newest(&search, |found| self.accept(found)))?;
        match found {
            Some(found) => {
                // For the log alone: no reason not to resume.
                let uncommitted = runtime.block_on(checkpoints.uncommitted()).unwrap_or_default();
                let step = found.manifest.step;
                let beginning = self.resume(storage, found, &rejected, &uncommitted)?;
                // A run that has nothing left to do writes nothing.
                if self.settings.steps == 0 || step < self.settings.steps {
                    self.take(runtime, storage, &beginning.lineage, lineage)?;
                }
                Ok(beginning)
            }
            None => self.none(runtime, storage, lineage, rejected),
        }
    }

    /// Other settings are an error of the user and stop the search; a misfit under the same settings is damage.
    fn accept(&self, found: &Complete) -> Result<(), String> {
        if !differences(&found.manifest.settings, self.fixed).is_empty() {
            return Ok(());
        }
        State::restore(self.model.layout(), &found.tensors).map(drop)
    }

    fn resume(
        &self,
        storage: &Storage,
        found: Complete,
        rejected: &[Rejected],
        uncommitted: &[String],
    ) -> Result<Beginning, TrainError> {
        let manifest = found.manifest;
        let mut differences = differences(&manifest.settings, self.fixed);
        if manifest.numeric_class != self.numeric_class && !self.settings.accept_other_bits {
            differences.push(format!(
                "numeric class: saved {}, here {} (--accept_other_bits resumes all the same)",
                manifest.numeric_class, self.numeric_class
            ));
        }
        if !differences.is_empty() {
            return Err(TrainError::OtherSettings { url: found.manifest_url, differences });
        }
        let given = self.settings.changeable();
        let mut lines: Vec<String> = rejected.iter().map(|one| format!("passed over checkpoint of {one}")).collect();
        lines.extend(uncommitted_line(uncommitted));
        lines.extend(
            super::settings::differences(&manifest.settings, &given)
                .into_iter()
                .map(|one| format!("changed on resume: {one}")),
        );
        let new_rate = (manifest.settings.get("learning_rate") != given.get("learning_rate"))
            .then_some(self.settings.learning_rate);
        lines.push(format!(
            "Reading model parameters from {}",
            storage.url_of(&format!("{}-{}", manifest.prefix, manifest.step))
        ));
        lines.push(format!("resuming at step {}", manifest.step));
        let name = crate::checkpoint::manifest_name(&manifest.prefix, manifest.step);
        Ok(Beginning { lineage: manifest.lineage, manifest: Some(name), lines, new_rate })
    }

    fn none(
        &self,
        runtime: &Handle,
        storage: &Storage,
        lineage: Option<Lineage>,
        rejected: Vec<Rejected>,
    ) -> Result<Beginning, TrainError> {
        let url = storage.url().to_owned();
        let rejected: Vec<String> = rejected.iter().map(ToString::to_string).collect();
        // A run that has not saved yet goes on as itself; another one there may still be alive, and must not share its
        // folder.
        if let Some(Lineage { lineage, run, .. }) = &lineage
            && run == self.run
            && rejected.is_empty()
            && !self.settings.resume_required
        {
            let lines = vec!["starting at step 0: this run has no checkpoint yet".to_owned()];
            return Ok(Beginning { lineage: lineage.clone(), manifest: None, lines, new_rate: None });
        }
        if self.settings.resume_required {
            return Err(TrainError::ResumeRequired { url, rejected });
        }
        if !rejected.is_empty() && !self.fresh {
            return Err(TrainError::NothingComplete { url, rejected });
        }
        let uncommitted = runtime.block_on(Checkpoints::new(storage.clone()).uncommitted())?;
        let why = match &lineage {
            _ if !uncommitted.is_empty() => "only uncommitted data lies in train_dir".to_owned(),
            Some(other) => format!("the run that began there last, of job {}, saved nothing", other.job),
            None => "train_dir holds no checkpoint".to_owned(),
        };
        let mut beginning = self.begin(runtime, storage, lineage, &why)?;
        beginning.lines.extend(uncommitted_line(&uncommitted));
        Ok(beginning)
    }

    fn begin(
        &self,
        runtime: &Handle,
        storage: &Storage,
        before: Option<Lineage>,
        why: &str,
    ) -> Result<Beginning, TrainError> {
        let lineage = uuid::Uuid::new_v4().simple().to_string();
        self.take(runtime, storage, &lineage, before)?;
        Ok(Beginning { lineage, manifest: None, lines: vec![format!("starting at step 0: {why}")], new_rate: None })
    }

    /// From here on the folder is this run's; whoever had it before fails at its next save.
    fn take(
        &self,
        runtime: &Handle,
        storage: &Storage,
        lineage: &str,
        before: Option<Lineage>,
    ) -> Result<(), TrainError> {
        if before.as_ref().is_some_and(|before| before.run == self.run && before.lineage == lineage) {
            return Ok(());
        }
        let taken = Lineage::taken(lineage.to_owned(), self.job, self.run, before);
        Ok(runtime.block_on(Checkpoints::new(storage.clone()).take(&taken))?)
    }
}

fn uncommitted_line(names: &[String]) -> Option<String> {
    let first = names.first()?;
    let more = if names.len() > 1 { format!(" and {} more", names.len() - 1) } else { String::new() };
    Some(format!("left alone: {first}{more}: no manifest names it"))
}
