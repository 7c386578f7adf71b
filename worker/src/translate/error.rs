//! Why a translate job ends badly, with the cause that its failure is shown under.

use coord_io::storage::StorageError;
use thiserror::Error;

use super::estimate::Shortage;
use super::flags::FlagError;
use crate::checkpoint::CheckpointError;
use crate::collective::CollectiveError;
use crate::data::error::DataError;

#[derive(Debug, Error)]
pub enum TrainError {
    #[error(transparent)]
    Flag(#[from] FlagError),
    #[error("{what}")]
    Settings { what: String, hint: String },
    #[error(transparent)]
    Memory(Box<Shortage>),
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    Collective(#[from] CollectiveError),
    #[error("cannot resume from {url}: {}", differences.join("; "))]
    OtherSettings { url: String, differences: Vec<String> },
    #[error("no checkpoint to resume from in {url}, and --resume=required forbids a fresh start{}", passed_over(.rejected))]
    ResumeRequired { url: String, rejected: Vec<String> },
    #[error("no checkpoint in {url} is complete{}", passed_over(.rejected))]
    NothingComplete { url: String, rejected: Vec<String> },
    #[error("{count} steps in a row had a non-finite loss or gradient; the last was step {step}")]
    NotFinite { step: u64, count: u64 },
    #[error("weights are not finite at step {step}; no checkpoint was written")]
    WeightsNotFinite { step: u64 },
    #[error("ranks disagree about the state at step {step}: {digests:?}")]
    RanksDisagree { step: u64, digests: Vec<String> },
    #[error("the master replica could not start: {message}")]
    Master { message: String },
    #[error("write the inputs of the run to {folder}: {source}")]
    Dump { folder: String, source: std::io::Error },
    #[error("save a checkpoint: {message}")]
    Save { message: String },
    #[error("save the last checkpoint: {message}")]
    LastSave { message: String },
}

fn passed_over(reasons: &[String]) -> String {
    if reasons.is_empty() { String::new() } else { format!(" (passed over: {})", reasons.join("; ")) }
}

impl TrainError {
    /// The cause that the job's failure is filed under.
    pub fn cause(&self) -> &'static str {
        match self {
            Self::Flag(_) | Self::Settings { .. } | Self::OtherSettings { .. } => "user_error",
            Self::ResumeRequired { .. } | Self::NothingComplete { .. } => "user_error",
            Self::Memory(_) | Self::Data(DataError::Memory { .. }) => "out_of_memory",
            Self::Data(_) => "data",
            Self::Storage(_) | Self::Checkpoint(_) | Self::Save { .. } | Self::LastSave { .. } => "storage",
            Self::Collective(_) | Self::Master { .. } => "peer_lost",
            Self::NotFinite { .. } | Self::WeightsNotFinite { .. } => "user_error",
            Self::Dump { .. } => "user_error",
            Self::RanksDisagree { .. } => "numeric",
        }
    }

    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Flag(error) => Some(error.hint()),
            Self::Settings { hint, .. } => Some(hint.clone()),
            Self::Memory(_) => Some(
                "use smaller vocabularies, a smaller size or batch, more workers, or workers with more memory"
                    .to_owned(),
            ),
            Self::Data(error) => error.hint(),
            Self::Storage(error) | Self::Checkpoint(CheckpointError::Storage(error)) => error.hint(),
            Self::OtherSettings { .. } => Some(
                "use the saved settings, another train_dir, or `--fresh` to start anew beside the old run".to_owned(),
            ),
            Self::ResumeRequired { .. } => Some("check --train_dir, or start with --resume=auto".to_owned()),
            Self::NothingComplete { .. } => Some("use `--fresh` to start anew beside them".to_owned()),
            Self::NotFinite { .. } | Self::WeightsNotFinite { .. } => {
                Some("lower --learning_rate or --max_gradient_norm; the last good checkpoint is kept".to_owned())
            }
            _ => None,
        }
    }
}
