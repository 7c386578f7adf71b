//! Film dialogues in the format of the Cornell corpus, turned into pairs of prompt and reply.
//!
//! A line has five fields joined by ` +++$+++ `: line id, character, film, name, text. Lines stand last first, so the
//! file is walked from its end with a buffer of one line. Texts are lower-cased, an empty text is a text like any other
//! (an empty line is a valid prompt or reply to the trainer), and a missing end of the last line does not matter.

use super::encoding::Encoding;
use super::error::DataError;
use super::lines::Text;
use crate::random::{Keyed, Purpose};

const SEPARATOR: &[u8] = b" +++$+++ ";
const FIELDS: usize = 5;

#[derive(Debug, thiserror::Error)]
pub enum DialogError {
    #[error("{url} line {line}: expected 5 fields joined by \" +++$+++ \", got {got}")]
    FieldCount { url: String, line: u64, got: usize },
    #[error("{url} line {line}: expected a line id like L1045, got {got}")]
    LineId { url: String, line: u64, got: String },
    #[error("{url} holds no dialogue: {lines} lines, of which none answers another")]
    NoPairs { url: String, lines: u64 },
    #[error("{url} is there already and has other contents")]
    Taken { url: String },
    #[error(transparent)]
    Data(#[from] DataError),
}

impl DialogError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::FieldCount { .. } => "dialogs-field-count",
            Self::LineId { .. } => "dialogs-line-id",
            Self::NoPairs { .. } => "dialogs-no-pairs",
            Self::Taken { .. } => "dialogs-taken",
            Self::Data(error) => error.code(),
        }
    }

    pub fn retryable(&self) -> bool {
        match self {
            Self::FieldCount { .. } | Self::LineId { .. } | Self::NoPairs { .. } | Self::Taken { .. } => false,
            Self::Data(error) => error.retryable(),
        }
    }

    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Taken { url } => Some(format!("delete {url}, or choose another folder")),
            Self::Data(error) => error.hint(),
            Self::FieldCount { .. } | Self::LineId { .. } | Self::NoPairs { .. } => None,
        }
    }
}

/// What of a line id tells whether two lines follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineNumbers {
    #[default]
    Whole,
    /// As the old converter read them: it loses the pair at each step from 9 to 0.
    LastDigit,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    pub prompt: Vec<u8>,
    pub reply: Vec<u8>,
}

/// What became of the lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conversion {
    /// In speaking order.
    pub pairs: Vec<Pair>,
    pub lines: u64,
    /// Lines that began a buffer: the first of all, of a film, or after a pair or a loss.
    pub begun: u64,
    /// Lines that took the place of a buffered line which they do not follow.
    pub gaps: u64,
    /// Lines lost together with the buffered one, as the same character spoke both.
    pub same_character: u64,
}

struct Line<'a> {
    number: u64,
    character: &'a [u8],
    film: &'a [u8],
    text: &'a [u8],
}

pub fn convert(text: &Text, numbers: LineNumbers) -> Result<Conversion, DialogError> {
    let lines: Vec<&[u8]> = text.lines().collect();
    let mut conversion = Conversion { lines: lines.len() as u64, ..Conversion::default() };
    let mut buffer: Option<Line> = None;
    for (place, line) in lines.iter().enumerate().rev() {
        let line = parse(text.url(), place as u64 + 1, line, numbers)?;
        buffer = match buffer {
            Some(earlier) if earlier.film == line.film => {
                if earlier.number.abs_diff(line.number) > 1 {
                    conversion.gaps += 1;
                    Some(line)
                } else if earlier.character == line.character {
                    conversion.same_character += 1;
                    None
                } else {
                    let (prompt, reply) = (lower_case(earlier.text), lower_case(line.text));
                    conversion.pairs.push(Pair { prompt, reply });
                    None
                }
            }
            Some(_) | None => {
                conversion.begun += 1;
                Some(line)
            }
        };
    }
    Ok(conversion)
}

fn parse<'a>(url: &str, place: u64, line: &'a [u8], numbers: LineNumbers) -> Result<Line<'a>, DialogError> {
    let fields = fields(line);
    let [id, character, film, _name, text] = fields[..] else {
        return Err(DialogError::FieldCount { url: url.to_owned(), line: place, got: fields.len() });
    };
    let digits = match numbers {
        LineNumbers::Whole => id.strip_prefix(b"L").unwrap_or(id),
        LineNumbers::LastDigit => &id[id.len().saturating_sub(1)..],
    };
    let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).ok_or_else(|| {
        let got = String::from_utf8_lossy(id).into_owned();
        DialogError::LineId { url: url.to_owned(), line: place, got }
    })?;
    Ok(Line { number, character, film, text })
}

fn fields(line: &[u8]) -> Vec<&[u8]> {
    let mut fields = Vec::with_capacity(FIELDS);
    let mut rest = line;
    while let Some(end) = rest.windows(SEPARATOR.len()).position(|window| window == SEPARATOR) {
        fields.push(&rest[..end]);
        rest = &rest[end + SEPARATOR.len()..];
    }
    fields.push(rest);
    fields
}

/// By the rules of Unicode where the text is UTF-8; of any other text ASCII letters alone, as nobody knows what its
/// other bytes mean.
fn lower_case(text: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(text) {
        Ok(text) => text.to_lowercase().into_bytes(),
        Err(_) => text.to_ascii_lowercase(),
    }
}

/// Four fifths for training and the rest (rounded down) for testing, both in an order drawn by the seed.
pub fn split(mut pairs: Vec<Pair>, seed: u64) -> (Vec<Pair>, Vec<Pair>) {
    Keyed::new(seed, Purpose::Split, 0, 0).shuffle(&mut pairs);
    let test = pairs.split_off(pairs.len() - pairs.len() / 5);
    (pairs, test)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DialogOptions {
    pub line_numbers: LineNumbers,
    /// `Encoding::Bytes` unless the user says otherwise: the Cornell corpus is not UTF-8.
    pub encoding: Encoding,
    pub seed: u64,
}

impl Default for DialogOptions {
    fn default() -> Self {
        Self { line_numbers: LineNumbers::Whole, encoding: Encoding::Bytes, seed: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(contents: &str, numbers: LineNumbers) -> Result<Conversion, DialogError> {
        let text = Text::check("movie_lines.txt", contents.to_owned().into(), Encoding::Bytes)?;
        convert(&text, numbers)
    }

    fn line(number: u64, character: &str, film: &str, text: &str) -> String {
        format!("L{number} +++$+++ {character} +++$+++ {film} +++$+++ NAME +++$+++ {text}\n")
    }

    fn texts(conversion: &Conversion) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        conversion.pairs.iter().map(|pair| (text(&pair.prompt), text(&pair.reply))).collect()
    }

    #[test]
    fn four_turns_give_two_pairs_in_speaking_order_and_lower_case() {
        let file = line(13, "u1", "m0", "Four")
            + &line(12, "u0", "m0", "ÉTÉ")
            + &line(11, "u1", "m0", "Two")
            + &line(10, "u0", "m0", "One");
        let conversion = converted(file.trim_end(), LineNumbers::Whole).unwrap();
        assert_eq!(texts(&conversion), [("one".into(), "two".into()), ("été".into(), "four".into())]);
        assert_eq!((conversion.lines, conversion.begun, conversion.gaps, conversion.same_character), (4, 2, 0, 0));
    }

    #[test]
    fn only_whole_numbers_see_that_ten_follows_nine_and_twenty_does_not() {
        let neighbours = line(10, "u1", "m0", "b") + &line(9, "u0", "m0", "a");
        assert_eq!(converted(&neighbours, LineNumbers::Whole).unwrap().pairs.len(), 1);
        let lost = converted(&neighbours, LineNumbers::LastDigit).unwrap();
        assert_eq!((lost.pairs.len(), lost.gaps), (0, 1));
        let apart = line(20, "u1", "m0", "b") + &line(10, "u0", "m0", "a");
        assert_eq!(converted(&apart, LineNumbers::Whole).unwrap().pairs.len(), 0);
        assert_eq!(converted(&apart, LineNumbers::LastDigit).unwrap().pairs.len(), 1);
    }

    #[test]
    fn another_film_or_the_same_character_gives_no_pair() {
        let films = line(2, "u1", "m1", "b") + &line(1, "u0", "m0", "a");
        assert_eq!(converted(&films, LineNumbers::Whole).unwrap().pairs, []);
        let monologue = line(3, "u1", "m0", "c") + &line(2, "u0", "m0", "b") + &line(1, "u0", "m0", "a");
        let conversion = converted(&monologue, LineNumbers::Whole).unwrap();
        assert_eq!((conversion.pairs.len(), conversion.same_character, conversion.begun), (0, 1, 2));
    }

    #[test]
    fn an_empty_text_stays_a_turn() {
        let conversion =
            converted(&(line(2, "u1", "m0", "") + &line(1, "u0", "m0", "Hi")), LineNumbers::Whole).unwrap();
        assert_eq!(texts(&conversion), [("hi".into(), String::new())]);
    }

    #[test]
    fn a_line_without_five_fields_is_named() {
        let error =
            converted(&(line(2, "u1", "m0", "b") + "L1 +++$+++ u0 +++$+++ m0\n"), LineNumbers::Whole).unwrap_err();
        assert_eq!(error.to_string(), "movie_lines.txt line 2: expected 5 fields joined by \" +++$+++ \", got 3");
        let error = converted("Lx +++$+++ u0 +++$+++ m0 +++$+++ N +++$+++ a\n", LineNumbers::Whole).unwrap_err();
        assert_eq!(error.to_string(), "movie_lines.txt line 1: expected a line id like L1045, got Lx");
    }

    #[test]
    fn bytes_that_are_not_utf_8_keep_their_value() {
        assert_eq!(lower_case(b"CAF\xc9 \x85"), b"caf\xc9 \x85");
    }

    #[test]
    fn a_split_is_fixed_by_its_seed_and_loses_nothing() {
        let pairs: Vec<Pair> = (0..13u8).map(|n| Pair { prompt: vec![n], reply: vec![n + 100] }).collect();
        let (train, test) = split(pairs.clone(), 5);
        assert_eq!((train.len(), test.len()), (11, 2));
        assert_eq!((train.clone(), test.clone()), split(pairs.clone(), 5));
        assert_ne!((train.clone(), test.clone()), split(pairs.clone(), 6));
        let mut all = [train, test].concat();
        all.sort_by_key(|pair| pair.prompt.clone());
        assert_eq!(all, pairs);
    }
}
