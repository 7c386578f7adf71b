//! Id files: a text, line by line, as the ids of its tokens.
//!
//! `<data file>.ids<N>` holds decimal ids joined by one space, without GO and EOS. A file under that name that was made
//! from other text or another vocabulary is left alone: the ids then go to `<data file>.ids<N>.<mark>`, the mark being
//! eight digits of the digest of text and vocabulary. If the place cannot be written to, they go to `data_dir`.

use super::digest::{DigestNote, sha256_hex};
use super::error::DataError;
use super::files::{Created, FileError, Files, file_name, join};
use super::lines::Text;
use super::vocabulary::{UNK, Vocabulary};
use super::{PROGRESS_LINES, Say};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::io::Write;

/// A finished id file, known by its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdFile {
    pub url: String,
    pub digest: String,
    /// The text it was made from.
    pub data_url: String,
    pub lines: u64,
    pub tokens: u64,
    pub unknown: u64,
    /// Every id is below this: the length of the vocabulary.
    pub entries: usize,
}

impl IdFile {
    /// Its contents, if they are still the same.
    pub fn read(&self, files: &dyn Files) -> Result<Bytes, DataError> {
        let contents = files.read(&self.url)?;
        let digest = sha256_hex(&contents);
        if digest != self.digest {
            return Err(DataError::Changed { url: self.url.clone(), expected: self.digest.clone(), got: digest });
        }
        Ok(contents)
    }

    /// Unknown tokens in parts of all, between 0 and 1.
    pub fn unknown_share(&self) -> f64 {
        self.unknown as f64 / self.tokens.max(1) as f64
    }
}

/// Contents of an id file. Says "  tokenizing line N" at every 100,000th line.
pub fn id_file(text: &Text, vocabulary: &Vocabulary, say: Say<'_>) -> Vec<u8> {
    let mut contents = Vec::new();
    let mut ids = Vec::new();
    for (number, line) in (1u64..).zip(text.lines()) {
        if number.is_multiple_of(PROGRESS_LINES) {
            say(&format!("  tokenizing line {number}"));
        }
        ids.clear();
        vocabulary.look_up(line, &mut ids);
        for (place, id) in ids.iter().enumerate() {
            let space = if place == 0 { "" } else { " " };
            write!(contents, "{space}{id}").expect("a vector takes any bytes");
        }
        contents.push(b'\n');
    }
    contents
}

/// Adds the ids of one line of the id file `url`; `None` if the line is not made of ids below `entries`.
pub fn parse_ids(line: &[u8], entries: usize, ids: &mut Vec<u32>) -> Option<()> {
    for word in line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        let id: u32 = std::str::from_utf8(word).ok()?.parse().ok()?;
        if id as usize >= entries {
            return None;
        }
        ids.push(id);
    }
    Some(())
}

pub(super) struct Wanted<'a> {
    pub text: &'a Text,
    pub vocabulary: &'a Vocabulary,
    pub size: usize,
    pub data_dir: &'a str,
}

impl Wanted<'_> {
    /// Finds the id file or makes it.
    pub fn settle(&self, files: &dyn Files, say: Say<'_>) -> Result<IdFile, DataError> {
        let places = self.places();
        for url in &places {
            if let Some(found) = self.find(files, url)? {
                self.name_place(url, say);
                return Ok(found);
            }
        }
        say(&format!("Tokenizing data in {}", self.text.url()));
        let contents = Bytes::from(id_file(self.text, self.vocabulary, say));
        let mut refusal = None;
        for url in &places {
            match files.create(url, contents.clone()) {
                Ok(Created::Written) => {}
                // Without a note, so by an older program or by another maker who is about to write the note.
                Ok(Created::AlreadyThere) if files.read(url)? == contents => {}
                Ok(Created::AlreadyThere) => {
                    say(&format!("{url} was made from other data or another vocabulary and is left as it is"));
                    continue;
                }
                Err(error @ FileError::NotWritable { .. }) => {
                    if refusal.is_none() {
                        say(&format!("Nothing can be written beside {}", self.text.url()));
                    }
                    refusal = Some(error);
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            self.name_place(url, say);
            self.note(&contents).publish(files, url)?;
            return Ok(self.described(url, &contents));
        }
        let [_, _, last] = places;
        Err(refusal.map_or(DataError::NameTaken { url: last, data_url: self.text.url().to_owned() }, DataError::File))
    }

    /// In the order in which they are tried. The last needs its mark, as files of one name from many folders meet
    /// there.
    fn places(&self) -> [String; 3] {
        let mark = sha256_hex(format!("{} {}", self.text.digest(), self.vocabulary.digest()).as_bytes());
        let plain = format!("{}.ids{}", self.text.url(), self.size);
        let marked = format!("{plain}.{}", &mark[..8]);
        let elsewhere = join(self.data_dir, file_name(&marked));
        [plain, marked, elsewhere]
    }

    /// Only what stands under the plain name needs no word.
    fn name_place(&self, url: &str, say: Say<'_>) {
        let [plain, ..] = self.places();
        if url != plain {
            say(&format!("The ids of {} are in {url}", self.text.url()));
        }
    }

    fn find(&self, files: &dyn Files, url: &str) -> Result<Option<IdFile>, DataError> {
        let Some(note) = DigestNote::read(files, url)? else { return Ok(None) };
        let contents = match files.read(url) {
            Ok(contents) => contents,
            Err(FileError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        Ok((note == self.note(&contents)).then(|| self.described(url, &contents)))
    }

    fn note(&self, contents: &[u8]) -> DigestNote {
        let (data, vocabulary) = (self.text.digest().to_owned(), Some(self.vocabulary.digest().to_owned()));
        DigestNote { file: sha256_hex(contents), data, vocabulary }
    }

    fn described(&self, url: &str, contents: &[u8]) -> IdFile {
        let ids = || contents.split(u8::is_ascii_whitespace).filter(|id| !id.is_empty());
        let unknown = UNK.to_string();
        IdFile {
            url: url.to_owned(),
            digest: sha256_hex(contents),
            data_url: self.text.url().to_owned(),
            lines: self.text.line_count(),
            tokens: ids().count() as u64,
            unknown: ids().filter(|id| *id == unknown.as_bytes()).count() as u64,
            entries: self.vocabulary.len(),
        }
    }
}
