//! A checked text file and its lines.
//!
//! Only LF ends a line, so both sides of a pair count the same whatever characters their texts hold. A carriage return
//! before it and a byte-order mark at the start of the file belong to no line. A last line without LF counts. NUL bytes
//! are refused: no tool that a user would look at the file with shows them alike.

use super::digest::sha256_hex;
use super::encoding::Encoding;
use super::error::DataError;
use bytes::Bytes;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Decoded text in which every check has passed.
#[derive(Debug, Clone)]
pub struct Text {
    url: String,
    contents: Bytes,
    lines: u64,
    digest: String,
}

impl Text {
    /// Offsets in errors count from the start of the file, lines from 1.
    pub fn check(url: &str, raw: Bytes, encoding: Encoding) -> Result<Self, DataError> {
        if let Some(offset) = raw.iter().position(|byte| *byte == 0) {
            let (line, offset) = (line_at(&raw, offset), offset as u64);
            return Err(DataError::NulByte { url: url.to_owned(), line, offset });
        }
        if encoding == Encoding::Utf8
            && let Err(error) = std::str::from_utf8(&raw)
        {
            let offset = error.valid_up_to();
            let (line, byte) = (line_at(&raw, offset), raw[offset]);
            return Err(DataError::NotUtf8 { url: url.to_owned(), line, offset: offset as u64, byte });
        }
        let contents = encoding.decode(raw);
        let digest = sha256_hex(&contents);
        let contents =
            if contents.starts_with(BYTE_ORDER_MARK) { contents.slice(BYTE_ORDER_MARK.len()..) } else { contents };
        Ok(Self { url: url.to_owned(), lines: lines(&contents).count() as u64, contents, digest })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn line_count(&self) -> u64 {
        self.lines
    }

    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        lines(&self.contents)
    }

    /// SHA-256 of the decoded file: for UTF-8 and bytes that of the file itself.
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

/// The lines of `contents` without their ends.
pub fn lines(contents: &[u8]) -> impl Iterator<Item = &[u8]> {
    contents
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\n").unwrap_or(line))
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

fn line_at(contents: &[u8], offset: usize) -> u64 {
    contents[..offset].iter().filter(|byte| **byte == b'\n').count() as u64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(contents: &[u8], encoding: Encoding) -> Result<Text, DataError> {
        Text::check("train.a", Bytes::copy_from_slice(contents), encoding)
    }

    fn all(contents: &[u8]) -> Vec<String> {
        let text = check(contents, Encoding::Utf8).unwrap();
        assert_eq!(text.line_count(), text.lines().count() as u64);
        text.lines().map(|line| String::from_utf8_lossy(line).into_owned()).collect()
    }

    #[test]
    fn only_a_line_feed_ends_a_line() {
        let unusual = "one\ntwo \u{2028}\u{85}\r still two\nthree\n";
        assert_eq!(all(unusual.as_bytes()), ["one", "two \u{2028}\u{85}\r still two", "three"]);
    }

    #[test]
    fn line_ends_of_other_systems_and_a_byte_order_mark_are_no_text() {
        assert_eq!(all(b"\xef\xbb\xbfone\r\ntwo\r\n\r\n"), ["one", "two", ""]);
    }

    #[test]
    fn a_last_line_without_its_end_counts() {
        assert_eq!(all(b"one\ntwo"), ["one", "two"]);
        assert_eq!(all(b""), Vec::<String>::new());
        assert_eq!(all(b"\n"), [""]);
    }

    #[test]
    fn a_bad_byte_is_named_with_its_place_and_the_way_out() {
        let mut contents = b"one\ntwo\nIt\x92s late\nfour\nfive\n".to_vec();
        let error = check(&contents, Encoding::Utf8).unwrap_err();
        assert_eq!(error.to_string(), "train.a line 3: byte 0x92 at offset 10 is not valid UTF-8");
        assert!(error.hint().unwrap().contains("--encoding=windows-1252"));
        assert!(error.hint().unwrap().contains("--encoding=bytes"));
        assert_eq!(check(&contents, Encoding::Bytes).unwrap().lines().nth(2), Some(&b"It\x92s late"[..]));
        let decoded = check(&contents, Encoding::Windows1252).unwrap();
        assert_eq!(decoded.lines().nth(2), Some("It’s late".as_bytes()));

        contents = b"x\n".repeat(35_000);
        contents.push(0x92);
        let error = check(&contents, Encoding::Utf8).unwrap_err();
        assert_eq!(error.to_string(), "train.a line 35001: byte 0x92 at offset 70000 is not valid UTF-8");
    }

    #[test]
    fn a_nul_byte_is_refused_in_every_encoding() {
        let contents = b"one\ntwo \0 words\n";
        for encoding in [Encoding::Utf8, Encoding::Bytes, Encoding::Windows1252] {
            let error = check(contents, encoding).unwrap_err();
            assert_eq!(error.to_string(), "train.a line 2: NUL byte at offset 8; text must not hold any");
        }
    }
}
