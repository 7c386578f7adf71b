//! A vocabulary: which token has which id, and the file that says so.

use super::digest::sha256_hex;
use super::error::DataError;
use super::files::{FileError, Files};
use super::lines::lines;
use super::tokenizer::{normalized, strip, tokens};
use std::collections::HashMap;

pub const PAD: u32 = 0;
pub const GO: u32 = 1;
pub const EOS: u32 = 2;
pub const UNK: u32 = 3;

/// The first four lines of every vocabulary file.
pub const CONTROL_SYMBOLS: [&str; 4] = ["_PAD", "_GO", "_EOS", "_UNK"];

pub(super) fn is_control_symbol(token: &[u8]) -> bool {
    CONTROL_SYMBOLS.iter().any(|symbol| symbol.as_bytes() == token)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vocabulary {
    /// By id.
    tokens: Vec<Box<[u8]>>,
    /// Without the control symbols: a word typed like one is an unknown word.
    ids: HashMap<Box<[u8]>, u32>,
    digest: String,
}

impl Vocabulary {
    /// Takes the contents of a vocabulary file of at most `size` tokens.
    pub fn parse(url: &str, contents: &[u8], size: usize) -> Result<Self, DataError> {
        let mut parsed: Vec<Box<[u8]>> = Vec::new();
        let mut line_of: HashMap<&[u8], u64> = HashMap::new();
        // As in a data file, a byte-order mark is no part of the first token.
        let text = contents.strip_prefix(b"\xef\xbb\xbf").unwrap_or(contents);
        for (line, token) in (1..).zip(lines(text).map(strip)) {
            let printable = || String::from_utf8_lossy(token).into_owned();
            if let Some(expected) = CONTROL_SYMBOLS.get(line as usize - 1)
                && token != expected.as_bytes()
            {
                return Err(DataError::ControlSymbol { url: url.to_owned(), line, expected, got: printable() });
            }
            if token.is_empty() {
                return Err(DataError::BlankToken { url: url.to_owned(), line });
            }
            if let Some(first) = line_of.insert(token, line) {
                return Err(DataError::DuplicateToken { url: url.to_owned(), token: printable(), first, second: line });
            }
            parsed.push(token.into());
        }
        if let Some(expected) = CONTROL_SYMBOLS.get(parsed.len()) {
            let (line, got) = (parsed.len() as u64 + 1, "the end of the file".to_owned());
            return Err(DataError::ControlSymbol { url: url.to_owned(), line, expected, got });
        }
        if parsed.len() > size {
            return Err(DataError::VocabularyTooLong { url: url.to_owned(), entries: parsed.len(), size });
        }
        let words = parsed.iter().enumerate().skip(CONTROL_SYMBOLS.len());
        let ids = words.map(|(id, token)| (token.clone(), id as u32)).collect();
        Ok(Self { tokens: parsed, ids, digest: sha256_hex(contents) })
    }

    pub fn read(files: &dyn Files, url: &str, size: usize) -> Result<Self, DataError> {
        match files.read(url) {
            Ok(contents) => Self::parse(url, &contents, size),
            Err(FileError::NotFound { .. }) => Err(DataError::VocabularyMissing { url: url.to_owned() }),
            Err(error) => Err(error.into()),
        }
    }

    /// Control symbols included.
    #[expect(clippy::len_without_is_empty, reason = "four control symbols are always there")]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// SHA-256 of the file.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    pub fn token(&self, id: u32) -> Option<&[u8]> {
        self.tokens.get(id as usize).map(|token| &**token)
    }

    /// All tokens by id.
    pub fn tokens(&self) -> impl Iterator<Item = &[u8]> {
        self.tokens.iter().map(|token| &**token)
    }

    /// Adds the ids of a line of text; no GO, no EOS.
    pub fn look_up(&self, line: &[u8], ids: &mut Vec<u32>) {
        let mut scratch = Vec::new();
        ids.extend(tokens(line).map(|token| self.ids.get(normalized(token, &mut scratch)).copied().unwrap_or(UNK)));
    }
}

/// `vocab<N>.to` or `vocab<N>.from` in `data_dir`, N the size asked for.
pub fn vocabulary_url(data_dir: &str, size: usize, side: Side) -> String {
    super::files::join(data_dir, &format!("vocab{size}.{}", side.suffix()))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Source,
    Target,
}

impl Side {
    fn suffix(self) -> &'static str {
        match self {
            Self::Source => "from",
            Self::Target => "to",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "_PAD\n_GO\n_EOS\n_UNK\n";

    fn refusal(contents: &str) -> String {
        Vocabulary::parse("vocab9.to", contents.as_bytes(), 9).unwrap_err().to_string()
    }

    #[test]
    fn a_token_on_two_lines_is_refused_with_both() {
        assert_eq!(
            refusal(&format!("{HEAD}hello\na\nb\nc\nhello\n")),
            "vocab9.to line 9: hello stands on line 5 already"
        );
    }

    #[test]
    fn missing_control_symbols_are_refused_with_the_line() {
        assert_eq!(refusal("hello\nyou\n"), "vocab9.to line 1: expected _PAD, got hello");
        assert_eq!(refusal("_PAD\n_GO\n"), "vocab9.to line 3: expected _EOS, got the end of the file");
        let error = Vocabulary::parse("vocab9.to", b"hello\n", 9).unwrap_err();
        assert!(error.hint().unwrap().starts_with("the first four lines must be _PAD, _GO, _EOS, _UNK"));
    }

    #[test]
    fn control_symbols_given_twice_are_refused_with_both_lines() {
        assert_eq!(refusal(&format!("{HEAD}{HEAD}hello\n")), "vocab9.to line 5: _PAD stands on line 1 already");
    }

    #[test]
    fn a_blank_line_and_too_many_tokens_are_refused() {
        assert_eq!(
            refusal(&format!("{HEAD}a\n \nb\n")),
            "vocab9.to line 6 is blank; each line of a vocabulary holds one token"
        );
        let long = refusal(&format!("{HEAD}a\nb\nc\nd\ne\nf\n"));
        assert_eq!(long, "vocab9.to holds 10 tokens, more than the vocabulary size of 9");
    }

    #[test]
    fn a_word_typed_like_a_control_symbol_is_an_unknown_word() {
        let vocabulary = Vocabulary::parse("vocab9.to", format!("{HEAD}hello\n").as_bytes(), 9).unwrap();
        let mut ids = Vec::new();
        vocabulary.look_up(b"hello _EOS _PAD _GO _UNK hello", &mut ids);
        assert_eq!(ids, [4, UNK, UNK, UNK, UNK, 4]);
        assert_eq!(vocabulary.token(EOS), Some(&b"_EOS"[..]));
        assert_eq!(vocabulary.token(5), None);
    }

    #[test]
    fn lines_of_other_systems_read_the_same() {
        let plain = Vocabulary::parse("v", format!("{HEAD}a\nb\n").as_bytes(), 9).unwrap();
        let windows = format!("\u{feff}{HEAD}a\nb").replace('\n', "\r\n");
        let windows = Vocabulary::parse("v", windows.as_bytes(), 9).unwrap();
        assert_eq!(plain.tokens, windows.tokens);
        assert_ne!(plain.digest(), windows.digest());
    }
}
