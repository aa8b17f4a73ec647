//! What a fused node does to a finished sum, in the kernels' terms.

use armet_graph::ops::UnaryKind;
use armet_kernels::epilogue::{Activation, Epilogue, Residual, ResidualSource};
use armet_runtime::{Bindings, NodeView, Unsupported};
use armet_tensor::ElementType;

/// Bias, residual and activation of a node whose inputs 2 and 3 are the first two.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fused {
    activation: Activation<'static>,
    row_stride: usize,
}

impl Fused {
    /// Checks that the kernels can do what the node wants after its sum. `columns` is the innermost length of the result.
    pub(super) fn new(
        node: NodeView<'_>,
        activation: Option<UnaryKind>,
        columns: usize,
    ) -> Result<Self, Unsupported> {
        let activation = match activation {
            None => Activation::None,
            Some(kind) => self::activation(kind)
                .ok_or_else(|| Unsupported::Attribute { name: "activation", value: format!("{kind:?}") })?,
        };
        if node.has_input(2) && node.shape(2)?.elements() != columns {
            return Err(Unsupported::Shapes("the bias is not one per output channel".into()));
        }
        if node.has_input(3) {
            if node.shape(3)? != node.output_shape(0)? {
                return Err(Unsupported::Shapes("the added tensor has another shape than the result".into()));
            }
            if node.layout(3)? != node.output_layout(0)? {
                return Err(Unsupported::Layout(node.layout(3)?));
            }
        }
        for index in (2..4).filter(|&i| node.has_input(i)) {
            if node.element(index)? != ElementType::F32 {
                return Err(Unsupported::ElementType(node.element(index)?));
            }
        }
        Ok(Self { activation, row_stride: columns })
    }

    /// The epilogue over the buffers of a run.
    pub(super) fn epilogue<'a>(&self, bindings: &Bindings<'a>) -> Epilogue<'a> {
        let residual = bindings.optional_input::<f32>(3).map(|data| Residual {
            source: ResidualSource::Matrix { data, row_stride: self.row_stride },
            after_activation: false,
        });
        Epilogue { bias: bindings.optional_input::<f32>(2), residual, activation: self.activation }
    }
}

/// The activation that kernels fuse, when they have it.
fn activation(kind: UnaryKind) -> Option<Activation<'static>> {
    Some(match kind {
        UnaryKind::Relu => Activation::Relu,
        UnaryKind::Clip { min, max } => Activation::Clip { min, max },
        UnaryKind::LeakyRelu { alpha } => Activation::LeakyRelu { slope: alpha },
        UnaryKind::Sigmoid => Activation::Sigmoid,
        UnaryKind::Silu => Activation::Silu,
        UnaryKind::HardSigmoid { alpha, beta } => Activation::HardSigmoid { alpha, beta },
        UnaryKind::HardSwish => Activation::HardSwish,
        UnaryKind::Tanh => Activation::Tanh,
        UnaryKind::Gelu { tanh: false } => Activation::Gelu,
        UnaryKind::Gelu { tanh: true } => Activation::GeluTanh,
        UnaryKind::Mish => Activation::Mish,
        UnaryKind::Elu { alpha } => Activation::Elu { alpha },
        UnaryKind::Softplus => Activation::Softplus,
        _ => return None,
    })
}
