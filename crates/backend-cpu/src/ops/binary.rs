//! Functions of two numbers with broadcasting.

use armet_graph::ops::{Binary, BinaryKind};
use armet_kernels::elementwise::{self, Bits, Broadcast, Comparison, Integer, Number};
use armet_runtime::{Lowered, NodeView, RunError, Unsupported};
use armet_tensor::{Element, ElementType};

use super::quantized::{self, is_quantized};
use super::support::{operand_shape, shapes};
use crate::{Cpu, direct, fallible};

fn arithmetic(kind: BinaryKind) -> Option<elementwise::Binary> {
    use elementwise::Binary as K;
    Some(match kind {
        BinaryKind::Add => K::Add,
        BinaryKind::Sub => K::Sub,
        BinaryKind::Mul => K::Mul,
        BinaryKind::Div => K::Div,
        BinaryKind::Pow => K::Pow,
        BinaryKind::Min => K::Min,
        BinaryKind::Max => K::Max,
        BinaryKind::PRelu => K::PRelu,
        BinaryKind::Mod { fmod: false } => K::Modulo,
        BinaryKind::Mod { fmod: true } => K::Remainder,
        _ => return None,
    })
}

fn comparison(kind: BinaryKind) -> Option<Comparison> {
    Some(match kind {
        BinaryKind::Equal => Comparison::Equal,
        BinaryKind::Less => Comparison::Less,
        BinaryKind::Greater => Comparison::Greater,
        BinaryKind::LessOrEqual => Comparison::LessOrEqual,
        BinaryKind::GreaterOrEqual => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

fn bits(kind: BinaryKind) -> Option<Bits> {
    Some(match kind {
        BinaryKind::And | BinaryKind::BitwiseAnd => Bits::And,
        BinaryKind::Or | BinaryKind::BitwiseOr => Bits::Or,
        BinaryKind::Xor | BinaryKind::BitwiseXor => Bits::Xor,
        BinaryKind::BitShiftLeft => Bits::ShiftLeft,
        BinaryKind::BitShiftRight => Bits::ShiftRight,
        _ => return None,
    })
}

pub(crate) fn lower(cpu: Cpu, op: &Binary, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    if is_quantized(node) {
        return quantized::binary(cpu, op, node);
    }
    let element = node.element(0)?;
    if node.element(1)? != element {
        return Err(Unsupported::ElementType(node.element(1)?));
    }
    let layout = node.output_layout(0)?;
    let rank = node.output_shape(0)?.len();
    let (a, b) = (operand_shape(node, 0, rank, layout)?, operand_shape(node, 1, rank, layout)?);
    let plan = Broadcast::new(&[&a, &b]).map_err(shapes)?;
    match element {
        ElementType::F32 => numbers::<f32>(cpu, op.kind, plan, element),
        ElementType::F64 => numbers::<f64>(cpu, op.kind, plan, element),
        ElementType::I64 => integers::<i64>(cpu, node, op.kind, plan, element),
        ElementType::I32 => integers::<i32>(cpu, node, op.kind, plan, element),
        ElementType::Bool => booleans(cpu, op.kind, plan),
        other => Err(Unsupported::ElementType(other)),
    }
}

fn numbers<T: Element + Number>(
    cpu: Cpu,
    kind: BinaryKind,
    plan: Broadcast,
    element: ElementType,
) -> Result<Lowered, Unsupported> {
    let isas = cpu.isas;
    if let Some(f) = arithmetic(kind) {
        return Ok(direct(format!("binary_{element}_{}", isas.best()), move |b| {
            elementwise::binary::<T>(isas, b.team(), f, &plan, (b.input(0), b.input(1)), b.output(0));
        }));
    }
    if let Some(f) = comparison(kind) {
        return Ok(direct(format!("compare_{element}_{}", isas.best()), move |b| {
            elementwise::compare::<T>(isas, b.team(), f, &plan, (b.input(0), b.input(1)), b.output_bytes(0));
        }));
    }
    Err(Unsupported::ElementType(element))
}

fn integers<T: Element + Integer + Default + PartialEq>(
    cpu: Cpu,
    node: NodeView<'_>,
    kind: BinaryKind,
    plan: Broadcast,
    element: ElementType,
) -> Result<Lowered, Unsupported> {
    let isas = cpu.isas;
    if let (BinaryKind::Div | BinaryKind::Mod { .. }, Some(f)) = (kind, arithmetic(kind)) {
        let name = node.node().name.clone();
        return Ok(fallible(format!("binary_{element}_{}", isas.best()), 0, move |b| {
            let divisors: &[T] = b.input(1);
            if plan.length() > 0 && divisors.iter().any(|&divisor| divisor == T::default()) {
                let reason = "an integer is divided by zero".to_owned();
                return Err(RunError::Kernel { node: name.clone(), reason });
            }
            elementwise::binary::<T>(isas, b.team(), f, &plan, (b.input(0), divisors), b.output(0));
            Ok(())
        }));
    }
    let Some(f) = bits(kind) else { return numbers::<T>(cpu, kind, plan, element) };
    Ok(direct(format!("bits_{element}"), move |b| {
        elementwise::bits::<T>(isas, b.team(), f, &plan, (b.input(0), b.input(1)), b.output(0));
    }))
}

fn booleans(cpu: Cpu, kind: BinaryKind, plan: Broadcast) -> Result<Lowered, Unsupported> {
    let isas = cpu.isas;
    if let Some(f) = bits(kind) {
        return Ok(direct("bits_bool", move |b| {
            elementwise::bits::<u8>(isas, b.team(), f, &plan, (b.bytes(0), b.bytes(1)), b.output_bytes(0));
        }));
    }
    let f = comparison(kind).ok_or(Unsupported::ElementType(ElementType::Bool))?;
    Ok(direct("compare_bool", move |b| {
        elementwise::compare::<u8>(isas, b.team(), f, &plan, (b.bytes(0), b.bytes(1)), b.output_bytes(0));
    }))
}
