//! Weights of few bits, quantized block by block, as ONNX Runtime's tools for language models write them.

use armet_graph::ValueId;
use armet_graph::ops::{DequantizeLinear, Gather, MatMul, MatMulNBits, numbers};
use armet_tensor::{ElementType, Shape, Tensor};

use super::products::PLAIN;
use super::{Entry, microsoft};
use crate::onnx::error::{Invalid, Reason};
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[
    microsoft("MatMulNBits", |n| {
        // How coarse the runtime may compute; here it never computes coarser than single precision.
        n.ignore(&["accuracy_level"]);
        n.only("weight_prepacked", 0)?;
        let op = MatMulNBits {
            rows: size(n, "K")?,
            columns: size(n, "N")?,
            bits: n.int_or("bits", 4).and_then(|bits| match bits {
                2 | 4 | 8 => Ok(bits as usize),
                _ => Err(n.unsupported("bits")),
            })?,
            block: size(n, "block_size")?,
        };
        if n.has_input(4) {
            return Err(Reason::Input { index: 4, what: "is not taken" }.into());
        }
        let inputs =
            vec![Some(n.input(0)?), Some(n.input(1)?), Some(n.input(2)?), n.optional(3)?, n.optional(5)?];
        n.emit(op, inputs)
    }),
    microsoft("MatMulBnb4", bits_and_bytes),
    microsoft("GatherBlockQuantized", gather),
];

/// A number that must be there and be positive.
fn size(n: &NodeReader<'_, '_>, name: &'static str) -> Read<usize> {
    match n.required_int(name).map(usize::try_from)? {
        Ok(value) if value > 0 => Ok(value),
        _ => Err(n.refuse(name, "must be positive").into()),
    }
}

/// What an input must be that the importer computes with.
fn constant(n: &mut NodeReader<'_, '_>, index: usize) -> Read<Tensor> {
    Ok(n.constant(index)?.ok_or(Reason::Input { index, what: "must be a constant" })?)
}

/// The values that the codes of `FP4` and `NF4` stand for.
const CODES: [[f32; 16]; 2] = [
    [
        0.0,
        0.005_208_333,
        0.666_666_7,
        1.0,
        0.333_333_34,
        0.5,
        0.166_666_67,
        0.25,
        -0.0,
        -0.005_208_333,
        -0.666_666_7,
        -1.0,
        -0.333_333_34,
        -0.5,
        -0.166_666_67,
        -0.25,
    ],
    [
        -1.0,
        -0.696_192_8,
        -0.525_073_05,
        -0.394_917_5,
        -0.284_441_38,
        -0.184_773_43,
        -0.091_050_036,
        0.0,
        0.079_580_3,
        0.160_930_2,
        0.246_112_3,
        0.337_915_24,
        0.440_709_83,
        0.562_617,
        0.722_956_84,
        1.0,
    ],
];

/// A product with weights of four bits that are codes of a table, times the largest magnitude of their block.
fn bits_and_bytes(n: &mut NodeReader<'_, '_>) -> Read {
    n.only("training_mode", 0)?;
    let (rows, columns) = (size(n, "K")?, size(n, "N")?);
    let block = size(n, "block_size")?;
    let kind = n.size_or("quant_type", 0)?;
    let codes = CODES.get(kind).ok_or_else(|| n.unsupported("quant_type"))?;
    let transpose_b = n.flag("transB", true)?;
    let (weights, largest) = (constant(n, 1)?, constant(n, 2)?);
    let largest = numbers::to_f64(&largest).map_err(|e| Invalid::Other(e.to_string()))?;
    let count = rows.saturating_mul(columns);
    if weights.element() != ElementType::U8
        || weights.len() != count.div_ceil(2)
        || largest.len() != count.div_ceil(block)
    {
        return Err(Invalid::Other(
            "weights or scales have another number of elements than K, N and the block size say".into(),
        )
        .into());
    }
    // The first of two codes stands in the high bits.
    let value = |i: usize| {
        let byte = weights.bytes()[i / 2];
        let code = if i.is_multiple_of(2) { byte >> 4 } else { byte & 15 };
        codes[usize::from(code)] * largest[i / block] as f32
    };
    let values: Vec<f32> = (0..count).map(value).collect();
    let weights = Tensor::new([columns, rows], &values).map_err(|e| Invalid::Other(e.to_string()))?;
    let weights = n.add_constant("weights", weights);
    let x = n.input(0)?;
    n.emit(MatMul { transpose_b, ..PLAIN }, vec![Some(x), Some(weights)])
}

/// Bytes that hold several numbers along the last axis, as a tensor of such numbers; `len` are on that axis.
fn unpacked(packed: &Tensor, bits: usize, len: usize) -> Read<Tensor> {
    let invalid = |text: String| Invalid::Other(text);
    let per_byte = 8 / bits;
    let Some((&bytes, lead)) = packed.shape().split_last() else {
        return Err(Invalid::Other("packed numbers need an axis".into()).into());
    };
    if bytes != len.div_ceil(per_byte) {
        return Err(Invalid::Other(format!("{bytes} bytes do not hold {len} numbers of {bits} bits")).into());
    }
    let element = match bits {
        2 => ElementType::U2,
        4 => ElementType::U4,
        _ => ElementType::U8,
    };
    let shape: Shape = lead.iter().copied().chain([len]).collect();
    if len == bytes * per_byte {
        return Ok(Tensor::from_bytes(element, shape, packed.bytes()).map_err(|e| invalid(e.to_string()))?);
    }
    let mask = ((1u16 << bits) - 1) as u8;
    let numbers: Vec<i128> = packed
        .bytes()
        .chunks_exact(bytes)
        .flat_map(|row| {
            (0..len).map(move |i| i128::from((row[i / per_byte] >> (bits * (i % per_byte))) & mask))
        })
        .collect();
    Ok(numbers::from_i128(element, shape, &numbers).map_err(|e| invalid(e.to_string()))?)
}

/// Entries of a table are chosen while they are small, and only these made real numbers.
fn gather(n: &mut NodeReader<'_, '_>) -> Read {
    let block = n.size_or("block_size", 128)?;
    let (gather_axis, quantize_axis) = (n.int_or("gather_axis", 0)?, n.int_or("quantize_axis", 1)?);
    let bits = n.size_or("bits", 4)?;
    let indices = n.input(1)?;
    let (mut data, scales, mut zeros) = (n.input(0)?, n.input(2)?, n.optional(3)?);
    let unknown = |index| Reason::Input { index, what: "must have a known rank" };
    let rank = n.rank(data).ok_or_else(|| unknown(0))?;
    let at = |axis: i64| {
        usize::try_from(if axis < 0 { axis + rank as i64 } else { axis }).ok().filter(|a| *a < rank)
    };
    let (Some(from), Some(along)) = (at(gather_axis), at(quantize_axis)) else {
        return Err(Invalid::Other(format!("axes {gather_axis} and {quantize_axis} of {rank}")).into());
    };
    if n.type_of(data).is_some_and(|ty| ty.element == ElementType::U8) {
        if !matches!(bits, 2 | 4 | 8) {
            return Err(n.unsupported("bits"));
        }
        let table = constant(n, 0)?;
        let scale_shape = constant(n, 2)?.shape().clone();
        let bytes = table.shape().last().copied().unwrap_or(0);
        let table = unpacked(&table, bits, bytes * (8 / bits))?;
        let middle = match zeros {
            Some(_) => unpacked(&constant(n, 3)?, bits, scale_shape.last().copied().unwrap_or(0))?,
            None => {
                let middle = vec![1i128 << (bits - 1); scale_shape.elements()];
                let made = numbers::from_i128(table.element(), scale_shape, &middle);
                made.map_err(|e| Invalid::Other(e.to_string()))?
            }
        };
        data = n.add_constant("table", table);
        zeros = Some(n.add_constant("zeros", middle));
    }
    if from == along {
        let real = n.step(
            "real",
            DequantizeLinear { axis: along as i64, block_size: block },
            vec![Some(data), Some(scales), zeros],
        );
        return n.emit(Gather { axis: from as i64 }, vec![Some(real), Some(indices)]);
    }
    let chosen = n.rank(indices).ok_or_else(|| unknown(1))?;
    let along = if along > from { along + chosen - 1 } else { along };
    let pick = |n: &mut NodeReader<'_, '_>, name: &str, x: ValueId| {
        n.step(name, Gather { axis: from as i64 }, vec![Some(x), Some(indices)])
    };
    let data = pick(n, "chosen", data);
    let scales = pick(n, "chosen_scales", scales);
    let zeros = zeros.map(|zeros| pick(n, "chosen_zeros", zeros));
    n.emit(DequantizeLinear { axis: along as i64, block_size: block }, vec![Some(data), Some(scales), zeros])
}
