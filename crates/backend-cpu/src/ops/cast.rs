//! Conversion of the element type.

use armet_graph::ops::Cast;
use armet_kernels::elementwise::{self, CastTo};
use armet_runtime::{Lowered, NodeView, Unsupported};
use armet_tensor::{Element, ElementType};
use half::f16;

use super::support::{same_layout, unquantized};
use crate::{Cpu, direct};

fn pair<A: Element + CastTo<B>, B: Element>(cpu: Cpu) -> Lowered {
    let isas = cpu.isas;
    direct(format!("cast_{}_{}", A::TYPE, B::TYPE), move |b| {
        elementwise::cast::<A, B>(isas, b.team(), b.input(0), b.output(0));
    })
}

fn from<A>(cpu: Cpu, to: ElementType) -> Result<Lowered, Unsupported>
where
    A: Element
        + Default
        + CastTo<f32>
        + CastTo<f64>
        + CastTo<f16>
        + CastTo<i8>
        + CastTo<i32>
        + CastTo<i64>
        + CastTo<u8>,
{
    Ok(match to {
        ElementType::F32 => pair::<A, f32>(cpu),
        ElementType::F64 => pair::<A, f64>(cpu),
        ElementType::F16 => pair::<A, f16>(cpu),
        ElementType::I8 => pair::<A, i8>(cpu),
        ElementType::I32 => pair::<A, i32>(cpu),
        ElementType::I64 => pair::<A, i64>(cpu),
        ElementType::U8 => pair::<A, u8>(cpu),
        ElementType::Bool => {
            let isas = cpu.isas;
            direct(format!("cast_{}_bool", A::TYPE), move |b| {
                elementwise::cast_to_bool::<A>(isas, b.team(), b.input(0), b.output_bytes(0));
            })
        }
        other => return Err(Unsupported::ElementType(other)),
    })
}

pub(crate) fn lower(cpu: Cpu, op: &Cast, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    same_layout(node)?;
    match node.element(0)? {
        element if element == op.to => Ok(Lowered::Alias),
        ElementType::F32 => from::<f32>(cpu, op.to),
        ElementType::F64 => from::<f64>(cpu, op.to),
        ElementType::F16 => from::<f16>(cpu, op.to),
        ElementType::I8 => from::<i8>(cpu, op.to),
        ElementType::I32 => from::<i32>(cpu, op.to),
        ElementType::I64 => from::<i64>(cpu, op.to),
        ElementType::U8 => from::<u8>(cpu, op.to),
        ElementType::Bool => booleans(cpu, op.to),
        other => Err(Unsupported::ElementType(other)),
    }
}

fn booleans(cpu: Cpu, to: ElementType) -> Result<Lowered, Unsupported> {
    fn pair<B: Element>(cpu: Cpu) -> Lowered
    where
        u8: CastTo<B>,
    {
        let isas = cpu.isas;
        direct(format!("cast_bool_{}", B::TYPE), move |b| {
            elementwise::cast::<u8, B>(isas, b.team(), b.bytes(0), b.output(0));
        })
    }
    Ok(match to {
        ElementType::F32 => pair::<f32>(cpu),
        ElementType::I32 => pair::<i32>(cpu),
        ElementType::I64 => pair::<i64>(cpu),
        ElementType::U8 => pair::<u8>(cpu),
        ElementType::I8 => pair::<i8>(cpu),
        other => return Err(Unsupported::ElementType(other)),
    })
}
