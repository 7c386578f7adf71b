//! Answers from the newest complete checkpoint; never from unset weights.

use coord_io::storage::StorageError;
use thiserror::Error;
use tokio::runtime::Handle;

use crate::checkpoint::{CheckpointError, Checkpoints, Complete, Rejected, locate};
use crate::data::buckets::{BucketShape, TRANSLATE_BUCKETS};
use crate::data::error::DataError;
use crate::data::files::{file_name, join};
use crate::data::vocabulary::Vocabulary;
use crate::files::StoredFiles;
use crate::model::translate::{Prepared, Translate, TranslateConfig, Workspace};
use crate::train::params::Params;
use crate::translate::state::restore_params;

#[derive(Debug, Error)]
pub enum AnswerError {
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    Data(#[from] DataError),
    #[error("checkpoint {url}: {what}")]
    Settings { url: String, what: String },
    #[error("vocabulary {url} has digest {got}, the checkpoint was trained with {expected}")]
    OtherVocabulary { url: String, got: String, expected: String },
}

impl From<StorageError> for AnswerError {
    fn from(error: StorageError) -> Self {
        Self::Checkpoint(error.into())
    }
}

impl AnswerError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Checkpoint(CheckpointError::None { .. }) => {
                Some("train until the first checkpoint; answers never come from unset weights".to_owned())
            }
            Self::Checkpoint(CheckpointError::Storage(error)) => error.hint(),
            Self::Data(DataError::VocabularyMissing { .. }) | Self::OtherVocabulary { .. } => {
                Some("--data_dir names the folder that holds the training's own vocabularies".to_owned())
            }
            Self::Data(error) => error.hint(),
            _ => None,
        }
    }
}

/// Where the checkpoints and words are.
#[derive(Debug, Clone)]
pub struct Place {
    pub url: String,
    pub at: Option<u64>,
    pub data_dir: Option<String>,
}

struct Loaded {
    step: u64,
    manifest_digest: String,
    model: Translate,
    params: Params,
    prepared: Prepared,
    source: Vocabulary,
    target: Vocabulary,
}

/// Holds one checkpoint; looks for a newer one before each answer.
pub struct Answerer {
    runtime: Handle,
    place: Place,
    checkpoints: Checkpoints,
    loaded: Loaded,
    workspace: Workspace,
    notes: Vec<String>,
    /// All manifests when it looked last.
    seen: Vec<(u64, String)>,
    /// What was passed over already, so that it is said once.
    rejected: Vec<Rejected>,
}

impl Answerer {
    pub fn open(runtime: Handle, place: Place) -> Result<Self, AnswerError> {
        let checkpoints = runtime.block_on(locate(&place.url))?;
        let seen = runtime.block_on(checkpoints.names())?;
        let (found, rejected) = choose(&runtime, &checkpoints, place.at)?;
        let loaded = load(&runtime, &place, &found)?;
        let mut notes = passed_over(&rejected);
        if !rejected.is_empty() {
            notes.push(format!("using step {}", loaded.step));
        }
        Ok(Self { runtime, place, checkpoints, loaded, workspace: Workspace::default(), notes, seen, rejected })
    }

    pub fn step(&self) -> u64 {
        self.loaded.step
    }

    /// What the user should know since the last call.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Greedy answer to one line, tokens joined by one space. A blank line gives a blank answer.
    pub fn answer(&mut self, line: &[u8]) -> String {
        self.move_on();
        if line.trim_ascii().is_empty() {
            return String::new();
        }
        let mut ids = Vec::new();
        self.loaded.source.look_up(line, &mut ids);
        let bucket = self.bucket(&ids);
        let Loaded { model, params, prepared, target, .. } = &self.loaded;
        let answer = model.greedy(params, prepared, &ids, (bucket.source, bucket.target), &mut self.workspace);
        let words: Vec<_> =
            answer.iter().filter_map(|id| target.token(*id)).map(|word| String::from_utf8_lossy(word)).collect();
        words.join(" ")
    }

    /// The first bucket that holds the line; the last one, with a warning, for a longer line.
    fn bucket(&mut self, ids: &[u32]) -> BucketShape {
        let last = TRANSLATE_BUCKETS[TRANSLATE_BUCKETS.len() - 1];
        let fitting = TRANSLATE_BUCKETS.into_iter().find(|bucket| ids.len() <= bucket.source);
        if fitting.is_none() {
            self.notes.push(format!(
                "Sentence truncated: it has {} tokens, the limit is {}; its last {} are used",
                ids.len(),
                last.source,
                last.source
            ));
        }
        fitting.unwrap_or(last)
    }

    /// Loads a newer checkpoint if there is one. Trouble on the way is a note: the loaded one goes on answering.
    fn move_on(&mut self) {
        if self.place.at.is_some() {
            return;
        }
        let names = match self.runtime.block_on(self.checkpoints.names()) {
            Ok(names) => names,
            Err(error) => {
                self.notes.push(format!("cannot look for newer checkpoints: {error}"));
                return;
            }
        };
        if names == self.seen {
            return;
        }
        self.seen = names;
        let newer = choose(&self.runtime, &self.checkpoints, None).and_then(|(found, rejected)| {
            self.notes.extend(passed_over(&rejected).into_iter().filter(|_| rejected != self.rejected));
            self.rejected = rejected;
            match found.manifest_digest != self.loaded.manifest_digest {
                true => load(&self.runtime, &self.place, &found).map(Some),
                false => Ok(None),
            }
        });
        match newer {
            Ok(Some(loaded)) => self.loaded = loaded,
            Ok(None) => {}
            Err(error) => self.notes.push(format!("cannot load a newer checkpoint: {error}")),
        }
    }
}

fn passed_over(rejected: &[Rejected]) -> Vec<String> {
    rejected.iter().map(|one| format!("passed over checkpoint of {one}")).collect()
}

type Found = (Complete, Vec<Rejected>);

fn choose(runtime: &Handle, checkpoints: &Checkpoints, at: Option<u64>) -> Result<Found, AnswerError> {
    let fits = |found: &Complete| {
        let model = Translate::new(config(found).map_err(|error| error.to_string())?);
        restore_params(model.layout(), &found.tensors).map(drop)
    };
    Ok(runtime.block_on(checkpoints.choose(at, fits))?)
}

/// The model's shape stands in the manifest.
fn config(found: &Complete) -> Result<TranslateConfig, AnswerError> {
    let settings = &found.manifest.settings;
    let missing = |name: &str| AnswerError::Settings {
        url: found.manifest_url.clone(),
        what: format!("the manifest lacks the setting {name}"),
    };
    let number = |name: &str| settings.get(name).and_then(serde_json::Value::as_u64).ok_or_else(|| missing(name));
    Ok(TranslateConfig {
        from_vocab: number("from_vocab_size")? as usize,
        to_vocab: number("to_vocab_size")? as usize,
        size: number("size")? as usize,
        layers: number("num_layers")? as usize,
        samples: number("num_samples")? as usize,
        attend_to_padding: settings.get("attend_to_padding").and_then(serde_json::Value::as_bool).unwrap_or(false),
    })
}

fn load(runtime: &Handle, place: &Place, found: &Complete) -> Result<Loaded, AnswerError> {
    let model = Translate::new(config(found)?);
    let invalid = |what: String| AnswerError::Settings { url: found.manifest_url.clone(), what };
    let params = restore_params(model.layout(), &found.tensors).map_err(invalid)?;
    let files = StoredFiles::new(runtime.clone());
    let vocabulary = |side: &str, size: usize| {
        let text = |name: String| {
            let value = found.manifest.settings.get(&name).and_then(serde_json::Value::as_str);
            value.map(str::to_owned).ok_or_else(|| invalid(format!("the manifest lacks the setting {name}")))
        };
        let (saved, expected) = (text(format!("{side}_vocabulary_url"))?, text(format!("{side}_vocabulary"))?);
        let read = |url: String| {
            let vocabulary = Vocabulary::read(&files, &url, size)?;
            if vocabulary.digest() == expected {
                return Ok(vocabulary);
            }
            let (got, expected) = (vocabulary.digest().to_owned(), expected.clone());
            Err(AnswerError::OtherVocabulary { url, got, expected })
        };
        let (last, others) = vocabulary_places(place, &found.manifest_url, &saved);
        others.into_iter().find_map(|url| read(url).ok()).map_or_else(|| read(last), Ok)
    };
    let source = vocabulary("source", model.config().from_vocab)?;
    let target = vocabulary("target", model.config().to_vocab)?;
    let prepared = model.prepare(&params);
    let (step, manifest_digest) = (found.manifest.step, found.manifest_digest.clone());
    Ok(Loaded { step, manifest_digest, model, params, prepared, source, target })
}

/// Where a vocabulary may lie: the place whose absence is told, and places to look before. A job's folder may have been
/// moved or copied since; its own vocabulary goes before that of the original.
fn vocabulary_places(place: &Place, manifest_url: &str, saved: &str) -> (String, Vec<String>) {
    let name = file_name(saved);
    if let Some(folder) = &place.data_dir {
        return (join(folder, name), Vec::new());
    }
    let parent = |url: &str| url.rsplit_once('/').map(|(parent, _)| parent.to_owned());
    let train = parent(manifest_url);
    let data = train.as_deref().and_then(parent).map(|job| join(&job, "data"));
    (saved.to_owned(), data.into_iter().chain(train).map(|folder| join(&folder, name)).collect())
}
