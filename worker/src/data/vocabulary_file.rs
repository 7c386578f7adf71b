//! Making a vocabulary file from its training text, or making sure that the one there belongs to it.

use super::Say;
use super::counts::TokenCounts;
use super::digest::DigestNote;
use super::error::DataError;
use super::files::{Created, FileError, Files};
use super::lines::Text;
use super::vocabulary::Vocabulary;
use bytes::Bytes;

pub(super) struct Wanted<'a> {
    pub url: String,
    pub size: usize,
    pub text: &'a Text,
    /// Use what is there even if it was made from other text.
    pub keep: bool,
}

pub(super) struct Found {
    vocabulary: Vocabulary,
    /// It has been verified by counting and needs a note.
    note_missing: bool,
}

impl Wanted<'_> {
    /// Changes nothing. A vocabulary of other text is refused, since ids that silently mean other words are the worst
    /// end of a training.
    pub fn find(&self, files: &dyn Files, say: Say<'_>) -> Result<Option<Found>, DataError> {
        let contents = match files.read(&self.url) {
            Ok(contents) => contents,
            Err(FileError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let vocabulary = Vocabulary::parse(&self.url, &contents, self.size)?;
        let note = DigestNote::read(files, &self.url)?.filter(|note| note.file == vocabulary.digest());
        if note.as_ref().is_some_and(|note| note.data == self.text.digest()) {
            return Ok(Some(Found { vocabulary, note_missing: false }));
        }
        if self.keep {
            say(&format!("Keeping vocabulary {}, whatever data it was made from", self.url));
            return Ok(Some(Found { vocabulary, note_missing: false }));
        }
        let (url, data_url) = (self.url.clone(), self.text.url().to_owned());
        let data_digest = self.text.digest().to_owned();
        match note {
            Some(DigestNote { data: made_from, .. }) => {
                Err(DataError::StaleVocabulary { url, made_from, data_url, data_digest })
            }
            None if TokenCounts::of(self.text, &mut |_| {}).gives(&vocabulary, self.size) => {
                Ok(Some(Found { vocabulary, note_missing: true }))
            }
            None => Err(DataError::ForeignVocabulary { url, data_url, data_digest }),
        }
    }

    /// Publishes what is missing: the file, its note, both or nothing.
    pub fn settle(&self, found: Option<Found>, files: &dyn Files, say: Say<'_>) -> Result<Vocabulary, DataError> {
        let found = match found {
            Some(found) => found,
            None => self.make(files, say)?,
        };
        if found.note_missing {
            let file = found.vocabulary.digest().to_owned();
            DigestNote { file, data: self.text.digest().to_owned(), vocabulary: None }.publish(files, &self.url)?;
        }
        Ok(found.vocabulary)
    }

    fn make(&self, files: &dyn Files, say: Say<'_>) -> Result<Found, DataError> {
        say(&format!("Creating vocabulary {} from data {}", self.url, self.text.url()));
        let contents = Bytes::from(TokenCounts::of(self.text, say).vocabulary_file(self.size));
        match files.create(&self.url, contents.clone())? {
            Created::Written => {
                let vocabulary = Vocabulary::parse(&self.url, &contents, self.size)?;
                Ok(Found { vocabulary, note_missing: true })
            }
            // Another maker was faster; what it made is looked at like any other file.
            Created::AlreadyThere => {
                self.find(files, say)?.ok_or_else(|| DataError::VocabularyMissing { url: self.url.clone() })
            }
        }
    }
}
