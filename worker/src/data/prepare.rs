//! Vocabularies and id files for a training: every check of every file first, then what is missing is made.

use super::Say;
use super::buckets::BucketShape;
use super::encoding::Encoding;
use super::error::DataError;
use super::files::Files;
use super::ids::{self, IdFile};
use super::lines::Text;
use super::tokenizer::tokens;
use super::vocabulary::{CONTROL_SYMBOLS, Side, Vocabulary, vocabulary_url};
use super::vocabulary_file;
use serde::{Deserialize, Serialize};

/// Above this share of unknown tokens a file is warned about.
pub const UNKNOWN_SHARE_WARNED: f64 = 0.10;

/// At least: all texts are held at once, and what is made of them comes on top.
const MEMORY_PER_BYTE: u64 = 1;

/// A file and the flag that named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFile {
    pub url: String,
    pub flag: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideSettings {
    /// Of the vocabulary, control symbols included.
    pub vocabulary_size: usize,
    pub vocabulary_size_flag: String,
    pub train: DataFile,
    pub dev: DataFile,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrepareSettings {
    pub source: SideSettings,
    pub target: SideSettings,
    pub data_dir: String,
    pub encoding: Encoding,
    /// `--keep_vocabulary`: use vocabularies that are there even if they were made from other data.
    pub keep_vocabulary: bool,
    /// Bytes; more is refused before anything is read.
    pub memory_limit: Option<u64>,
    /// Some training pair must fit one of them.
    pub buckets: Vec<BucketShape>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VocabularyFile {
    pub url: String,
    pub digest: String,
    pub entries: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdPair {
    pub source: IdFile,
    pub target: IdFile,
}

/// Names everything made, with digests: enough for other replicas to read the same data without preparing it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    pub source_vocabulary: VocabularyFile,
    pub target_vocabulary: VocabularyFile,
    pub train: IdPair,
    pub dev: IdPair,
}

/// May be called again, and by several at once: what is there already is verified and used.
pub fn prepare(files: &dyn Files, settings: &PrepareSettings, say: Say<'_>) -> Result<Prepared, DataError> {
    let (source, target) = (&settings.source, &settings.target);
    for side in [source, target] {
        if side.vocabulary_size <= CONTROL_SYMBOLS.len() {
            let (flag, size) = (side.vocabulary_size_flag.clone(), side.vocabulary_size);
            return Err(DataError::VocabularySize { flag, size });
        }
    }
    let [source_train, target_train, source_dev, target_dev] = &read_texts(files, settings)?;
    same_line_count(source_train, target_train)?;
    same_line_count(source_dev, target_dev)?;
    some_pair_fits(source_train, target_train, &settings.buckets)?;

    let wanted = |side: Side, size: usize, text| vocabulary_file::Wanted {
        url: vocabulary_url(&settings.data_dir, size, side),
        size,
        text,
        keep: settings.keep_vocabulary,
    };
    let wanted_target = wanted(Side::Target, target.vocabulary_size, target_train);
    let wanted_source = wanted(Side::Source, source.vocabulary_size, source_train);
    let found_target = wanted_target.find(files, say)?;
    let found_source = wanted_source.find(files, say)?;
    // Nothing has been written up to here, and nothing below looks at the user's files for faults.
    let target_vocabulary = wanted_target.settle(found_target, files, say)?;
    let source_vocabulary = wanted_source.settle(found_source, files, say)?;

    // One file may serve several times.
    let mut counted: Vec<String> = Vec::new();
    let mut ids = |text: &Text, vocabulary: &Vocabulary, size: usize| {
        let made = ids::Wanted { text, vocabulary, size, data_dir: &settings.data_dir }.settle(files, say)?;
        if !counted.contains(&made.data_url) {
            say_unknown(&made, say);
            counted.push(made.data_url.clone());
        }
        Ok::<IdFile, DataError>(made)
    };
    let target_train = ids(target_train, &target_vocabulary, target.vocabulary_size)?;
    let source_train = ids(source_train, &source_vocabulary, source.vocabulary_size)?;
    let target_dev = ids(target_dev, &target_vocabulary, target.vocabulary_size)?;
    let source_dev = ids(source_dev, &source_vocabulary, source.vocabulary_size)?;

    let described = |url: String, vocabulary: &Vocabulary| {
        let digest = vocabulary.digest().to_owned();
        VocabularyFile { url, digest, entries: vocabulary.len() }
    };
    Ok(Prepared {
        source_vocabulary: described(wanted_source.url, &source_vocabulary),
        target_vocabulary: described(wanted_target.url, &target_vocabulary),
        train: IdPair { source: source_train, target: target_train },
        dev: IdPair { source: source_dev, target: target_dev },
    })
}

/// Source and target of training, then of development. A file named twice is read once.
fn read_texts(files: &dyn Files, settings: &PrepareSettings) -> Result<[Text; 4], DataError> {
    let named = [&settings.source.train, &settings.target.train, &settings.source.dev, &settings.target.dev];
    let first_named = |place: usize| named.iter().position(|file| file.url == named[place].url).unwrap_or(place);
    let mut bytes = 0u64;
    for (place, file) in named.iter().enumerate() {
        let Some(size) = files.size(&file.url)? else {
            return Err(DataError::Missing { flag: file.flag.clone(), url: file.url.clone() });
        };
        if first_named(place) == place {
            bytes = bytes.saturating_add(size);
        }
    }
    let needed = bytes.saturating_mul(MEMORY_PER_BYTE);
    if let Some(available) = settings.memory_limit
        && needed > available
    {
        return Err(DataError::Memory { needed, available });
    }
    let mut texts: Vec<Text> = Vec::new();
    for (place, file) in named.iter().enumerate() {
        let text = match texts.get(first_named(place)) {
            Some(text) => text.clone(),
            None => Text::check(&file.url, files.read(&file.url)?, settings.encoding)?,
        };
        texts.push(text);
    }
    Ok(texts.try_into().expect("one text for each of the four names"))
}

fn same_line_count(source: &Text, target: &Text) -> Result<(), DataError> {
    if source.line_count() == target.line_count() {
        return Ok(());
    }
    Err(DataError::LineCounts {
        source_url: source.url().to_owned(),
        source_lines: source.line_count(),
        target_url: target.url().to_owned(),
        target_lines: target.line_count(),
    })
}

/// Looked for before anything is written; the first pair of most files is such a one.
fn some_pair_fits(source: &Text, target: &Text, buckets: &[BucketShape]) -> Result<(), DataError> {
    let (source_url, target_url) = (source.url().to_owned(), target.url().to_owned());
    if source.line_count() == 0 {
        return Err(DataError::Empty { source_url, target_url });
    }
    let mut pairs = source.lines().zip(target.lines());
    let mut words = 0;
    let fits = |(source, target)| {
        let (source, target) = (tokens(source).count(), tokens(target).count());
        words += source + target;
        source + target > 0 && BucketShape::first_fitting(buckets, source, target + 1).is_some()
    };
    if pairs.any(fits) {
        return Ok(());
    }
    if words == 0 {
        return Err(DataError::Blank { source_url, target_url });
    }
    let (source_max, target_max) = BucketShape::longest(buckets);
    Err(DataError::NoPairFits { source_url, target_url, lines: source.line_count(), source_max, target_max })
}

fn say_unknown(ids: &IdFile, say: Say<'_>) {
    let IdFile { data_url, tokens, unknown, .. } = ids;
    let percent = 100.0 * ids.unknown_share();
    say(&format!("{unknown} of {tokens} tokens ({percent:.2} %) of {data_url} are not in the vocabulary"));
    if ids.unknown_share() > UNKNOWN_SHARE_WARNED {
        let limit = 100.0 * UNKNOWN_SHARE_WARNED;
        say(&format!(
            "warning: more than {limit:.0} % of the tokens of {data_url} are unknown; a larger vocabulary size helps"
        ));
    }
}
