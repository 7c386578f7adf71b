//! Looks through the log's files before they are opened: cuts what a crash left unfinished, refuses real damage.
//!
//! `raft-engine` itself would cut the newest file at the first bad record, good ones after it included, and checks the
//! entries of a record only when they are read. So every record is read here first, in the format that `raft-engine`
//! 0.4 writes (its version 2):
//!
//! ```text
//! file   = magic (53 bytes) | version u64 = 2 | alignment u64 = 0 | records | zeros (space allocated ahead)
//! record = length << 8 | compression, u64 | offset of the items, u64
//!          | entries | CRC-32 of the entries    (both absent without entries)
//!          | items   | CRC-32 of the items, exclusive-or with the low half of the file's number
//! ```

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use super::LogError;

const MAGIC: &[u8] = b"RAFT-LOG-FILE-HEADER-9986AB3E47F320B394C8E84916EB0ED5";
const FILE_HEADER: usize = MAGIC.len() + 16;
const RECORD_HEADER: usize = 16;
const CHECKSUM: usize = 4;

/// A cut that [`repair`] made.
#[derive(Debug, PartialEq, Eq)]
pub struct Cut {
    pub file: PathBuf,
    pub offset: u64,
}

/// Checks all files of the log in `folder`. The newest file of each of the two queues may end in zeros or in one
/// record that was being written when the process died: that end is cut off. Anything else is refused, untouched.
pub fn repair(folder: &Path) -> Result<Vec<Cut>, LogError> {
    let mut cuts = Vec::new();
    for suffix in ["raftlog", "rewrite"] {
        let files = numbered_files(folder, suffix)?;
        let newest = files.last().map(|(number, _)| *number);
        for (number, file) in files {
            let bytes = fs::read(&file).map_err(LogError::io("read", &file))?;
            let Some(offset) = first_bad_record(&bytes, number) else { continue };
            let zeros_only = bytes[offset..].iter().all(|byte| *byte == 0);
            if Some(number) != newest {
                return Err(LogError::Damaged { file, offset: offset as u64, found: "bad record before newer files" });
            }
            if !zeros_only && good_record_after(&bytes, offset, number) {
                return Err(LogError::Damaged { file, offset: offset as u64, found: "bad record before good ones" });
            }
            cut(&file, offset)?;
            if !zeros_only {
                cuts.push(Cut { file, offset: offset as u64 });
            }
        }
    }
    Ok(cuts)
}

fn numbered_files(folder: &Path, suffix: &str) -> Result<Vec<(u64, PathBuf)>, LogError> {
    let mut files = Vec::new();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(files),
        Err(error) => return Err(LogError::io("list", folder)(error)),
    };
    for entry in entries {
        let path = entry.map_err(LogError::io("list", folder))?.path();
        let number = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
        if let (Some(number), true) = (number, path.extension().is_some_and(|extension| extension == suffix)) {
            files.push((number, path));
        }
    }
    files.sort();
    Ok(files)
}

/// Where the good records end before the file does; nothing if all of the file is good.
fn first_bad_record(bytes: &[u8], file_number: u64) -> Option<usize> {
    let header_good = bytes.len() >= FILE_HEADER
        && bytes.starts_with(MAGIC)
        && big_endian(bytes, MAGIC.len()) == 2
        && big_endian(bytes, MAGIC.len() + 8) == 0;
    if !header_good {
        return Some(0);
    }
    let mut offset = FILE_HEADER;
    while offset < bytes.len() {
        match good_record(bytes, offset, file_number) {
            Some(length) => offset += length,
            None => return Some(offset),
        }
    }
    None
}

fn good_record_after(bytes: &[u8], offset: usize, file_number: u64) -> bool {
    (offset + 1..bytes.len()).any(|start| good_record(bytes, start, file_number).is_some())
}

/// Length of the record at `offset`, if it is whole and its checksums hold.
fn good_record(bytes: &[u8], offset: usize, file_number: u64) -> Option<usize> {
    let rest = &bytes[offset..];
    if rest.len() < RECORD_HEADER {
        return None;
    }
    let length = usize::try_from(big_endian(rest, 0) >> 8).ok()?;
    let items_offset = usize::try_from(big_endian(rest, 8)).ok()?;
    if items_offset < RECORD_HEADER || length > rest.len() || items_offset.checked_add(CHECKSUM)? >= length {
        return None;
    }
    let entries = &rest[RECORD_HEADER..items_offset];
    let items = &rest[items_offset..length];
    let entries_good = entries.is_empty() || checksum_holds(entries, 0);
    (entries_good && checksum_holds(items, file_number as u32)).then_some(length)
}

fn checksum_holds(block: &[u8], signature: u32) -> bool {
    let Some((data, stored)) = block.split_last_chunk::<CHECKSUM>() else { return false };
    !data.is_empty() && crc32fast::hash(data) == u32::from_le_bytes(*stored) ^ signature
}

fn big_endian(bytes: &[u8], offset: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_be_bytes(number)
}

/// A file without even its header holds nothing: it goes, and the engine makes it again.
fn cut(file: &Path, offset: usize) -> Result<(), LogError> {
    if offset == 0 {
        return fs::remove_file(file).map_err(LogError::io("remove", file));
    }
    let opened: File = OpenOptions::new().write(true).open(file).map_err(LogError::io("open", file))?;
    opened.set_len(offset as u64).map_err(LogError::io("cut", file))?;
    opened.sync_all().map_err(LogError::io("sync", file))
}
