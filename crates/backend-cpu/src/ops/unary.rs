//! Functions of one number.

use armet_graph::ops::{Unary, UnaryKind};
use armet_kernels::elementwise::{self, NumberUnary};
use armet_runtime::{Lowered, NodeView, Unsupported};
use armet_tensor::ElementType;

use super::quantized::{self, is_quantized};
use super::support::same_layout;
use crate::{Cpu, direct};

/// The kernel's function for `f32`, when it has one.
pub(crate) fn function(kind: UnaryKind) -> Option<elementwise::Unary> {
    use elementwise::Unary as K;
    Some(match kind {
        UnaryKind::Abs => K::Abs,
        UnaryKind::Neg => K::Neg,
        UnaryKind::Exp => K::Exp,
        UnaryKind::Log => K::Log,
        UnaryKind::Sqrt => K::Sqrt,
        UnaryKind::Reciprocal => K::Reciprocal,
        UnaryKind::Floor => K::Floor,
        UnaryKind::Ceil => K::Ceil,
        UnaryKind::Round => K::Round,
        UnaryKind::Sign => K::Sign,
        UnaryKind::Sin => K::Sin,
        UnaryKind::Cos => K::Cos,
        UnaryKind::Tan => K::Tan,
        UnaryKind::Asin => K::Asin,
        UnaryKind::Acos => K::Acos,
        UnaryKind::Atan => K::Atan,
        UnaryKind::Sinh => K::Sinh,
        UnaryKind::Cosh => K::Cosh,
        UnaryKind::Tanh => K::Tanh,
        UnaryKind::Asinh => K::Asinh,
        UnaryKind::Acosh => K::Acosh,
        UnaryKind::Atanh => K::Atanh,
        UnaryKind::Erf => K::Erf,
        UnaryKind::Sigmoid => K::Sigmoid,
        UnaryKind::Relu => K::Relu,
        UnaryKind::Softplus => K::Softplus,
        UnaryKind::Softsign => K::Softsign,
        UnaryKind::HardSwish => K::HardSwish,
        UnaryKind::Silu => K::Silu,
        UnaryKind::Mish => K::Mish,
        UnaryKind::LeakyRelu { alpha } => K::LeakyRelu { alpha },
        UnaryKind::Elu { alpha } => K::Elu { alpha },
        UnaryKind::Selu { alpha, gamma } => K::Selu { alpha, gamma },
        UnaryKind::HardSigmoid { alpha, beta } => K::HardSigmoid { alpha, beta },
        UnaryKind::Clip { min, max } => K::Clip { min, max },
        UnaryKind::Gelu { tanh: false } => K::Gelu,
        UnaryKind::Gelu { tanh: true } => K::GeluTanh,
        UnaryKind::Swish { alpha } => K::QuickGelu { alpha },
        UnaryKind::ThresholdedRelu { alpha } => K::ThresholdedRelu { alpha },
        UnaryKind::Celu { alpha } => K::Celu { alpha },
        UnaryKind::Shrink { bias, lambd } => K::Shrink { bias, lambd },
        UnaryKind::Not | UnaryKind::BitwiseNot | UnaryKind::IsNan | UnaryKind::IsInf { .. } => return None,
    })
}

pub(crate) fn lower(cpu: Cpu, op: &Unary, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    if is_quantized(node) {
        return quantized::unary(op, node);
    }
    same_layout(node)?;
    let isas = cpu.isas;
    let element = node.element(0)?;
    let name = format!("unary_{element}_{}", isas.best());
    match (element, op.kind) {
        (ElementType::F32, kind) => match (function(kind), kind) {
            (Some(f), _) => {
                Ok(direct(name, move |b| elementwise::unary(isas, b.team(), f, b.input(0), b.output(0))))
            }
            (None, UnaryKind::IsNan) => Ok(direct("is_nan_f32", |b| {
                let x: &[f32] = b.input(0);
                b.output_bytes(0).iter_mut().zip(x).for_each(|(y, x)| *y = u8::from(x.is_nan()));
            })),
            (None, UnaryKind::IsInf { negative, positive }) => Ok(direct("is_inf_f32", move |b| {
                let x: &[f32] = b.input(0);
                let test = |x: f32| x.is_infinite() && if x > 0.0 { positive } else { negative };
                b.output_bytes(0).iter_mut().zip(x).for_each(|(y, x)| *y = u8::from(test(*x)));
            })),
            (None, _) => Err(Unsupported::ElementType(element)),
        },
        (ElementType::Bool, UnaryKind::Not) => {
            Ok(direct("not_bool", |b| elementwise::not(b.bytes(0), b.output_bytes(0))))
        }
        (ElementType::I64, kind) => {
            let f = match kind {
                UnaryKind::Abs => NumberUnary::Abs,
                UnaryKind::Neg => NumberUnary::Neg,
                UnaryKind::Sign => NumberUnary::Sign,
                _ => return Err(Unsupported::ElementType(element)),
            };
            Ok(direct(name, move |b| {
                elementwise::unary_number::<i64>(isas, b.team(), f, b.input(0), b.output(0));
            }))
        }
        (ElementType::I32, kind) => {
            let f = match kind {
                UnaryKind::Abs => NumberUnary::Abs,
                UnaryKind::Neg => NumberUnary::Neg,
                UnaryKind::Sign => NumberUnary::Sign,
                _ => return Err(Unsupported::ElementType(element)),
            };
            Ok(direct(name, move |b| {
                elementwise::unary_number::<i32>(isas, b.team(), f, b.input(0), b.output(0));
            }))
        }
        _ => Err(Unsupported::ElementType(element)),
    }
}
