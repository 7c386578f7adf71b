//! What the flags mean: checked once, trusted afterwards.

use coord_io::storage::is_url;
use serde_json::{Map, Value, json};

use super::error::TrainError;
use super::flags::Flags;
use crate::data::buckets::TRANSLATE_BUCKETS;
use crate::data::encoding::Encoding;
use crate::data::files::join;
use crate::data::order::Drawing;
use crate::data::prepare::{DataFile, PrepareSettings, Prepared, SideSettings};
use crate::model::translate::TranslateConfig;

/// Family name of the checkpoints.
pub const CHECKPOINT_PREFIX: &str = "translate.ckpt";

#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub model: TranslateConfig,
    pub data: PrepareSettings,
    pub train_dir: String,
    /// Where progress and result go; nothing without a job dir.
    pub job_dir: Option<String>,
    pub train_lines_max: u64,
    pub batch_size: usize,
    pub learning_rate: f64,
    pub decay_factor: f64,
    pub rate_floor: f64,
    pub max_gradient_norm: f64,
    pub steps_per_checkpoint: u64,
    /// 0 = no limit.
    pub steps: u64,
    /// 0 = off.
    pub patience: u64,
    pub seed: u64,
    pub eval_pairs: usize,
    pub bad_steps_max: u64,
    pub keep_checkpoints: usize,
    pub resume_required: bool,
    pub accept_other_bits: bool,
    pub old_evaluation: bool,
    pub drawing: Drawing,
    pub dump: Option<Dump>,
}

/// `--dump_run` and `--dump_steps`.
#[derive(Debug, Clone, PartialEq)]
pub struct Dump {
    pub folder: String,
    pub steps: u64,
}

fn wrong(what: impl Into<String>, hint: impl Into<String>) -> TrainError {
    TrainError::Settings { what: what.into(), hint: hint.into() }
}

impl Settings {
    /// `job_dir` gives the defaults of `train_dir` and `data_dir`.
    pub fn new(flags: &Flags, job_dir: Option<&str>) -> Result<Self, TrainError> {
        let folder = |flag: &str, below: &str| match (flags.text(flag), job_dir) {
            (Some(url), _) => Ok(url),
            (None, Some(job_dir)) => Ok(join(job_dir, below)),
            (None, None) => {
                Err(wrong(format!("--{flag} is missing"), format!("give --{flag}, or --job-dir before `--`")))
            }
        };
        if flags.switch("use_fp16") {
            return Err(wrong("--use_fp16 is not available: training runs in 32 bits", "leave the flag out"));
        }
        let needed = |flag: &str| {
            let url = flags.text(flag).ok_or_else(|| {
                wrong(
                    format!("--{flag} is missing"),
                    "--from_train_data and --to_train_data are both needed; no data is downloaded",
                )
            })?;
            Ok::<_, TrainError>(DataFile { url, flag: format!("--{flag}") })
        };
        let or = |flag: &str, other: &DataFile| match flags.text(flag) {
            Some(url) => DataFile { url, flag: format!("--{flag}") },
            None => other.clone(),
        };
        let from_train = needed("from_train_data")?;
        let to_train = needed("to_train_data")?;
        let from_dev = or("from_dev_data", &from_train);
        let to_dev = or("to_dev_data", &to_train);
        let encoding: Encoding = flags
            .text("encoding")
            .unwrap_or_default()
            .parse()
            .map_err(|error| wrong(format!("--encoding: {error}"), "use utf-8, windows-1252 or bytes"))?;
        let resume_required = match flags.text("resume").as_deref() {
            Some("required") => true,
            Some("auto") => false,
            other => {
                let got = other.unwrap_or_default();
                let hint = "auto goes on where the run ended, required also refuses to begin without a checkpoint";
                return Err(wrong(format!("--resume must be auto or required, got {got}"), hint));
            }
        };
        let dump = flags.text("dump_run").map(|folder| Dump { folder, steps: flags.integer("dump_steps") });
        if let Some(Dump { folder, .. }) = &dump
            && is_url(folder)
        {
            return Err(wrong(format!("--dump_run must be a path on this machine, got {folder}"), "give a plain path"));
        }
        let batch_size = flags.integer("batch_size") as usize;
        let (from_vocab, to_vocab) =
            (flags.integer("from_vocab_size") as usize, flags.integer("to_vocab_size") as usize);
        if flags.number("learning_rate") == 0.0 {
            return Err(wrong("--learning_rate must be greater than 0", "the default is 0.5"));
        }
        Ok(Self {
            model: TranslateConfig {
                from_vocab,
                to_vocab,
                size: flags.integer("size") as usize,
                layers: flags.integer("num_layers") as usize,
                samples: flags.integer("num_samples") as usize,
                attend_to_padding: flags.switch("attend_to_padding"),
            },
            data: PrepareSettings {
                source: SideSettings {
                    vocabulary_size: from_vocab,
                    vocabulary_size_flag: "--from_vocab_size".to_owned(),
                    train: from_train,
                    dev: from_dev,
                },
                target: SideSettings {
                    vocabulary_size: to_vocab,
                    vocabulary_size_flag: "--to_vocab_size".to_owned(),
                    train: to_train,
                    dev: to_dev,
                },
                data_dir: folder("data_dir", "data")?,
                encoding,
                keep_vocabulary: flags.switch("keep_vocabulary"),
                memory_limit: None,
                buckets: TRANSLATE_BUCKETS.to_vec(),
            },
            train_dir: folder("train_dir", "train")?,
            job_dir: job_dir.map(str::to_owned),
            train_lines_max: flags.integer("max_train_data_size"),
            batch_size,
            learning_rate: flags.number("learning_rate"),
            decay_factor: flags.number("learning_rate_decay_factor"),
            rate_floor: flags.number("min_learning_rate"),
            max_gradient_norm: flags.number("max_gradient_norm"),
            steps_per_checkpoint: flags.integer("steps_per_checkpoint"),
            steps: flags.integer("steps"),
            patience: flags.integer("patience"),
            seed: flags.integer("seed"),
            eval_pairs: flags.integer("eval_pairs") as usize,
            bad_steps_max: flags.integer("max_bad_steps"),
            keep_checkpoints: flags.integer("keep_checkpoints") as usize,
            resume_required,
            accept_other_bits: flags.switch("accept_other_bits"),
            old_evaluation: flags.switch("old_evaluation"),
            drawing: if flags.switch("draw_with_replacement") {
                Drawing::WithReplacement
            } else {
                Drawing::OncePerEpoch
            },
            dump,
        })
    }

    /// What must be the same when a run is resumed, by the name of its flag.
    pub fn fixed(&self, data: &Prepared, micro_batches: u32) -> Map<String, Value> {
        object(json!({
            "from_vocab_size": self.model.from_vocab,
            "to_vocab_size": self.model.to_vocab,
            "size": self.model.size,
            "num_layers": self.model.layers,
            "num_samples": self.model.samples,
            "attend_to_padding": self.model.attend_to_padding,
            "batch_size": self.batch_size,
            "micro_batches": micro_batches,
            "seed": self.seed,
            "draw_with_replacement": self.drawing == Drawing::WithReplacement,
            "max_train_data_size": self.train_lines_max,
            "source_vocabulary": data.source_vocabulary.digest,
            "target_vocabulary": data.target_vocabulary.digest,
            "source_training_ids": data.train.source.digest,
            "target_training_ids": data.train.target.digest,
        }))
    }

    /// What may change when a run is resumed; each change is logged.
    pub fn changeable(&self) -> Map<String, Value> {
        object(json!({
            "learning_rate": self.learning_rate,
            "learning_rate_decay_factor": self.decay_factor,
            "min_learning_rate": self.rate_floor,
            "max_gradient_norm": self.max_gradient_norm,
            "steps_per_checkpoint": self.steps_per_checkpoint,
            "steps": self.steps,
            "patience": self.patience,
            "eval_pairs": self.eval_pairs,
            "max_bad_steps": self.bad_steps_max,
            "keep_checkpoints": self.keep_checkpoints,
            "old_evaluation": self.old_evaluation,
        }))
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => unreachable!("written as an object"),
    }
}

/// `size: saved 256, given 512`, for each setting of `given` that was saved with another value.
pub fn differences(saved: &Map<String, Value>, given: &Map<String, Value>) -> Vec<String> {
    given
        .iter()
        .filter_map(|(name, value)| match saved.get(name) {
            Some(old) if old != value => Some(format!("{name}: saved {old}, given {value}")),
            Some(_) => None,
            None => Some(format!("{name}: not saved, given {value}")),
        })
        .collect()
}
