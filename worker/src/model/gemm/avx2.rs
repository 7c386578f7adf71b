//! Register tiles of 6 x 16 with AVX2 and FMA, two beside each other in a panel.

use std::arch::x86_64::*;

use super::{PANEL, Tile};

pub const ROWS: usize = 6;

const HALF: usize = PANEL / 2;

/// # Safety
/// The machine has AVX2 and FMA, and all pointers of the tile are valid for its sizes.
#[target_feature(enable = "avx2,fma")]
pub unsafe fn tile(tile: &Tile) {
    for first in (0..tile.columns).step_by(HALF) {
        let columns = HALF.min(tile.columns - first);
        // SAFETY: passed on from the caller.
        unsafe {
            match tile.rows {
                1 => rows::<1>(tile, first, columns),
                2 => rows::<2>(tile, first, columns),
                3 => rows::<3>(tile, first, columns),
                4 => rows::<4>(tile, first, columns),
                5 => rows::<5>(tile, first, columns),
                _ => rows::<6>(tile, first, columns),
            }
        }
    }
}

/// All bits set in the first `columns` lanes.
#[target_feature(enable = "avx2")]
fn mask(columns: usize) -> __m256i {
    let lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_cmpgt_epi32(_mm256_set1_epi32(columns as i32), lane)
}

#[target_feature(enable = "avx2,fma")]
unsafe fn rows<const N: usize>(tile: &Tile, first: usize, columns: usize) {
    let (low, high) = (mask(columns.min(8)), mask(columns.saturating_sub(8)));
    let mut sums = [[_mm256_setzero_ps(); 2]; N];
    // SAFETY: masked lanes are neither read nor written; everything else lies inside the tile, as the caller promises.
    unsafe {
        if tile.accumulate {
            for (row, sum) in sums.iter_mut().enumerate() {
                let c = tile.c.add(row * tile.c_step + first);
                *sum = [_mm256_maskload_ps(c, low), _mm256_maskload_ps(c.wrapping_add(8), high)];
            }
        }
        let (mut a, mut b) = (tile.a, tile.b.add(first));
        for _ in 0..tile.depth {
            let right = [_mm256_load_ps(b), _mm256_load_ps(b.add(8))];
            for (row, sum) in sums.iter_mut().enumerate() {
                let left = _mm256_set1_ps(*a.add(row * tile.a_row));
                sum[0] = _mm256_fmadd_ps(left, right[0], sum[0]);
                sum[1] = _mm256_fmadd_ps(left, right[1], sum[1]);
            }
            a = a.wrapping_add(tile.a_column);
            b = b.wrapping_add(PANEL);
        }
        for (row, sum) in sums.iter().enumerate() {
            let c = tile.c.add(row * tile.c_step + first);
            _mm256_maskstore_ps(c, low, sum[0]);
            _mm256_maskstore_ps(c.wrapping_add(8), high, sum[1]);
        }
    }
}
