//! Growing waits between tries: `first * 2^(tries - 1)`, at most `most`, spread by the caller's jitter.

use crate::time::Millis;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    pub first: Millis,
    pub most: Millis,
}

impl Backoff {
    /// The wait after `tries` failures in a row: none after none, then doubling up to the limit.
    pub fn wait(self, tries: u32) -> Millis {
        let Some(doublings) = tries.checked_sub(1) else { return Millis::ZERO };
        let factor = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
        Millis(self.first.0.saturating_mul(factor).min(self.most.0))
    }

    /// The same, shortened by up to half: `jitter` is the caller's random number from 0 to 1, so that many callers that
    /// failed together do not come back together.
    pub fn wait_with_jitter(self, tries: u32, jitter: f64) -> Millis {
        let whole = self.wait(tries);
        let kept = 1.0 - jitter.clamp(0.0, 1.0) / 2.0;
        Millis((whole.0 as f64 * kept).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff { first: Millis(100), most: Millis(1_000) };

    #[test]
    fn waits_double_up_to_the_limit_for_any_number_of_tries() {
        let waits: Vec<u64> = [0, 1, 2, 3, 4, 5, 64, 65, u32::MAX].map(|tries| BACKOFF.wait(tries).0).to_vec();
        assert_eq!(waits, [0, 100, 200, 400, 800, 1_000, 1_000, 1_000, 1_000]);
    }

    #[test]
    fn jitter_takes_away_at_most_half() {
        assert_eq!(BACKOFF.wait_with_jitter(2, 0.0), Millis(200));
        assert_eq!(BACKOFF.wait_with_jitter(2, 1.0), Millis(100));
        assert_eq!(BACKOFF.wait_with_jitter(2, 7.0), Millis(100));
    }
}
