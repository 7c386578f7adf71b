//! The one fixed binary tree over micro-batches that every sum of a step follows.
//!
//! A node over k leaves splits at the largest power of two below k. The shape depends on the number of micro-batches
//! only, never on ranks, so the same additions happen for any number of workers (`DESIGN.md`, "Reduction").

use std::ops::Range;

/// Where a node over `leaves` (at least 2) splits: the largest power of two below its length.
pub fn split(leaves: &Range<u32>) -> u32 {
    let count = leaves.end - leaves.start;
    debug_assert!(count >= 2);
    leaves.start + (1 << (31 - (count - 1).leading_zeros()))
}

/// The largest subtrees of the tree over `0..total` that lie wholly inside `owned`, from left to right.
pub fn subtrees(total: u32, owned: &Range<u32>) -> Vec<Range<u32>> {
    fn visit(node: Range<u32>, owned: &Range<u32>, out: &mut Vec<Range<u32>>) {
        if node.end <= owned.start || owned.end <= node.start || node.is_empty() {
            return;
        }
        if owned.start <= node.start && node.end <= owned.end {
            out.push(node);
            return;
        }
        let middle = split(&node);
        visit(node.start..middle, owned, out);
        visit(middle..node.end, owned, out);
    }
    let mut out = Vec::new();
    visit(0..total, owned, &mut out);
    out
}

/// Adds parts along the tree. `take` gives the value of a subtree that is known, or nothing, in which case its two
/// halves are added.
pub fn fold<T>(
    node: Range<u32>,
    take: &mut impl FnMut(&Range<u32>) -> Option<T>,
    add: &mut impl FnMut(&mut T, T),
) -> T {
    if let Some(value) = take(&node) {
        return value;
    }
    assert!(node.end - node.start > 1, "leaf {} of the reduction tree is missing", node.start);
    let middle = split(&node);
    let mut left = fold(node.start..middle, take, add);
    let right = fold(middle..node.end, take, add);
    add(&mut left, right);
    left
}

/// Which contiguous micro-batches each rank owns: the largest share is as small as can be; among such cuts the one
/// with the fewest subtrees to send, the earliest cut points first.
///
/// # Panics
/// If there are more ranks than micro-batches: refused when the job is submitted.
pub fn shares(total: u32, ranks: u32) -> Vec<Range<u32>> {
    assert!(1 <= ranks && ranks <= total, "{ranks} ranks cannot share {total} micro-batches");
    let most = total.div_ceil(ranks);
    let (n, v) = (ranks as usize, total as usize);
    // cost[r][start]: fewest subtrees when ranks r.. share micro-batches start..
    let mut cost = vec![vec![usize::MAX; v + 1]; n + 1];
    let mut next = vec![vec![0u32; v + 1]; n];
    cost[n][v] = 0;
    for rank in (0..n).rev() {
        for start in 0..total {
            for end in start + 1..=total.min(start + most) {
                let rest = cost[rank + 1][end as usize];
                if rest == usize::MAX {
                    continue;
                }
                let here = rest + subtrees(total, &(start..end)).len();
                if here < cost[rank][start as usize] {
                    cost[rank][start as usize] = here;
                    next[rank][start as usize] = end;
                }
            }
        }
    }
    let mut start = 0;
    (0..n)
        .map(|rank| {
            let end = next[rank][start as usize];
            let share = start..end;
            start = end;
            share
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_splits_at_the_largest_power_of_two_below_its_length() {
        assert_eq!(split(&(0..2)), 1);
        assert_eq!(split(&(0..3)), 2);
        assert_eq!(split(&(0..8)), 4);
        assert_eq!(split(&(0..9)), 8);
        assert_eq!(split(&(4..8)), 6);
    }

    #[test]
    fn shares_are_balanced_and_follow_subtrees() {
        assert_eq!(shares(8, 1), vec![0..8]);
        assert_eq!(shares(8, 2), vec![0..4, 4..8]);
        assert_eq!(shares(8, 4), vec![0..2, 2..4, 4..6, 6..8]);
        assert_eq!(shares(8, 5), vec![0..1, 1..2, 2..4, 4..6, 6..8]);
        for total in 1..=20 {
            for ranks in 1..=total {
                let cut = shares(total, ranks);
                assert_eq!(cut.first().map(|share| share.start), Some(0));
                assert_eq!(cut.last().map(|share| share.end), Some(total));
                assert!(cut.windows(2).all(|pair| pair[0].end == pair[1].start));
                assert!(cut.iter().all(|share| !share.is_empty() && share.end - share.start <= total.div_ceil(ranks)));
            }
        }
    }

    #[test]
    fn the_sum_does_not_depend_on_how_the_leaves_are_shared() {
        for total in 1..=17u32 {
            let leaf = |index: u32| format!("{index}");
            let join = |left: &mut String, right: String| *left = format!("({left}+{right})");
            let whole = fold(0..total, &mut |node| (node.len() == 1).then(|| leaf(node.start)), &mut join.clone());
            for ranks in 1..=total {
                let parts: Vec<(Range<u32>, String)> = shares(total, ranks)
                    .iter()
                    .flat_map(|share| subtrees(total, share))
                    .map(|node| {
                        let sum = fold(node.clone(), &mut |n| (n.len() == 1).then(|| leaf(n.start)), &mut join.clone());
                        (node, sum)
                    })
                    .collect();
                let find = |node: &Range<u32>| parts.iter().find(|part| part.0 == *node).map(|part| part.1.clone());
                assert_eq!(fold(0..total, &mut find.clone(), &mut join.clone()), whole, "{total} over {ranks}");
            }
        }
    }
}
