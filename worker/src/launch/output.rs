//! Output of a child, whole line by whole line, byte for byte.

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;

/// Longer lines are split, with [`CONTINUES`] at the end of each piece.
pub const LINE_LIMIT: usize = 64 << 10;
const CONTINUES: &[u8] = b" [line continues]";
const CHUNK: usize = 32 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Output,
    Error,
    /// The agent's own word.
    Platform,
}

impl Stream {
    /// The letter in a stored log line.
    pub fn letter(self) -> char {
        match self {
            Self::Output => 'O',
            Self::Error => 'E',
            Self::Platform => 'P',
        }
    }
}

/// Reads to the end. A last line without a line end counts; waits when the receiver is slow, so that memory stays
/// bounded and the program is slowed instead.
pub async fn capture(mut input: impl AsyncRead + Unpin, stream: Stream, lines: mpsc::Sender<(Stream, Vec<u8>)>) {
    let mut pending: Vec<u8> = Vec::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = match input.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        for piece in chunk[..read].split_inclusive(|byte| *byte == b'\n') {
            pending.extend_from_slice(piece);
            if pending.last() == Some(&b'\n') {
                pending.pop();
                if lines.send((stream, std::mem::take(&mut pending))).await.is_err() {
                    return;
                }
            }
            while pending.len() > LINE_LIMIT {
                let rest = pending.split_off(LINE_LIMIT);
                let mut line = std::mem::replace(&mut pending, rest);
                line.extend_from_slice(CONTINUES);
                if lines.send((stream, line)).await.is_err() {
                    return;
                }
            }
        }
    }
    if !pending.is_empty() {
        // The receiver may be gone with the whole agent.
        let _ = lines.send((stream, pending)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines_of(input: &[u8]) -> Vec<Vec<u8>> {
        let (sender, mut receiver) = mpsc::channel(4096);
        capture(input, Stream::Output, sender).await;
        let mut lines = Vec::new();
        while let Some((_, line)) = receiver.recv().await {
            lines.push(line);
        }
        lines
    }

    /// SCH-14: no line end at the end, carriage returns, invalid UTF-8: every byte is kept.
    #[tokio::test]
    async fn every_byte_is_kept_whatever_it_is() {
        assert_eq!(lines_of(b"a\r\xff 10%\r 20%\n\ndone").await, [&b"a\r\xff 10%\r 20%"[..], b"", b"done"]);
        assert_eq!(lines_of(b"").await, Vec::<Vec<u8>>::new());
    }

    /// SCH-14: a 2 MB line is split with a mark.
    #[tokio::test]
    async fn a_long_line_is_split_with_a_mark() {
        let long = vec![b'x'; 2 << 20];
        let lines = lines_of(&long).await;
        assert_eq!(lines.len(), (2 << 20) / LINE_LIMIT);
        let bytes: usize = lines.iter().map(|line| line.strip_suffix(CONTINUES).unwrap_or(line).len()).sum();
        assert_eq!(bytes, 2 << 20);
        assert!(lines[0].ends_with(CONTINUES) && !lines.last().unwrap().ends_with(CONTINUES));
    }
}
