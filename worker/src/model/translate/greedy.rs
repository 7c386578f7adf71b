//! Greedy decoding: at each position the likeliest word is fed back.

use super::{Prepared, Translate, Workspace};
use crate::model::linear::Pass;
use crate::train::params::Params;

const GO: u32 = 1;
const EOS: u32 = 2;

impl Translate {
    /// The answer to one line, cut before its first EOS. `source` holds the ids of the line as they stand in it; of a
    /// line longer than the bucket the last ids remain. `bucket` is (S, T).
    pub fn greedy(
        &self,
        params: &Params,
        prepared: &Prepared,
        source: &[u32],
        bucket: (usize, usize),
        workspace: &mut Workspace,
    ) -> Vec<u32> {
        self.greedy_batch(params, prepared, &[source], bucket, workspace).remove(0)
    }

    /// Answers to several lines of one bucket; each is the one that the line would get alone.
    pub fn greedy_batch(
        &self,
        params: &Params,
        prepared: &Prepared,
        sources: &[&[u32]],
        bucket: (usize, usize),
        workspace: &mut Workspace,
    ) -> Vec<Vec<u32>> {
        let (source_len, steps) = bucket;
        let packed = self.packed_projection(params, prepared);
        let Workspace { joined, encoder, decoder, softmax, .. } = workspace;
        joined.fill_sources(sources, source_len, steps);
        let pass = Pass { instructions: self.instructions, params, rows: joined.rows };
        self.encoder.forward(&pass, &prepared.encoder, joined, encoder);
        let encoded = encoder.outputs(source_len);
        self.decoder.start(&pass, &prepared.decoder, &encoder.layers, joined, encoded, decoder);
        let time = &joined.decoder_time;

        let mut answers = vec![Vec::new(); sources.len()];
        let mut ended = vec![false; sources.len()];
        let mut words = vec![GO; sources.len()];
        let block = pass.rows * self.config.size;
        for t in 0..steps {
            self.decoder.embed(&pass, &prepared.decoder, time, &words, t..t + 1, decoder);
            self.decoder.step(&pass, &prepared.decoder, joined, encoded, t, decoder);
            self.decoder.outputs(&pass, &prepared.decoder, time, t..t + 1, decoder);
            let outputs = &decoder.outputs[t * block..(t + 1) * block];
            words = self.projection.best_words(&pass, packed, outputs, softmax);
            for ((word, answer), ended) in words.iter().zip(&mut answers).zip(&mut ended) {
                *ended |= *word == EOS;
                if !*ended {
                    answer.push(*word);
                }
            }
            if ended.iter().all(|ended| *ended) {
                break;
            }
        }
        answers
    }
}
