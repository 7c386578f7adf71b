//! What can be wrong with training data, said so that a user can mend it.

use coord_common::size::bytes;

use super::files::FileError;

#[derive(Debug, thiserror::Error)]
pub enum DataError {
    #[error("{flag}: {url} does not exist")]
    Missing { flag: String, url: String },
    #[error("{url} line {line}: byte {byte:#04x} at offset {offset} is not valid UTF-8")]
    NotUtf8 { url: String, line: u64, offset: u64, byte: u8 },
    #[error("{url} line {line}: NUL byte at offset {offset}; text must not hold any")]
    NulByte { url: String, line: u64, offset: u64 },
    #[error(
        "{source_url} has {source_lines} lines, {target_url} has {target_lines}; they must answer each other line by line"
    )]
    LineCounts { source_url: String, source_lines: u64, target_url: String, target_lines: u64 },
    #[error("{source_url} and {target_url} hold no lines")]
    Empty { source_url: String, target_url: String },
    #[error("{source_url} and {target_url} hold no words: every line is blank")]
    Blank { source_url: String, target_url: String },
    #[error("preparing the data takes at least {} of memory, {} are available", bytes(*needed), bytes(*available))]
    Memory { needed: u64, available: u64 },
    #[error("{flag} must be at least 5 (4 control symbols and a word), got {size}")]
    VocabularySize { flag: String, size: usize },
    #[error("Vocabulary file {url} not found")]
    VocabularyMissing { url: String },
    #[error("{url} line {line}: expected {expected}, got {got}")]
    ControlSymbol { url: String, line: u64, expected: &'static str, got: String },
    #[error("{url} line {second}: {token} stands on line {first} already")]
    DuplicateToken { url: String, token: String, first: u64, second: u64 },
    #[error("{url} line {line} is blank; each line of a vocabulary holds one token")]
    BlankToken { url: String, line: u64 },
    #[error("{url} holds {entries} tokens, more than the vocabulary size of {size}")]
    VocabularyTooLong { url: String, entries: usize, size: usize },
    #[error("{url} was made from data with digest {made_from}, but {data_url} has digest {data_digest}")]
    StaleVocabulary { url: String, made_from: String, data_url: String, data_digest: String },
    #[error("{url} has no valid {url}.digest and is not a vocabulary of {data_url} (digest {data_digest})")]
    ForeignVocabulary { url: String, data_url: String, data_digest: String },
    #[error("{url} is in the way: it was not made from {data_url}")]
    NameTaken { url: String, data_url: String },
    #[error("{url} line {line}: expected ids below {entries} joined by spaces, got {got}")]
    BadIds { url: String, line: u64, entries: usize, got: String },
    #[error("{url} has changed: expected digest {expected}, got {got}")]
    Changed { url: String, expected: String, got: String },
    #[error("no training pair fits a bucket: {lines} lines read of {source_url} and {target_url}, all too long")]
    NoPairFits { source_url: String, target_url: String, lines: u64, source_max: usize, target_max: usize },
    #[error(transparent)]
    File(#[from] FileError),
}

impl DataError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "data-missing",
            Self::NotUtf8 { .. } => "data-not-utf8",
            Self::NulByte { .. } => "data-nul-byte",
            Self::LineCounts { .. } => "data-line-counts",
            Self::Empty { .. } | Self::Blank { .. } => "data-empty",
            Self::Memory { .. } => "data-memory",
            Self::VocabularySize { .. } => "vocabulary-size",
            Self::VocabularyMissing { .. } => "vocabulary-missing",
            Self::ControlSymbol { .. } => "vocabulary-control-symbol",
            Self::DuplicateToken { .. } => "vocabulary-duplicate",
            Self::BlankToken { .. } => "vocabulary-blank",
            Self::VocabularyTooLong { .. } => "vocabulary-too-long",
            Self::StaleVocabulary { .. } => "vocabulary-stale",
            Self::ForeignVocabulary { .. } => "vocabulary-foreign",
            Self::NameTaken { .. } => "ids-name-taken",
            Self::BadIds { .. } => "ids-malformed",
            Self::Changed { .. } => "data-changed",
            Self::NoPairFits { .. } => "data-no-pair-fits",
            Self::File(_) => "data-file",
        }
    }

    /// Only storage can be better the next time; text stays as it is.
    pub fn retryable(&self) -> bool {
        match self {
            Self::File(FileError::Failed { .. }) => true,
            Self::File(FileError::NotFound { .. } | FileError::NotWritable { .. }) => false,
            Self::Missing { .. }
            | Self::NotUtf8 { .. }
            | Self::NulByte { .. }
            | Self::LineCounts { .. }
            | Self::Empty { .. }
            | Self::Blank { .. }
            | Self::Memory { .. }
            | Self::VocabularySize { .. }
            | Self::VocabularyMissing { .. }
            | Self::ControlSymbol { .. }
            | Self::DuplicateToken { .. }
            | Self::BlankToken { .. }
            | Self::VocabularyTooLong { .. }
            | Self::StaleVocabulary { .. }
            | Self::ForeignVocabulary { .. }
            | Self::NameTaken { .. }
            | Self::BadIds { .. }
            | Self::Changed { .. }
            | Self::NoPairFits { .. } => false,
        }
    }

    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotUtf8 { .. } => Some(
                "pass `--encoding=windows-1252` if the file is written so (Latin-1 too), or `--encoding=bytes` to take \
                 any bytes as they are"
                    .to_owned(),
            ),
            Self::Memory { .. } => Some("shorten the data, or give the job more memory".to_owned()),
            Self::ControlSymbol { url, .. } => Some(format!(
                "the first four lines must be _PAD, _GO, _EOS, _UNK; add them, or delete {url} to have it made anew"
            )),
            Self::DuplicateToken { url, .. } | Self::BlankToken { url, .. } => {
                Some(format!("delete the line, or delete {url} to have it made anew"))
            }
            Self::StaleVocabulary { url, .. } | Self::ForeignVocabulary { url, .. } => Some(format!(
                "delete {url} and {url}.digest to have it made anew, choose another `--data_dir`, or pass \
                 `--keep_vocabulary` to use it with this data as it is"
            )),
            Self::NameTaken { url, .. } => Some(format!("delete {url} and {url}.digest")),
            Self::NoPairFits { source_max, target_max, .. } => {
                Some(format!("the largest bucket takes {source_max} source and {target_max} target tokens"))
            }
            Self::File(FileError::NotWritable { .. }) => Some("choose a folder that can be written; the trainer's is `--data_dir`".to_owned()),
            Self::Missing { .. }
            | Self::NulByte { .. }
            | Self::LineCounts { .. }
            | Self::Empty { .. }
            | Self::Blank { .. }
            | Self::VocabularySize { .. }
            | Self::VocabularyMissing { .. }
            | Self::VocabularyTooLong { .. }
            | Self::BadIds { .. }
            | Self::Changed { .. }
            | Self::File(FileError::NotFound { .. } | FileError::Failed { .. }) => None,
        }
    }
}
