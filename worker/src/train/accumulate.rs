//! Adds the gradients of one rank's micro-batches along the reduction tree, as soon as both halves of a node are there.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::gradient::Gradient;
use super::tree::split;

/// Shared by the threads of a rank. Which thread adds, and when, does not change a bit: the tree is fixed.
pub struct Accumulator {
    micro_batches: u32,
    owned: Range<u32>,
    /// Finished nodes, by first leaf.
    nodes: Mutex<BTreeMap<u32, (Range<u32>, Gradient)>>,
}

impl Accumulator {
    pub fn new(micro_batches: u32, owned: Range<u32>) -> Self {
        Self { micro_batches, owned, nodes: Mutex::new(BTreeMap::new()) }
    }

    fn nodes(&self) -> MutexGuard<'_, BTreeMap<u32, (Range<u32>, Gradient)>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, micro_batch: u32, gradient: Gradient) {
        debug_assert!(self.owned.contains(&micro_batch));
        let mut node = micro_batch..micro_batch + 1;
        let mut sum = gradient;
        while let Some(parent) = self.parent(&node) {
            let middle = split(&parent);
            let sibling = if node.start == parent.start { middle } else { parent.start };
            let mut nodes = self.nodes();
            let ready = nodes.get(&sibling).is_some_and(|(range, _)| range.end == parent.end || range.end == middle);
            if !ready {
                nodes.insert(node.start, (node, sum));
                return;
            }
            let (_, other) = nodes.remove(&sibling).expect("looked up under the same lock");
            drop(nodes);
            sum = if node.start == parent.start {
                sum.add(&other);
                sum
            } else {
                let mut left = other;
                left.add(&sum);
                left
            };
            node = parent;
        }
        self.nodes().insert(node.start, (node, sum));
    }

    /// The node above, if it lies wholly inside what this rank owns.
    fn parent(&self, node: &Range<u32>) -> Option<Range<u32>> {
        let mut above = 0..self.micro_batches;
        if above == *node {
            return None;
        }
        loop {
            let middle = split(&above);
            let child = if node.start < middle { above.start..middle } else { middle..above.end };
            if child == *node {
                let inside = self.owned.start <= above.start && above.end <= self.owned.end;
                return inside.then_some(above);
            }
            above = child;
        }
    }

    /// The largest subtrees of this rank, from left to right. Call when every owned micro-batch was added.
    pub fn finish(self) -> Vec<(Range<u32>, Gradient)> {
        self.nodes.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::gradient::RowGradient;
    use crate::train::tree::subtrees;

    fn leaf(value: f32) -> Gradient {
        Gradient {
            dense: vec![value, value * 3.0],
            rows: vec![RowGradient { width: 1, rows: vec![value as u32 % 3], values: vec![value] }],
        }
    }

    #[test]
    fn the_order_of_arrival_does_not_change_a_bit() {
        for (total, owned) in [(8, 0..8), (8, 3..8), (7, 0..5), (11, 2..9), (1, 0..1)] {
            let values: Vec<f32> = (0..total).map(|index| 1.0 / (index as f32 + 3.0)).collect();
            let forward = Accumulator::new(total, owned.clone());
            let backward = Accumulator::new(total, owned.clone());
            for micro in owned.clone() {
                forward.add(micro, leaf(values[micro as usize]));
            }
            for micro in owned.clone().rev() {
                backward.add(micro, leaf(values[micro as usize]));
            }
            let forward = forward.finish();
            assert_eq!(forward, backward.finish());
            let nodes: Vec<Range<u32>> = forward.iter().map(|(node, _)| node.clone()).collect();
            assert_eq!(nodes, subtrees(total, &owned));
        }
    }
}
