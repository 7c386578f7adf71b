//! How the bytes of a data file are to be read.

use bytes::Bytes;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// Checked; any other byte is an error.
    #[default]
    Utf8,
    /// Taken as they are.
    Bytes,
    /// Turned into UTF-8. Latin-1 text reads the same, since the two differ only in control characters.
    Windows1252,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("encoding must be utf-8, bytes or windows-1252, got {0}")]
pub struct UnknownEncoding(String);

impl FromStr for Encoding {
    type Err = UnknownEncoding;

    fn from_str(name: &str) -> Result<Self, UnknownEncoding> {
        match name.to_ascii_lowercase().as_str() {
            "utf-8" | "utf8" => Ok(Self::Utf8),
            "bytes" => Ok(Self::Bytes),
            "windows-1252" | "cp1252" | "latin-1" | "latin1" | "iso-8859-1" => Ok(Self::Windows1252),
            _ => Err(UnknownEncoding(name.to_owned())),
        }
    }
}

impl Encoding {
    /// UTF-8 for text in another encoding; everything else is handed back as it came.
    pub fn decode(self, contents: Bytes) -> Bytes {
        match self {
            Self::Windows1252 if !contents.is_ascii() => {
                Bytes::from(contents.iter().map(|byte| windows_1252(*byte)).collect::<String>())
            }
            Self::Utf8 | Self::Bytes | Self::Windows1252 => contents,
        }
    }
}

/// 0x80 to 0x9f by the table of the WHATWG Encoding Standard (unassigned ones stay control characters), else Latin-1.
fn windows_1252(byte: u8) -> char {
    const HIGH: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘',
        '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => HIGH[usize::from(byte) - 0x80],
        _ => char::from(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_1252_becomes_utf_8() {
        let decode = |encoding: Encoding, bytes: &'static [u8]| encoding.decode(Bytes::from_static(bytes));
        assert_eq!(decode(Encoding::Windows1252, b"It\x92s caf\xe9\x85"), "It’s café…".as_bytes());
        assert_eq!(decode(Encoding::Bytes, b"It\x92s"), &b"It\x92s"[..]);
    }

    #[test]
    fn names_are_those_people_use() {
        assert_eq!("UTF-8".parse(), Ok(Encoding::Utf8));
        assert_eq!("latin-1".parse(), Ok(Encoding::Windows1252));
        let refused = "ebcdic".parse::<Encoding>().unwrap_err().to_string();
        assert_eq!(refused, "encoding must be utf-8, bytes or windows-1252, got ebcdic");
    }
}
