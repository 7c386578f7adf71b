//! How a sum is cut among its owners: each rank finishes one chunk of the dense part and every N-th row.

use std::ops::Range;

use super::Part;
use crate::train::gradient::{Gradient, RowGradient};
use crate::train::tree;

/// The dense elements that `rank` finishes.
pub fn chunk(elements: usize, rank: u32, world_size: u32) -> Range<usize> {
    let cut = |rank: u32| (elements as u128 * u128::from(rank) / u128::from(world_size)) as usize;
    cut(rank)..cut(rank + 1)
}

/// The part of a sum that `rank` finishes: its chunk, and the rows whose id leaves `rank` when divided by the world
/// size (frequent ids are the small ones, so neighbours must not share an owner).
pub fn cut(sum: &Gradient, rank: u32, world_size: u32) -> Gradient {
    let dense = sum.dense[chunk(sum.dense.len(), rank, world_size)].to_vec();
    let rows = sum
        .rows
        .iter()
        .map(|table| {
            let mut out = RowGradient::new(table.width);
            for (position, &row) in table.rows.iter().enumerate() {
                if row % world_size == rank {
                    out.rows.push(row);
                    out.values.extend_from_slice(table.row(position));
                }
            }
            out
        })
        .collect();
    Gradient { dense, rows }
}

/// Puts the finished cuts of all ranks together again.
pub fn join(cuts: Vec<Gradient>) -> Gradient {
    let tables = cuts.first().map_or(0, |first| first.rows.len());
    let mut dense = Vec::with_capacity(cuts.iter().map(|cut| cut.dense.len()).sum());
    for cut in &cuts {
        dense.extend_from_slice(&cut.dense);
    }
    let rows = (0..tables)
        .map(|table| {
            let mut order: Vec<(u32, usize, usize)> = cuts
                .iter()
                .enumerate()
                .flat_map(|(from, cut)| {
                    cut.rows[table].rows.iter().enumerate().map(move |(position, &row)| (row, from, position))
                })
                .collect();
            order.sort_unstable();
            let mut out = RowGradient::new(cuts[0].rows[table].width);
            for (row, from, position) in order {
                out.rows.push(row);
                out.values.extend_from_slice(cuts[from].rows[table].row(position));
            }
            out
        })
        .collect();
    Gradient { dense, rows }
}

/// Adds parts that together cover the tree.
pub fn fold_parts(micro_batches: u32, parts: Vec<Part>) -> Gradient {
    let mut parts: Vec<Option<Part>> = parts.into_iter().map(Some).collect();
    tree::fold(
        0..micro_batches,
        &mut |node| {
            let found = parts.iter_mut().find(|part| part.as_ref().is_some_and(|(range, _)| range == node))?;
            found.take().map(|(_, gradient)| gradient)
        },
        &mut |left, right| left.add(&right),
    )
}
