//! Candidates of the sampled softmax: log-uniform over ids, each at most once, one list per decoder position.
//!
//! As TensorFlow's `log_uniform_candidate_sampler` with `unique`: P(id) = ln((id + 2) / (id + 1)) / ln(vocabulary + 1);
//! ids are drawn until enough differ, and the expected count of an id is 1 - (1 - P)^tries.

use serde::{Deserialize, Serialize};

use super::elementwise::{exp_f64, ln, ln_of_ratio};
use crate::random::{Keyed, Purpose};

/// The candidates of one decoder position.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidates {
    /// In the order in which they were drawn.
    pub ids: Vec<u32>,
    /// How many draws it took to find them.
    pub tries: u64,
}

/// The candidates of all positions of one step, the same for all micro-batches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Negatives {
    pub vocabulary: u32,
    pub positions: Vec<Candidates>,
}

impl Negatives {
    /// A function of (seed, step, position) only. Needs `samples` < `vocabulary`; else the softmax is a full one and
    /// there are no candidates.
    pub fn draw(seed: u64, step: u64, positions: usize, samples: usize, vocabulary: usize) -> Self {
        if samples >= vocabulary || samples == 0 {
            return Self { vocabulary: vocabulary as u32, positions: Vec::new() };
        }
        let range = ln((vocabulary + 1) as f64);
        let mut drawn = vec![false; vocabulary];
        let positions = (0..positions)
            .map(|position| {
                let numbers = Keyed::new(seed, Purpose::Negatives, step, position as u64);
                let (mut ids, mut tries) = (Vec::with_capacity(samples), 0);
                while ids.len() < samples {
                    let value = exp_f64(numbers.unit_f64(tries) * range) as usize - 1;
                    let id = value % vocabulary;
                    if !std::mem::replace(&mut drawn[id], true) {
                        ids.push(id as u32);
                    }
                    tries += 1;
                }
                for id in &ids {
                    drawn[*id as usize] = false;
                }
                Candidates { ids, tries }
            })
            .collect();
        Self { vocabulary: vocabulary as u32, positions }
    }

    /// Logarithm of how often an id is expected among the candidates of a position; subtracted from its logit.
    pub fn log_expected_count(&self, position: usize, id: u32) -> f32 {
        let once = ln_of_ratio(1.0, 2.0 * f64::from(id) + 3.0) / ln(f64::from(self.vocabulary) + 1.0);
        let never = power(1.0 - once, self.positions[position].tries);
        ln(1.0 - never) as f32
    }
}

/// By repeated squaring: the same bits everywhere.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_distinct_and_depend_on_seed_step_and_position_only() {
        let first = Negatives::draw(7, 3, 4, 64, 500);
        assert_eq!(first, Negatives::draw(7, 3, 4, 64, 500));
        assert_eq!(first.positions[..2], Negatives::draw(7, 3, 2, 64, 500).positions[..]);
        assert_ne!(first.positions, Negatives::draw(7, 4, 4, 64, 500).positions);
        assert_ne!(first.positions[0], first.positions[1]);
        for list in &first.positions {
            let mut ids = list.ids.clone();
            ids.sort_unstable();
            ids.dedup();
            assert!(ids.len() == 64 && ids.iter().all(|id| *id < 500) && list.tries >= 64);
        }
    }

    #[test]
    fn the_expected_count_is_how_often_an_id_is_drawn() {
        let (positions, vocabulary) = (20_000, 50);
        let drawn = Negatives::draw(1, 0, positions, 8, vocabulary);
        for id in [0u32, 1, 5, 20, 49] {
            let seen = drawn.positions.iter().filter(|list| list.ids.contains(&id)).count();
            let expected: f64 = (0..positions).map(|p| f64::from(drawn.log_expected_count(p, id)).exp()).sum();
            // TensorFlow's formula is an approximation: tries are not independent of the ids found.
            assert!((seen as f64 / expected - 1.0).abs() < 0.08, "{id}: {seen} {expected}");
        }
    }

    #[test]
    fn without_fewer_samples_than_words_there_are_no_candidates() {
        assert!(Negatives::draw(1, 0, 5, 50, 50).positions.is_empty());
        assert!(Negatives::draw(1, 0, 5, 0, 50).positions.is_empty());
    }
}
