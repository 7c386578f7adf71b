//! How much the state holds at most: every list in it has an end.

use coord_common::Millis;
use coord_common::backoff::Backoff;

/// Jobs in the state, waiting, active and finished together.
pub const JOBS_MAX: usize = 200_000;
pub const WORKERS_MAX: usize = 10_000;
/// Lost workers that are still shown; the one silent for longest goes first.
pub const LOST_WORKERS_KEPT: usize = 100;
/// Records of checkpoints per job, the newest.
pub const CHECKPOINTS_KEPT: usize = 50;
/// Interruptions per job, the newest.
pub const INTERRUPTIONS_KEPT: usize = 50;
/// The platform's lines per job; the last one of them and the job's end are always kept.
pub const EVENTS_MAX: usize = 1_000;
/// Generations in a row that end by no fault of the program and without one new step before the job fails.
pub const IDLE_GENERATIONS_MAX: u32 = 20;
/// Longest text that a fact carries into the state.
pub const TAIL_BYTES_MAX: usize = 8 * 1024;
pub const MESSAGE_BYTES_MAX: usize = 1_024;

/// Before the program is started again after it ended by its own fault; the first restart waits for nothing.
pub const RESTART_BACKOFF: Backoff = Backoff { first: Millis(1_000), most: Millis(60_000) };
/// Before a worker that refused a launch is asked again by the same job.
pub const REFUSAL_BACKOFF: Backoff = Backoff { first: Millis(10_000), most: Millis(600_000) };
/// For how long after such a wait the next refusal still counts as one in a row.
pub const REFUSALS_REMEMBERED: Millis = Millis(600_000);

/// At most `most` bytes of the end of `text`, cut between characters.
pub fn last_bytes(text: &str, most: usize) -> &str {
    let mut start = text.len().saturating_sub(most);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// At most `most` bytes of the start of `text`, cut between characters.
pub fn first_bytes(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(first_bytes("aé", 2), "a");
        assert_eq!(last_bytes("éa", 2), "a");
        assert_eq!(first_bytes("ab", 9), "ab");
        assert_eq!(last_bytes("ab", 9), "ab");
    }
}
