//! The last output of a replica: what goes into the fact of its end.

use std::collections::VecDeque;

use crate::launch::Stream;

pub const TAIL_BYTES: usize = 8 << 10;
/// What each stream is sure of. The two arrive through pipes of their own, so a flood of output that was written before
/// the last error may be read after it, and must not push it out.
const SURE_BYTES: usize = TAIL_BYTES / 2;

/// The end of one stream, as (number of the line over both streams, line with its end).
#[derive(Debug, Default)]
struct Lines {
    lines: VecDeque<(u64, Vec<u8>)>,
    bytes: usize,
}

impl Lines {
    /// Keeps at most [`TAIL_BYTES`]: the oldest line is cut at its front.
    fn push(&mut self, number: u64, text: &[u8]) {
        let mut line = text[text.len().saturating_sub(TAIL_BYTES - 1)..].to_vec();
        line.push(b'\n');
        self.bytes += line.len();
        self.lines.push_back((number, line));
        self.shorten(TAIL_BYTES);
    }

    fn shorten(&mut self, most: usize) {
        while let Some(surplus) = self.bytes.checked_sub(most).filter(|surplus| *surplus > 0)
            && let Some((_, oldest)) = self.lines.front_mut()
        {
            let cut = surplus.min(oldest.len());
            oldest.drain(..cut);
            self.bytes -= cut;
            if oldest.is_empty() {
                self.lines.pop_front();
            }
        }
    }
}

#[derive(Debug, Default)]
pub struct Tail {
    output: Lines,
    error: Lines,
    count: u64,
}

impl Tail {
    pub fn push(&mut self, stream: Stream, text: &[u8]) {
        self.count += 1;
        let lines = if stream == Stream::Error { &mut self.error } else { &mut self.output };
        lines.push(self.count, text);
    }

    /// At most [`TAIL_BYTES`], in the order in which the lines arrived; what one stream leaves free the other may have.
    pub fn text(&mut self) -> String {
        let room = |other: &Lines| TAIL_BYTES - other.bytes.min(SURE_BYTES);
        let (for_output, for_error) = (room(&self.error), room(&self.output));
        self.error.shorten(for_error);
        self.output.shorten(for_output.min(TAIL_BYTES - self.error.bytes));
        let mut lines: Vec<&(u64, Vec<u8>)> = self.output.lines.iter().chain(&self.error.lines).collect();
        lines.sort_by_key(|(number, _)| *number);
        let bytes: Vec<u8> = lines.into_iter().flat_map(|(_, line)| line).copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_output_does_not_push_out_the_last_error() {
        let mut tail = Tail::default();
        tail.push(Stream::Error, b"the disk is full");
        for _ in 0..3 {
            tail.push(Stream::Output, &[b'x'; 10_000]);
        }
        let text = tail.text();
        assert!(text.starts_with("the disk is full\nx") && text.ends_with("x\n"), "{text}");
        assert_eq!(text.len(), TAIL_BYTES);
    }

    #[test]
    fn lines_of_both_streams_stand_in_the_order_of_their_arrival() {
        let mut tail = Tail::default();
        tail.push(Stream::Output, b"one");
        tail.push(Stream::Error, b"two");
        tail.push(Stream::Output, b"three");
        assert_eq!(tail.text(), "one\ntwo\nthree\n");
    }

    #[test]
    fn one_stream_alone_has_all_the_room_and_both_share_it() {
        let mut tail = Tail::default();
        for _ in 0..100 {
            tail.push(Stream::Output, &[b'o'; 999]);
        }
        assert_eq!(tail.text().len(), TAIL_BYTES);
        for _ in 0..100 {
            tail.push(Stream::Error, &[b'e'; 999]);
        }
        let text = tail.text();
        let count = |letter| text.bytes().filter(|byte| *byte == letter).count();
        assert!(text.len() == TAIL_BYTES && count(b'o').abs_diff(count(b'e')) < 20, "{} {}", count(b'o'), count(b'e'));
    }
}
