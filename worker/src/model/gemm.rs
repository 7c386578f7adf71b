//! Matrix products whose bits depend on nothing but the operands.
//!
//! Every element of the result is one chain of fused multiply-adds over k in increasing order, starting from zero or
//! from the present value. So a row does not depend on other rows, on the shape around it, on threads or on the
//! instruction set, and a product may be cut along k by accumulating.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod pack;
mod plain;
#[cfg(test)]
mod tests;

use std::ops::Range;

use super::instructions::{Instructions, Set};
pub use pack::{PackedMatrix, Rows};

/// Columns of a panel of the packed right operand.
pub const PANEL: usize = 32;

/// Rows of the largest register tile of any instruction set.
const TILE_ROWS_MAX: usize = 8;

/// One register tile: `rows` x `columns` of the result, all of k.
struct Tile {
    rows: usize,
    depth: usize,
    /// Element (i, p) lies at `a + i * a_row + p * a_column`.
    a: *const f32,
    a_row: usize,
    a_column: usize,
    /// A panel: element (p, j) lies at `b + p * PANEL + j`.
    b: *const f32,
    c: *mut f32,
    c_step: usize,
    columns: usize,
    accumulate: bool,
}

/// Rows of a register tile, and the function that computes one.
struct TileKernel {
    rows: usize,
    compute: unsafe fn(&Tile),
}

fn tile_kernel(instructions: Instructions) -> TileKernel {
    match instructions.set() {
        #[cfg(target_arch = "x86_64")]
        Set::Avx512 => TileKernel { rows: avx512::ROWS, compute: avx512::tile },
        #[cfg(target_arch = "x86_64")]
        Set::Avx2 => TileKernel { rows: avx2::ROWS, compute: avx2::tile },
        Set::Plain => TileKernel { rows: plain::ROWS, compute: plain::tile },
    }
}

/// Scratch memory of [`multiply_transposed`], kept between calls.
#[derive(Debug, Default)]
pub struct Scratch {
    left: Vec<f32>,
    right: PackedMatrix,
}

/// `c = a b`, or `c += a b` when accumulating. Row i of the result starts at `c[i * c_step]`.
pub fn multiply(
    instructions: Instructions,
    a: Rows<'_>,
    b: &PackedMatrix,
    c: &mut [f32],
    c_step: usize,
    accumulate: bool,
) {
    multiply_panels(instructions, a, b, 0..b.panels(), c, c_step, accumulate);
}

/// [`multiply`] for some panels of `b`: `c` receives their columns only.
///
/// # Panics
/// If the shapes do not fit each other.
pub fn multiply_panels(
    instructions: Instructions,
    a: Rows<'_>,
    b: &PackedMatrix,
    panels: Range<usize>,
    c: &mut [f32],
    c_step: usize,
    accumulate: bool,
) {
    assert_eq!(a.width, b.depth(), "inner sizes of a product differ");
    let Some(a_row) = a.even_step() else { panic!("the left operand of a product must have evenly spaced rows") };
    a.check();
    product(&tile_kernel(instructions), a.count, a.width, b, panels, c, c_step, accumulate, |first| {
        (a.data[first * a_row..].as_ptr(), a_row, 1)
    });
}

/// `c = aᵀ b`, or `c += aᵀ b` when accumulating: the sum over rows k of the outer products of `a` and `b`.
///
/// # Panics
/// If the shapes do not fit each other.
pub fn multiply_transposed(
    instructions: Instructions,
    a: Rows<'_>,
    b: Rows<'_>,
    c: &mut [f32],
    c_step: usize,
    accumulate: bool,
    scratch: &mut Scratch,
) {
    assert_eq!(a.count, b.count, "inner sizes of a product differ");
    let kernel = tile_kernel(instructions);
    let Scratch { left, right } = scratch;
    right.pack(b);
    pack::pack_tiles(a, kernel.rows, left);
    let (depth, rows) = (a.count, kernel.rows);
    let panels = 0..right.panels();
    product(&kernel, a.width, depth, right, panels, c, c_step, accumulate, |first| {
        (left[first * depth..].as_ptr(), 1, rows)
    });
}

/// Runs all tiles; `left(i)` gives start, row step and column step of the left operand from row i on.
#[allow(clippy::too_many_arguments)]
fn product(
    kernel: &TileKernel,
    rows: usize,
    depth: usize,
    b: &PackedMatrix,
    panels: Range<usize>,
    c: &mut [f32],
    c_step: usize,
    accumulate: bool,
    left: impl Fn(usize) -> (*const f32, usize, usize),
) {
    let columns = (panels.end * PANEL).min(b.columns()).saturating_sub(panels.start * PANEL);
    if rows == 0 || columns == 0 {
        return;
    }
    assert!(columns <= c_step && (rows - 1) * c_step + columns <= c.len(), "the result of a product does not fit");
    assert!(kernel.rows <= TILE_ROWS_MAX);
    // A panel of the right operand stays in the nearest cache while all rows pass it.
    for panel in panels.clone() {
        let column = (panel - panels.start) * PANEL;
        for first in (0..rows).step_by(kernel.rows) {
            let (a, a_row, a_column) = left(first);
            let tile = Tile {
                rows: kernel.rows.min(rows - first),
                depth,
                a,
                a_row,
                a_column,
                b: b.panel(panel).as_ptr(),
                c: c[first * c_step + column..].as_mut_ptr(),
                c_step,
                columns: PANEL.min(columns - column),
                accumulate,
            };
            // SAFETY: the kernel belongs to instructions that this machine has; the left operand was checked or packed
            // by the caller, the panel holds `depth * PANEL` values, and the result was checked above.
            unsafe { (kernel.compute)(&tile) };
        }
    }
}
