//! The basic tokenizer of the translate program: bytes in, slices of the same bytes out.

const SPLITTING: &[u8] = b".,!?\"':;)(";

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// `text` without white space at its ends; what counts as white space is what splits tokens.
pub fn strip(text: &[u8]) -> &[u8] {
    let Some(start) = text.iter().position(|byte| !is_space(*byte)) else { return &[] };
    let end = text.iter().rposition(|byte| !is_space(*byte)).map_or(start, |last| last + 1);
    &text[start..end]
}

/// White space (ASCII alone) parts tokens; each of `. , ! ? " ' : ; ) (` is a token of its own.
pub fn tokens(line: &[u8]) -> Tokens<'_> {
    Tokens { rest: line }
}

#[derive(Debug, Clone)]
pub struct Tokens<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.rest.iter().position(|byte| !is_space(*byte))?;
        let rest = &self.rest[start..];
        let plain = rest.iter().position(|byte| is_space(*byte) || SPLITTING.contains(byte)).unwrap_or(rest.len());
        let (token, rest) = rest.split_at(plain.max(1));
        self.rest = rest;
        Some(token)
    }
}

/// The form in which a token is counted and looked up: every digit is `0`. `scratch` holds it where it differs.
pub fn normalized<'a>(token: &'a [u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
    if !token.iter().any(u8::is_ascii_digit) {
        return token;
    }
    scratch.clear();
    scratch.extend(token.iter().map(|byte| if byte.is_ascii_digit() { b'0' } else { *byte }));
    scratch
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(line: &[u8]) -> Vec<String> {
        let mut scratch = Vec::new();
        tokens(line).map(|token| String::from_utf8_lossy(normalized(token, &mut scratch)).into_owned()).collect()
    }

    #[test]
    fn the_published_example_comes_out_token_by_token() {
        let expected = ["Don", "'", "t", "pay", "$0", ",", "000", ".", "00", "(", "now", ")", "!"];
        assert_eq!(all(b"Don't pay $1,250.50 (now)!"), expected);
    }

    #[test]
    fn a_year_is_one_token_of_zeros() {
        assert_eq!(all(b"2016"), ["0000"]);
    }

    #[test]
    fn only_ascii_white_space_parts_tokens() {
        assert_eq!(all(b" \t\x0b\x0c\r\n"), Vec::<String>::new());
        assert_eq!(all(b"a\x0bb\x0cc\rd\te\n"), ["a", "b", "c", "d", "e"]);
        assert_eq!(all("a\u{a0}b\u{2028}c\u{85}d".as_bytes()), ["a\u{a0}b\u{2028}c\u{85}d"]);
    }

    #[test]
    fn runs_of_splitting_bytes_are_single_tokens() {
        assert_eq!(all(b"...what?!"), [".", ".", ".", "what", "?", "!"]);
    }

    #[test]
    fn bytes_above_ascii_stay_as_they_are() {
        assert_eq!(tokens(b"It\x92s \x85.").collect::<Vec<_>>(), [&b"It\x92s"[..], b"\x85", b"."]);
    }

    #[test]
    fn stripping_leaves_inner_white_space() {
        assert_eq!(strip(b"\t a b\r\n"), b"a b");
        assert_eq!(strip(b" \r\n"), b"");
    }
}
