//! How often each token occurs in a text, and the vocabulary that follows from it.

use super::lines::Text;
use super::tokenizer::{normalized, tokens};
use super::vocabulary::{CONTROL_SYMBOLS, Vocabulary, is_control_symbol};
use super::{PROGRESS_LINES, Say};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Words typed like a control symbol are not counted, since no vocabulary may list them again.
#[derive(Debug, Clone)]
pub struct TokenCounts {
    /// By falling count; among equal counts the token seen first comes first.
    ranked: Vec<(Box<[u8]>, u64)>,
    total: u64,
}

impl TokenCounts {
    /// Says "  processing line N" at every 100,000th line.
    pub fn of(text: &Text, say: Say<'_>) -> Self {
        let mut place_of: HashMap<Box<[u8]>, usize> = HashMap::new();
        let mut counts: Vec<u64> = Vec::new();
        let mut scratch = Vec::new();
        for (number, line) in (1u64..).zip(text.lines()) {
            if number.is_multiple_of(PROGRESS_LINES) {
                say(&format!("  processing line {number}"));
            }
            for token in tokens(line) {
                let token = normalized(token, &mut scratch);
                match place_of.get(token) {
                    Some(place) => counts[*place] += 1,
                    None if is_control_symbol(token) => {}
                    None => {
                        place_of.insert(token.into(), counts.len());
                        counts.push(1);
                    }
                }
            }
        }
        let total = counts.iter().sum();
        let mut seen: Vec<(usize, Box<[u8]>)> = place_of.into_iter().map(|(token, place)| (place, token)).collect();
        seen.sort_unstable_by_key(|(place, _)| (Reverse(counts[*place]), *place));
        let ranked = seen.into_iter().map(|(place, token)| (token, counts[place])).collect();
        Self { ranked, total }
    }

    /// Different tokens.
    pub fn types(&self) -> usize {
        self.ranked.len()
    }

    /// All tokens.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Of the token with the given rank from 0.
    pub fn count_at(&self, rank: usize) -> Option<u64> {
        self.ranked.get(rank).map(|(_, count)| *count)
    }

    /// Contents of a vocabulary file of at most `size` lines: the control symbols, then tokens by rank.
    pub fn vocabulary_file(&self, size: usize) -> Vec<u8> {
        let control = CONTROL_SYMBOLS.iter().map(|symbol| symbol.as_bytes());
        let mut contents = Vec::new();
        for token in control.chain(self.ranked.iter().map(|(token, _)| &**token)).take(size) {
            contents.extend_from_slice(token);
            contents.push(b'\n');
        }
        contents
    }

    /// Whether `vocabulary` is one that this text gives at `size`, whatever the order among equal counts: the program
    /// that wrote it may have left that order to chance.
    pub fn gives(&self, vocabulary: &Vocabulary, size: usize) -> bool {
        let count_of: HashMap<&[u8], u64> = self.ranked.iter().map(|(token, count)| (&**token, *count)).collect();
        let words = vocabulary.tokens().skip(CONTROL_SYMBOLS.len());
        let expected = self.ranked.iter().map(|(_, count)| *count).take(size - CONTROL_SYMBOLS.len());
        words.map(|word| count_of.get(word).copied().unwrap_or(0)).eq(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::super::encoding::Encoding;
    use super::*;

    fn counts(text: &[u8]) -> TokenCounts {
        let text = Text::check("t", text.to_vec().into(), Encoding::Bytes).unwrap();
        TokenCounts::of(&text, &mut |_| {})
    }

    fn parsed(contents: &[u8]) -> Vocabulary {
        Vocabulary::parse("v", contents, 1000).unwrap()
    }

    #[test]
    fn tokens_rank_by_count_and_then_by_first_sight() {
        let counts = counts(b"b a\nc a 12 7\n34 c _EOS\n");
        assert_eq!(counts.vocabulary_file(100), b"_PAD\n_GO\n_EOS\n_UNK\na\nc\n00\nb\n0\n");
        assert_eq!(counts.vocabulary_file(6), b"_PAD\n_GO\n_EOS\n_UNK\na\nc\n");
        assert_eq!((counts.types(), counts.total()), (5, 8));
    }

    #[test]
    fn a_vocabulary_read_back_gives_the_same_ids_whatever_characters_tokens_hold() {
        let text = b"\xe2\x80\xa8 \xc2\x85 x\xe2\x80\xa9y \xef\xbb\xbf \x85 \xa0\x92 \x1f \x01 caf\xe9 ( ) \"\n";
        let counts = counts(text);
        let vocabulary = parsed(&counts.vocabulary_file(100));
        let mut ids = Vec::new();
        vocabulary.look_up(text, &mut ids);
        assert_eq!(ids, (4..4 + counts.types() as u32).collect::<Vec<_>>());
    }

    #[test]
    fn only_the_order_among_equal_counts_is_free() {
        let counts = counts(b"a a b c");
        assert!(counts.gives(&parsed(b"_PAD\n_GO\n_EOS\n_UNK\na\nc\nb\n"), 100));
        assert!(counts.gives(&parsed(b"_PAD\n_GO\n_EOS\n_UNK\na\nc\n"), 6));
        assert!(!counts.gives(&parsed(b"_PAD\n_GO\n_EOS\n_UNK\na\nc\n"), 100));
        assert!(!counts.gives(&parsed(b"_PAD\n_GO\n_EOS\n_UNK\nb\na\nc\n"), 100));
        assert!(!counts.gives(&parsed(b"_PAD\n_GO\n_EOS\n_UNK\na\nb\nd\n"), 100));
    }
}
