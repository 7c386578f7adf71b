//! What a rank says in each step's reduction beside its gradients.

use super::gradient::Sums;
use super::tree;

/// Leaves of the micro-batches that a rank owns, and whether it was asked to stop.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Note {
    pub leaves: Vec<(u32, Sums)>,
    pub stop: bool,
}

const LEAF_BYTES: usize = 28;

impl Note {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![u8::from(self.stop)];
        for (micro, sums) in &self.leaves {
            out.extend_from_slice(&micro.to_le_bytes());
            out.extend_from_slice(&sums.loss.to_le_bytes());
            out.extend_from_slice(&sums.samples.to_le_bytes());
            out.extend_from_slice(&sums.tokens.to_le_bytes());
        }
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (stop, leaves) = bytes.split_first()?;
        let leaves = leaves.chunks(LEAF_BYTES).map(|leaf| {
            let number = |at: usize| Some(u64::from_le_bytes(leaf.get(at..at + 8)?.try_into().ok()?));
            let micro = u32::from_le_bytes(leaf.get(..4)?.try_into().ok()?);
            Some((micro, Sums { loss: f64::from_bits(number(4)?), samples: number(12)?, tokens: number(20)? }))
        });
        Some(Self { leaves: leaves.collect::<Option<_>>()?, stop: *stop != 0 })
    }

    pub fn samples(&self) -> u64 {
        self.leaves.iter().map(|(_, sums)| sums.samples).sum()
    }
}

/// The sums of a whole step, added along the tree.
pub fn fold(micro_batches: u32, notes: &[Note]) -> Sums {
    let leaves: Vec<&(u32, Sums)> = notes.iter().flat_map(|note| &note.leaves).collect();
    let find = |micro: u32| leaves.iter().find(|leaf| leaf.0 == micro).map(|leaf| leaf.1);
    tree::fold(
        0..micro_batches,
        &mut |node| if node.end - node.start == 1 { find(node.start) } else { None },
        &mut |left, right| left.add(&right),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_survives_the_wire_and_the_sum_ignores_who_said_it() {
        let leaf = |micro: u32| (micro, Sums { loss: 0.1 * f64::from(micro + 1), samples: 2, tokens: 7 });
        let one = Note { leaves: (0..4).map(leaf).collect(), stop: false };
        let two = [
            Note { leaves: (0..1).map(leaf).collect(), stop: true },
            Note { leaves: (1..4).map(leaf).collect(), stop: false },
        ];
        assert_eq!(Note::decode(&one.encode()), Some(one.clone()));
        assert_eq!(Note::decode(&two[0].encode()), Some(two[0].clone()));
        assert_eq!(fold(4, &[one]), fold(4, &two));
        assert_eq!(Note::decode(&[]), None);
        assert_eq!(Note::decode(&[0, 1, 2]), None);
    }
}
