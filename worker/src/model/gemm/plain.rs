//! Tiles without special instructions: the reference of the others, and the path of other processors.

use super::{PANEL, Tile};

pub const ROWS: usize = 4;

/// # Safety
/// All pointers of the tile are valid for its sizes.
pub unsafe fn tile(tile: &Tile) {
    for row in 0..tile.rows {
        let mut sums = [0.0f32; PANEL];
        // SAFETY: every index below lies inside the tile, as the caller promises.
        unsafe {
            let c = std::slice::from_raw_parts_mut(tile.c.add(row * tile.c_step), tile.columns);
            if tile.accumulate {
                sums[..tile.columns].copy_from_slice(c);
            }
            for p in 0..tile.depth {
                let left = *tile.a.add(row * tile.a_row + p * tile.a_column);
                let right = std::slice::from_raw_parts(tile.b.add(p * PANEL), PANEL);
                for (sum, right) in sums.iter_mut().zip(right) {
                    *sum = left.mul_add(*right, *sum);
                }
            }
            c.copy_from_slice(&sums[..tile.columns]);
        }
    }
}
