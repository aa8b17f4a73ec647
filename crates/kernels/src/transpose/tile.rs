//! Two-dimensional transposition of square tiles in 128-bit registers.
//!
//! A tile of `n` by `n` elements, `n * size = 16` bytes, is `n` vectors. Interleaving vector `i` with vector `i + n/2`,
//! `log2(n)` times over, transposes it: each round is a perfect shuffle of the rows, and the same code serves 1-, 2-, 4- and
//! 8-byte elements on SSE2 and NEON, which every supported x86-64 and aarch64 CPU has.

#![expect(unsafe_code, reason = "strided loads and stores of tiles inside a checked block")]

/// Transposes a block: `y[b * y_stride + a * SIZE]` becomes `x[a * SIZE + b * x_stride]`'s element with the roles of `a` and
/// `b` exchanged, that is `y` at (row `a`, column `b`) is `x` at (row `b`, column `a`).
///
/// # Safety
/// `x` must be readable at `b * x_stride + a * SIZE` and `y` writable at `a * y_stride + b * SIZE`, for `SIZE` bytes each,
/// for all `a < columns` and `b < rows`; the two must not overlap.
pub(super) unsafe fn transpose<const SIZE: usize>(
    x: *const u8,
    x_stride: isize,
    y: *mut u8,
    y_stride: isize,
    rows: usize,
    columns: usize,
) {
    if y_stride == rows as isize * SIZE as isize {
        // Few rows side by side, as the channels of a picture: a loop whose strides the compiler knows.
        // SAFETY: the caller's promise, passed on.
        unsafe {
            match rows {
                2 => return interleave::<SIZE, 2>(x, x_stride, y, columns),
                3 => return interleave::<SIZE, 3>(x, x_stride, y, columns),
                4 => return interleave::<SIZE, 4>(x, x_stride, y, columns),
                _ => {}
            }
        }
    }
    let lanes = 16 / SIZE;
    let full_rows = if vector::AVAILABLE { rows / lanes * lanes } else { 0 };
    let full_columns = if vector::AVAILABLE { columns / lanes * lanes } else { 0 };
    // A cache line of the input holds 64 / SIZE columns: take them all before moving on to other rows' lines.
    let line = 64 / SIZE;
    let mut column = 0;
    while column < full_columns {
        let column_end = (column + line).min(full_columns);
        let mut row = 0;
        while row < full_rows {
            let mut inner = column;
            while inner < column_end {
                // SAFETY: the tile lies inside the block described by the caller.
                unsafe {
                    vector::tile::<SIZE>(
                        x.offset(row as isize * x_stride).add(inner * SIZE),
                        x_stride,
                        y.offset(inner as isize * y_stride).add(row * SIZE),
                        y_stride,
                    );
                }
                inner += lanes;
            }
            row += lanes;
        }
        column = column_end;
    }
    // SAFETY: both parts lie inside the block described by the caller.
    unsafe {
        scalar::<SIZE>(x, x_stride, y, y_stride, full_rows..rows, 0..full_columns);
        scalar::<SIZE>(x, x_stride, y, y_stride, 0..rows, full_columns..columns);
    }
}

/// `ROWS` rows whose transposition leaves no gap in the output.
///
/// # Safety
/// As for [`transpose`].
unsafe fn interleave<const SIZE: usize, const ROWS: usize>(
    x: *const u8,
    x_stride: isize,
    y: *mut u8,
    columns: usize,
) {
    // SAFETY: the output is `columns` groups of `ROWS` elements side by side.
    let y = unsafe { std::slice::from_raw_parts_mut(y.cast::<[[u8; SIZE]; ROWS]>(), columns) };
    // SAFETY: each row is `columns` elements of the input side by side.
    let x: [&[[u8; SIZE]]; ROWS] = std::array::from_fn(|row| unsafe {
        std::slice::from_raw_parts(x.offset(row as isize * x_stride).cast(), columns)
    });
    for (column, y) in y.iter_mut().enumerate() {
        for row in 0..ROWS {
            y[row] = x[row][column];
        }
    }
}

/// The part `rows` by `columns`, element by element.
///
/// # Safety
/// As for [`transpose`].
unsafe fn scalar<const SIZE: usize>(
    x: *const u8,
    x_stride: isize,
    y: *mut u8,
    y_stride: isize,
    rows: std::ops::Range<usize>,
    columns: std::ops::Range<usize>,
) {
    for column in columns {
        for row in rows.clone() {
            // SAFETY: the element lies inside the block described by the caller.
            unsafe {
                let from = x.offset(row as isize * x_stride).add(column * SIZE).cast::<[u8; SIZE]>();
                let to = y.offset(column as isize * y_stride).add(row * SIZE).cast::<[u8; SIZE]>();
                *to = *from;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod vector {
    use std::arch::x86_64::{
        __m128i, _mm_loadu_si128, _mm_setzero_si128, _mm_storeu_si128, _mm_unpackhi_epi8, _mm_unpackhi_epi16,
        _mm_unpackhi_epi32, _mm_unpackhi_epi64, _mm_unpacklo_epi8, _mm_unpacklo_epi16, _mm_unpacklo_epi32,
        _mm_unpacklo_epi64,
    };

    pub(super) const AVAILABLE: bool = true;

    #[inline]
    #[target_feature(enable = "sse2")]
    fn interleave<const SIZE: usize>(a: __m128i, b: __m128i) -> (__m128i, __m128i) {
        match SIZE {
            1 => (_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b)),
            2 => (_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b)),
            4 => (_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b)),
            _ => (_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b)),
        }
    }

    /// One tile of `16 / SIZE` by `16 / SIZE` elements.
    ///
    /// # Safety
    /// As for [`super::transpose`].
    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) unsafe fn tile<const SIZE: usize>(x: *const u8, x_stride: isize, y: *mut u8, y_stride: isize) {
        let lanes = const { 16 / SIZE };
        let mut rows = [_mm_setzero_si128(); 16];
        for (row, vector) in rows[..lanes].iter_mut().enumerate() {
            // SAFETY: row `row` of the tile is 16 readable bytes.
            *vector = unsafe { _mm_loadu_si128(x.offset(row as isize * x_stride).cast()) };
        }
        let mut round = 1;
        while round < lanes {
            let before = rows;
            for pair in 0..lanes / 2 {
                (rows[2 * pair], rows[2 * pair + 1]) =
                    interleave::<SIZE>(before[pair], before[pair + lanes / 2]);
            }
            round *= 2;
        }
        for (row, vector) in rows[..lanes].iter().enumerate() {
            // SAFETY: row `row` of the transposed tile is 16 writable bytes.
            unsafe { _mm_storeu_si128(y.offset(row as isize * y_stride).cast(), *vector) };
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod vector {
    use std::arch::aarch64::{
        uint8x16_t, vdupq_n_u8, vld1q_u8, vreinterpretq_u8_u16, vreinterpretq_u8_u32, vreinterpretq_u8_u64,
        vreinterpretq_u16_u8, vreinterpretq_u32_u8, vreinterpretq_u64_u8, vst1q_u8, vzip1q_u8, vzip1q_u16,
        vzip1q_u32, vzip1q_u64, vzip2q_u8, vzip2q_u16, vzip2q_u32, vzip2q_u64,
    };

    pub(super) const AVAILABLE: bool = true;

    #[inline]
    #[target_feature(enable = "neon")]
    fn interleave<const SIZE: usize>(a: uint8x16_t, b: uint8x16_t) -> (uint8x16_t, uint8x16_t) {
        match SIZE {
            1 => (vzip1q_u8(a, b), vzip2q_u8(a, b)),
            2 => {
                let (a, b) = (vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b));
                (vreinterpretq_u8_u16(vzip1q_u16(a, b)), vreinterpretq_u8_u16(vzip2q_u16(a, b)))
            }
            4 => {
                let (a, b) = (vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b));
                (vreinterpretq_u8_u32(vzip1q_u32(a, b)), vreinterpretq_u8_u32(vzip2q_u32(a, b)))
            }
            _ => {
                let (a, b) = (vreinterpretq_u64_u8(a), vreinterpretq_u64_u8(b));
                (vreinterpretq_u8_u64(vzip1q_u64(a, b)), vreinterpretq_u8_u64(vzip2q_u64(a, b)))
            }
        }
    }

    /// One tile of `16 / SIZE` by `16 / SIZE` elements.
    ///
    /// # Safety
    /// As for [`super::transpose`].
    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) unsafe fn tile<const SIZE: usize>(x: *const u8, x_stride: isize, y: *mut u8, y_stride: isize) {
        let lanes = const { 16 / SIZE };
        let mut rows = [vdupq_n_u8(0); 16];
        for (row, vector) in rows[..lanes].iter_mut().enumerate() {
            // SAFETY: row `row` of the tile is 16 readable bytes.
            *vector = unsafe { vld1q_u8(x.offset(row as isize * x_stride)) };
        }
        let mut round = 1;
        while round < lanes {
            let before = rows;
            for pair in 0..lanes / 2 {
                (rows[2 * pair], rows[2 * pair + 1]) =
                    interleave::<SIZE>(before[pair], before[pair + lanes / 2]);
            }
            round *= 2;
        }
        for (row, vector) in rows[..lanes].iter().enumerate() {
            // SAFETY: row `row` of the transposed tile is 16 writable bytes.
            unsafe { vst1q_u8(y.offset(row as isize * y_stride), *vector) };
        }
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod vector {
    pub(super) const AVAILABLE: bool = false;

    /// Never called: [`AVAILABLE`] is false.
    ///
    /// # Safety
    /// None needed.
    pub(super) unsafe fn tile<const SIZE: usize>(_: *const u8, _: isize, _: *mut u8, _: isize) {}
}
