//! The dialogue converter from file to files: `train.a`, `train.b`, `test.a`, `test.b`.

use super::dialogs::{Conversion, DialogError, DialogOptions, Pair, convert, split};
use super::error::DataError;
use super::files::{Created, FileError, Files, join};
use super::lines::Text;
use bytes::Bytes;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DialogReport {
    pub lines: u64,
    pub pairs: u64,
    pub train_pairs: u64,
    pub test_pairs: u64,
    pub begun: u64,
    pub gaps: u64,
    pub same_character: u64,
    /// In the order `train.a`, `train.b`, `test.a`, `test.b`.
    pub urls: [String; 4],
}

/// Writes all four files or, if anything is wrong, none. Where a run was ended half-way, the same run again completes
/// it; a file with other contents is never replaced.
pub fn convert_files(
    files: &dyn Files,
    input: &str,
    out: &str,
    options: DialogOptions,
) -> Result<DialogReport, DialogError> {
    let raw = files.read(input).map_err(|error| match error {
        FileError::NotFound { url } => DataError::Missing { flag: "movie lines".to_owned(), url },
        error => error.into(),
    })?;
    let text = Text::check(input, raw, options.encoding)?;
    let Conversion { pairs, lines, begun, gaps, same_character } = convert(&text, options.line_numbers)?;
    if pairs.is_empty() {
        return Err(DialogError::NoPairs { url: input.to_owned(), lines });
    }
    let (train, test) = split(pairs, options.seed);
    let outputs = [
        (join(out, "train.a"), side(&train, |pair| &pair.prompt)),
        (join(out, "train.b"), side(&train, |pair| &pair.reply)),
        (join(out, "test.a"), side(&test, |pair| &pair.prompt)),
        (join(out, "test.b"), side(&test, |pair| &pair.reply)),
    ];
    write_all(files, &outputs)?;
    let (train_pairs, test_pairs) = (train.len() as u64, test.len() as u64);
    let pairs = train_pairs + test_pairs;
    let urls = outputs.map(|(url, _)| url);
    Ok(DialogReport { lines, pairs, train_pairs, test_pairs, begun, gaps, same_character, urls })
}

fn side(pairs: &[Pair], text: impl Fn(&Pair) -> &Vec<u8>) -> Bytes {
    let mut contents = Vec::new();
    for pair in pairs {
        contents.extend_from_slice(text(pair));
        contents.push(b'\n');
    }
    contents.into()
}

fn write_all(files: &dyn Files, outputs: &[(String, Bytes)]) -> Result<(), DialogError> {
    for (url, contents) in outputs {
        if files.size(url).map_err(DataError::from)?.is_some() {
            same_contents(files, url, contents)?;
        }
    }
    let mut written: Vec<&str> = Vec::new();
    for (url, contents) in outputs {
        let outcome = match files.create(url, contents.clone()) {
            Ok(Created::Written) => {
                written.push(url);
                Ok(())
            }
            Ok(Created::AlreadyThere) => same_contents(files, url, contents),
            Err(error) => Err(DataError::from(error).into()),
        };
        if let Err(error) = outcome {
            for url in written {
                files.remove(url).map_err(DataError::from)?;
            }
            return Err(error);
        }
    }
    Ok(())
}

fn same_contents(files: &dyn Files, url: &str, contents: &Bytes) -> Result<(), DialogError> {
    if files.read(url).map_err(DataError::from)? == contents {
        return Ok(());
    }
    Err(DialogError::Taken { url: url.to_owned() })
}
