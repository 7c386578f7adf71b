//! Reading two id files side by side into buckets.

use super::buckets::{Bucket, BucketShape};
use super::error::DataError;
use super::files::Files;
use super::ids::{IdFile, parse_ids};
use super::lines::lines;
use super::prepare::IdPair;
use super::vocabulary::EOS;
use super::{PROGRESS_LINES, Say};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairs {
    /// In the order of the shapes; a bucket may be empty.
    pub buckets: Vec<Bucket>,
    pub lines_read: u64,
    /// Pairs too long for every bucket.
    pub dropped: u64,
}

impl Pairs {
    /// Pairs of each bucket.
    pub fn sizes(&self) -> Vec<usize> {
        self.buckets.iter().map(Bucket::len).collect()
    }

    /// Refuses a training that would have nothing to learn from.
    pub fn for_training(self, files: &IdPair) -> Result<Self, DataError> {
        if self.buckets.iter().any(|bucket| !bucket.is_empty()) {
            return Ok(self);
        }
        let shapes: Vec<BucketShape> = self.buckets.iter().map(Bucket::shape).collect();
        let (source_max, target_max) = BucketShape::longest(&shapes);
        Err(DataError::NoPairFits {
            source_url: files.source.data_url.clone(),
            target_url: files.target.data_url.clone(),
            lines: self.lines_read,
            source_max,
            target_max,
        })
    }
}

/// `limit` counts lines read, not pairs kept; 0 is no limit. Says "  reading data line N" at every 100,000th line, and
/// at the end how many pairs were too long.
pub fn read_pairs(
    files: &dyn Files,
    pair: &IdPair,
    shapes: &[BucketShape],
    limit: u64,
    say: Say<'_>,
) -> Result<Pairs, DataError> {
    let (source_file, target_file) = (pair.source.read(files)?, pair.target.read(files)?);
    let mut buckets: Vec<Bucket> = shapes.iter().map(|shape| Bucket::new(*shape)).collect();
    let (mut source, mut target) = (Vec::new(), Vec::new());
    let (mut lines_read, mut dropped) = (0, 0);
    for (source_line, target_line) in lines(&source_file).zip(lines(&target_file)) {
        if limit != 0 && lines_read == limit {
            break;
        }
        let line = lines_read;
        lines_read += 1;
        if lines_read.is_multiple_of(PROGRESS_LINES) {
            say(&format!("  reading data line {lines_read}"));
        }
        parse(&pair.source, line, source_line, &mut source)?;
        parse(&pair.target, line, target_line, &mut target)?;
        target.push(EOS);
        match BucketShape::first_fitting(shapes, source.len(), target.len()) {
            Some(bucket) => buckets[bucket].push(&source, &target, line),
            None => dropped += 1,
        }
    }
    if dropped > 0 {
        let (source, target) = (&pair.source.data_url, &pair.target.data_url);
        say(&format!(
            "{dropped} of {lines_read} pairs of {source} and {target} are too long for every bucket and left out"
        ));
    }
    Ok(Pairs { buckets, lines_read, dropped })
}

fn parse(file: &IdFile, line: u64, contents: &[u8], ids: &mut Vec<u32>) -> Result<(), DataError> {
    ids.clear();
    parse_ids(contents, file.entries, ids).ok_or_else(|| DataError::BadIds {
        url: file.url.clone(),
        line: line + 1,
        entries: file.entries,
        got: String::from_utf8_lossy(contents).chars().take(80).collect(),
    })
}
