//! The meaning of a strided copy: one element at a time.

#![cfg(test)]

/// Copies every element of the loop nest; strides and offsets count bytes.
pub(crate) fn strided_copy(
    element_size: usize,
    extents: &[usize],
    input_strides: &[isize],
    output_strides: &[isize],
    x: &[u8],
    y: &mut [u8],
) {
    let count: usize = extents.iter().product();
    for flat in 0..count {
        let (mut rest, mut from, mut to) = (flat, 0, 0);
        for axis in (0..extents.len()).rev() {
            let index = (rest % extents[axis]) as isize;
            rest /= extents[axis];
            from += index * input_strides[axis];
            to += index * output_strides[axis];
        }
        let (from, to) = (from as usize, to as usize);
        y[to..to + element_size].copy_from_slice(&x[from..from + element_size]);
    }
}
