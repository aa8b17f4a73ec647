//! The same real numbers stored otherwise, and the operators that say so with parameters as inputs.

use armet_graph::ops::{DequantizeLinear, QuantizeLinear};
use armet_kernels::quantize::{self as kernel, Quantization, Quantized};
use armet_runtime::{Lowered, NodeView, Unsupported};
use armet_tensor::{Element, ElementType, Layout, Shape};

use super::quantized::table;
use super::support::{axis, memory_axis, same_layout};
use crate::{Cpu, direct};

/// Parameters in memory order: outer, channels, inner, scales and zero points.
struct Parameters {
    dims: (usize, usize),
    scale: Vec<f32>,
    zero: Vec<i32>,
}

impl Parameters {
    fn new(
        scale: &[f32],
        zero: &[i32],
        at: Option<usize>,
        shape: &Shape,
        layout: Layout,
    ) -> Result<Self, Unsupported> {
        let memory = layout.physical(shape);
        let dims = match at {
            Some(at) if scale.len() > 1 => {
                let place = memory_axis(at, shape.len(), layout);
                if memory[place] != scale.len() {
                    return Err(Unsupported::Quantization("scales do not cover their axis".into()));
                }
                (memory[..place].iter().product(), memory[place + 1..].iter().product())
            }
            _ if scale.len() == 1 => (1, memory.iter().product()),
            _ => return Err(Unsupported::Quantization("several scales without an axis".into())),
        };
        Ok(Self { dims, scale: scale.to_vec(), zero: zero.to_vec() })
    }

    fn of_type(ty: &armet_graph::TensorType, shape: &Shape, layout: Layout) -> Result<Self, Unsupported> {
        let q = ty.quantization.as_deref().ok_or(Unsupported::Quantization("no parameters".into()))?;
        if q.block.is_some() {
            return Err(Unsupported::Quantization("no kernel for blocks".into()));
        }
        Self::new(&q.scale, &q.zero_point, q.axis, shape, layout)
    }
}

fn quantize<T: Element + Quantized + TryFrom<i32>>(cpu: Cpu, p: Parameters) -> Result<Lowered, Unsupported> {
    let isas = cpu.isas;
    let zero = zeros::<T>(&p.zero)?;
    Ok(direct(format!("quantize_{}_{}", T::TYPE, isas.best()), move |b| {
        let q = Quantization { scale: &p.scale, zero_point: &zero };
        kernel::quantize_linear::<T>(isas, b.team(), p.dims, q, b.input(0), b.output(0));
    }))
}

fn dequantize<T: Element + Quantized + TryFrom<i32>>(
    cpu: Cpu,
    p: Parameters,
) -> Result<Lowered, Unsupported> {
    let isas = cpu.isas;
    let zero = zeros::<T>(&p.zero)?;
    Ok(direct(format!("dequantize_{}_{}", T::TYPE, isas.best()), move |b| {
        let q = Quantization { scale: &p.scale, zero_point: &zero };
        kernel::dequantize_linear::<T>(isas, b.team(), p.dims, q, b.input(0), b.output(0));
    }))
}

fn zeros<T: TryFrom<i32>>(zero: &[i32]) -> Result<Vec<T>, Unsupported> {
    let converted: Option<Vec<T>> = zero.iter().map(|&z| T::try_from(z).ok()).collect();
    converted.ok_or_else(|| Unsupported::Quantization("a zero point is out of range".into()))
}

fn into_bytes(cpu: Cpu, element: ElementType, p: Parameters) -> Result<Lowered, Unsupported> {
    match element {
        ElementType::U8 => quantize::<u8>(cpu, p),
        ElementType::I8 => quantize::<i8>(cpu, p),
        other => Err(Unsupported::ElementType(other)),
    }
}

fn from_bytes(cpu: Cpu, element: ElementType, p: Parameters) -> Result<Lowered, Unsupported> {
    match element {
        ElementType::U8 => dequantize::<u8>(cpu, p),
        ElementType::I8 => dequantize::<i8>(cpu, p),
        ElementType::I32 => dequantize::<i32>(cpu, p),
        other => Err(Unsupported::ElementType(other)),
    }
}

pub(crate) fn lower(cpu: Cpu, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    let layout = same_layout(node)?;
    let shape = node.shape(0)?;
    let (x, y) = (node.input(0)?, node.output(0)?);
    match (&x.quantization, &y.quantization) {
        (None, Some(_)) if x.element == ElementType::F32 => {
            into_bytes(cpu, y.element, Parameters::of_type(y, &shape, layout)?)
        }
        (Some(_), None) if y.element == ElementType::F32 => {
            from_bytes(cpu, x.element, Parameters::of_type(x, &shape, layout)?)
        }
        (Some(a), Some(b)) if a == b && x.element == y.element => Ok(Lowered::Alias),
        (Some(_), Some(_)) => table(node, "requantize", |v| v),
        (None, None) if x.element == y.element => Ok(Lowered::Alias),
        _ => Err(Unsupported::ElementType(x.element)),
    }
}

/// Scale and zero point that are constant inputs 1 and 2.
fn given(node: NodeView<'_>, at: i64, block: usize) -> Result<Parameters, Unsupported> {
    if block != 0 {
        return Err(Unsupported::Attribute { name: "block_size", value: block.to_string() });
    }
    let layout = same_layout(node)?;
    let shape = node.shape(0)?;
    let scale = node.constant(1).ok_or(Unsupported::NotConstant("scale"))?;
    let scale = scale.values::<f32>().map_err(|_| Unsupported::ElementType(scale.element()))?;
    let zero = match node.constant(2) {
        Some(tensor) => tensor.to_i64().ok_or(Unsupported::ElementType(tensor.element()))?,
        None if node.has_input(2) => return Err(Unsupported::NotConstant("zero point")),
        None => vec![0; scale.len()],
    };
    let zero: Vec<i32> = zero.into_iter().map(|z| z.clamp(-40_000, 40_000) as i32).collect();
    let at = if scale.len() > 1 { Some(axis(at, shape.len())?) } else { None };
    if zero.len() != scale.len() {
        return Err(Unsupported::Quantization("there is not one zero point per scale".into()));
    }
    Parameters::new(&scale, &zero, at, &shape, layout)
}

pub(crate) fn lower_quantize(
    cpu: Cpu,
    op: &QuantizeLinear,
    node: NodeView<'_>,
) -> Result<Lowered, Unsupported> {
    if node.element(0)? != ElementType::F32 {
        return Err(Unsupported::ElementType(node.element(0)?));
    }
    if let Some(precision) = op.precision.filter(|&precision| precision != ElementType::F32) {
        return Err(Unsupported::Attribute { name: "precision", value: precision.to_string() });
    }
    into_bytes(cpu, node.output(0)?.element, given(node, op.axis, op.block_size)?)
}

pub(crate) fn lower_dequantize(
    cpu: Cpu,
    op: &DequantizeLinear,
    node: NodeView<'_>,
) -> Result<Lowered, Unsupported> {
    if node.output(0)?.element != ElementType::F32 {
        return Err(Unsupported::ElementType(node.output(0)?.element));
    }
    from_bytes(cpu, node.element(0)?, given(node, op.axis, op.block_size)?)
}

pub(crate) fn lower_dynamic(cpu: Cpu, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    same_layout(node)?;
    if node.element(0)? != ElementType::F32 {
        return Err(Unsupported::ElementType(node.element(0)?));
    }
    let isas = cpu.isas;
    Ok(direct(format!("dynamic_quantize_{}", isas.best()), move |b| {
        let (scale, zero) = kernel::dynamic_quantize_linear(isas, b.team(), b.input(0), b.output_bytes(0));
        if let Some(to) = b.optional_output::<f32>(1) {
            to.fill(scale);
        }
        if let Some(to) = b.optional_output_bytes(2) {
            to.fill(zero);
        }
    }))
}
