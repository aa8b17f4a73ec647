//! Quantized values in the kernels' terms: parameters, limits, and the 8-bit forms of products and arithmetic.

use std::sync::Arc;

use armet_graph::TensorType;
use armet_graph::ops::{Binary, BinaryKind, Conv, GlobalPool, MatMul, PoolKind, Unary, UnaryKind};
use armet_kernels::conv::ConvShape;
use armet_kernels::conv_int8::{ConvInt8, ConvInt8Options, PackedConvInt8};
use armet_kernels::elementwise::Broadcast;
use armet_kernels::gemm_int8::{Int8Epilogue, Int8Output, Int8Slice, PackedInt8, Stage, gemm_int8};
use armet_kernels::isa::Isas;
use armet_kernels::layout::ChannelOrder;
use armet_kernels::quantize::{self as kernel, GlobalAverage, Quantized, QuantizedBinary, QuantizedOperand};
use armet_runtime::{Bindings, CompileContext, CompileError, Lowered, NodeView, Unsupported};
use armet_tensor::{Element, ElementType, Layout, Tensor};

use super::conv::{channels_last, conv_shape};
use super::support::{operand_shape, same_layout, shapes};
use crate::{Cpu, direct, packed};

fn refuse<T>(what: &str) -> Result<T, Unsupported> {
    Err(Unsupported::Quantization(what.to_owned()))
}

/// Whether any input or output of the node is quantized.
pub(super) fn is_quantized(node: NodeView<'_>) -> bool {
    let values = node.node().inputs.iter().chain(&node.node().outputs).flatten();
    values.into_iter().any(|v| node.graph.value(*v).ty.tensor().is_some_and(|t| t.quantization.is_some()))
}

/// Scale and zero point of an 8-bit value that has one of each.
pub(super) fn per_tensor(ty: &TensorType) -> Result<(f32, i32), Unsupported> {
    if !matches!(ty.element, ElementType::U8 | ElementType::I8) {
        return Err(Unsupported::ElementType(ty.element));
    }
    match ty.quantization.as_deref() {
        Some(q) if q.scale.len() == 1 && q.zero_point.len() == 1 => Ok((q.scale[0], q.zero_point[0])),
        Some(_) => refuse("no kernel for activations with several scales"),
        None => refuse("one operand is quantized and the other is not"),
    }
}

/// Scales and zero points of weights: one for all, or one for each index of `axis`; zero points empty when all are 0.
fn weights_of(ty: &TensorType, axis: usize, channels: usize) -> Result<(Vec<f32>, Vec<i32>), Unsupported> {
    if !matches!(ty.element, ElementType::U8 | ElementType::I8) {
        return Err(Unsupported::ElementType(ty.element));
    }
    let Some(q) = ty.quantization.as_deref() else { return refuse("weights are not quantized") };
    let fits = q.scale.len() == 1 || (q.axis == Some(axis) && q.block.is_none() && q.scale.len() == channels);
    if !fits {
        return refuse("scales of the weights do not run along output channels");
    }
    let zeros = if q.zero_point.iter().all(|&z| z == 0) { Vec::new() } else { q.zero_point.clone() };
    Ok((q.scale.clone(), zeros))
}

/// The limits that an activation sets on stored results, when it only limits.
fn limits(
    activation: Option<UnaryKind>,
    element: ElementType,
    (scale, zero): (f32, i32),
) -> Result<(i32, i32), Unsupported> {
    let (low, high) = if element == ElementType::U8 { (0, 255) } else { (-128, 127) };
    let stored = |real: f32| {
        let steps = (real / scale).round_ties_even().clamp(-1e6, 1e6) as i32;
        steps.saturating_add(zero).clamp(low, high)
    };
    match activation {
        None => Ok((low, high)),
        Some(UnaryKind::Relu) => Ok((zero.clamp(low, high), high)),
        Some(UnaryKind::Clip { min, max }) => Ok((stored(min), stored(max))),
        Some(kind) => Err(Unsupported::Attribute { name: "activation", value: format!("{kind:?}") }),
    }
}

/// The int32 bias of a product, in units of the product of both scales.
fn bias_of(node: NodeView<'_>, channels: usize) -> Result<Vec<i32>, Unsupported> {
    if !node.has_input(2) {
        return Ok(Vec::new());
    }
    let tensor = node.constant(2).ok_or(Unsupported::NotConstant("bias"))?;
    let bias = tensor.values::<i32>().map_err(|_| Unsupported::ElementType(tensor.element()))?;
    if bias.len() != channels {
        return refuse("the bias is not one per output channel");
    }
    Ok(bias.into_owned())
}

/// How sums of products become the node's result.
#[derive(Debug, Clone)]
struct Finish {
    bias: Vec<i32>,
    scales: Vec<f32>,
    zero: i32,
    limits: (i32, i32),
    element: ElementType,
}

impl Finish {
    fn new(
        node: NodeView<'_>,
        activation: Option<UnaryKind>,
        channels: usize,
        x_scale: f32,
        scales: &[f32],
    ) -> Result<Self, Unsupported> {
        if node.has_input(3) {
            return refuse("no kernel adds a tensor to quantized sums");
        }
        let bias = bias_of(node, channels)?;
        let y = node.output(0)?;
        if y.quantization.is_none() {
            if y.element != ElementType::F32 || activation.is_some() {
                return refuse("no kernel gives real numbers with an activation");
            }
            let scales = scales.iter().map(|s| x_scale * s).collect();
            return Ok(Self { bias, scales, zero: 0, limits: (0, 0), element: ElementType::F32 });
        }
        let (scale, zero) = per_tensor(y)?;
        // In this order, in single precision: onnxruntime's, so that halves round alike.
        let scales = scales.iter().map(|s| x_scale * s / scale).collect();
        Ok(Self {
            bias,
            scales,
            zero,
            limits: limits(activation, y.element, (scale, zero))?,
            element: y.element,
        })
    }

    fn epilogue(&self) -> Int8Epilogue<'_> {
        let stage = if self.element == ElementType::F32 {
            let (min, max) = (f32::NEG_INFINITY, f32::INFINITY);
            Stage::Float { factor: 1.0, scale: &self.scales, bias: &[], min, max }
        } else {
            let (min, max) = self.limits;
            Stage::Quantized { multiplier: &self.scales, zero_point: self.zero, min, max }
        };
        Int8Epilogue { bias: &self.bias, stage }
    }

    fn output<'a>(&self, b: &mut Bindings<'a>) -> Int8Output<'a> {
        match self.element {
            ElementType::F32 => Int8Output::F32(b.output(0)),
            ElementType::I8 => Int8Output::I8(b.output(0)),
            _ => Int8Output::U8(b.output(0)),
        }
    }
}

pub(super) fn slice<'a>(b: &Bindings<'a>, index: usize, signed: bool) -> Int8Slice<'a> {
    if signed { Int8Slice::I8(b.input(index)) } else { Int8Slice::U8(b.input(index)) }
}

/// Calls `body` with the bytes of a constant, which lowering has checked to be 8-bit.
pub(super) fn with_slice<T>(tensor: &Tensor, body: impl FnOnce(Int8Slice<'_>) -> T) -> T {
    if tensor.element() == ElementType::I8 {
        body(Int8Slice::I8(&tensor.expect::<i8>()))
    } else {
        body(Int8Slice::U8(&tensor.expect::<u8>()))
    }
}

/// A convolution of quantized values.
pub(super) fn conv(cpu: Cpu, op: &Conv, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    let (x, y) = (node.shape(0)?, node.output_shape(0)?);
    let weights = node.constant(1).ok_or(Unsupported::NotConstant("weights"))?.clone();
    let shape = conv_shape(op, &x, weights.shape())?;
    channels_last(node.layout(0)?, &x)?;
    channels_last(node.output_layout(0)?, &y)?;
    let (x_scale, x_zero) = per_tensor(node.input(0)?)?;
    let (scales, zeros) = weights_of(node.input(1)?, 0, shape.out_c)?;
    let finish = Finish::new(node, op.activation, shape.out_c, x_scale, &scales)?;
    let signed = node.element(0)? == ElementType::I8;
    let isas = cpu.isas;
    let name = node.node().name.clone();
    Ok(packed(move |context: &CompileContext<'_>| {
        let conv = prepare_conv(context, isas, &name, &weights, &shape, &zeros, signed)?;
        let scratch = conv.scratch_length();
        Ok((format!("conv_{}", conv.packed().kernel()), scratch, move |b: &mut Bindings<'_>| {
            let (y, scratch) = (finish.output(b), b.scratch());
            conv.run(b.team(), (slice(b, 0, signed), x_zero), &finish.epilogue(), y, scratch);
        }))
    }))
}

/// A product of quantized values with constant weights.
pub(super) fn matmul(cpu: Cpu, op: &MatMul, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    let weights = node.constant(1).ok_or(Unsupported::NotConstant("B"))?.clone();
    let a = node.shape(0)?;
    let &[rows, columns] = weights.shape().dims() else {
        return Err(Unsupported::Rank(weights.shape().len()));
    };
    if op.transpose_a || op.alpha != 1.0 || a.is_empty() {
        return refuse("no kernel for a transposed or scaled quantized product");
    }
    let (k, n, strides) =
        if op.transpose_b { (columns, rows, (1, columns)) } else { (rows, columns, (columns, 1)) };
    if a.last() != Some(&k) {
        return Err(Unsupported::Shapes(format!("inner lengths {:?} and {k} differ", a.last())));
    }
    let m = a.elements() / k.max(1);
    let (x_scale, x_zero) = per_tensor(node.input(0)?)?;
    let (scales, zeros) = weights_of(node.input(1)?, usize::from(!op.transpose_b), n)?;
    let finish = Finish::new(node, op.activation, n, x_scale, &scales)?;
    let signed = node.element(0)? == ElementType::I8;
    let isas = cpu.isas;
    let name = node.node().name.clone();
    Ok(packed(move |context: &CompileContext<'_>| {
        let matrix = pack_matrix(context, isas, &name, &weights, (k, n), strides, &zeros)?;
        let scratch = matrix.scratch_length(m, signed);
        Ok((matrix.kernel().to_owned(), scratch, move |b: &mut Bindings<'_>| {
            let (y, scratch) = (finish.output(b), b.scratch());
            gemm_int8(
                b.team(),
                m,
                (slice(b, 0, signed), k, x_zero),
                &matrix,
                &finish.epilogue(),
                (y, n),
                scratch,
            );
        }))
    }))
}

/// A convolution whose weights are packed once for the model.
pub(super) fn prepare_conv(
    context: &CompileContext<'_>,
    isas: Isas,
    name: &str,
    weights: &Tensor,
    shape: &ConvShape,
    zeros: &[i32],
    signed: bool,
) -> Result<ConvInt8, CompileError> {
    let failed = |reason: String| CompileError::Backend { backend: Cpu::ID, node: name.to_owned(), reason };
    let form = format!("conv int8 groups {} dilation {} {zeros:?} {isas:?}", shape.groups, shape.dilation_w);
    let pack = context.packs.get(weights, &form, || {
        let pack = |slice: Int8Slice<'_>| PackedConvInt8::pack(isas, shape, slice, zeros);
        with_slice(weights, pack).map(Arc::new).map_err(|e| failed(e.to_string()))
    })?;
    let options = ConvInt8Options { is_input_signed: signed, ..ConvInt8Options::default() };
    ConvInt8::from_packed(Arc::clone(&pack), shape, options).map_err(|e| failed(e.to_string()))
}

/// What `ConvInteger` and `MatMulInteger` ask of their operands.
pub(super) struct Integers {
    /// Whether the data are int8 rather than uint8.
    pub(super) signed: bool,
    /// Zero points of the weights; empty where all are zero.
    pub(super) zeros: Vec<i32>,
}

impl Integers {
    /// Those of data (input 0), weights (1), and their zero points (2 and 3). The zero point of the data comes from their
    /// own quantization in each run, one for the whole tensor; `several` says that there are more, `unknown` what must be
    /// known of the weights.
    pub(super) fn of(
        node: NodeView<'_>,
        weights: &Tensor,
        several: &str,
        unknown: &'static str,
    ) -> Result<Self, Unsupported> {
        let signed = match node.element(0)? {
            ElementType::I8 => true,
            ElementType::U8 => false,
            other => return Err(Unsupported::ElementType(other)),
        };
        if !matches!(weights.element(), ElementType::I8 | ElementType::U8) {
            return Err(Unsupported::ElementType(weights.element()));
        }
        if node.has_input(2) && node.shape(2)?.elements() != 1 {
            return refuse(several);
        }
        let zeros: Vec<i32> = match node.constant(3) {
            Some(tensor) => {
                let ints = tensor.to_i64().ok_or(Unsupported::ElementType(tensor.element()))?;
                ints.into_iter().map(|zero| zero as i32).collect()
            }
            None if node.has_input(3) => return Err(Unsupported::NotConstant(unknown)),
            None => Vec::new(),
        };
        let zeros = if zeros.iter().all(|&zero| zero == 0) { Vec::new() } else { zeros };
        Ok(Self { signed, zeros })
    }

    /// The data and their zero point in a run.
    pub(super) fn data<'a>(&self, b: &Bindings<'a>) -> (Int8Slice<'a>, i32) {
        let zero = b.optional_bytes(2).and_then(|zero| zero.first().copied());
        let zero = zero.map_or(0, |zero| if self.signed { i32::from(zero as i8) } else { i32::from(zero) });
        (slice(b, 0, self.signed), zero)
    }
}

pub(super) fn pack_matrix(
    context: &CompileContext<'_>,
    isas: Isas,
    name: &str,
    weights: &Tensor,
    (k, n): (usize, usize),
    strides: (usize, usize),
    zeros: &[i32],
) -> Result<Arc<PackedInt8>, CompileError> {
    let form = format!("gemm int8 {k}x{n} {strides:?} {zeros:?} {isas:?}");
    context.packs.get(weights, &form, || {
        let pack = |slice: Int8Slice<'_>| PackedInt8::pack(isas, (k, n), slice, strides, zeros);
        with_slice(weights, pack).map_err(|e| CompileError::Backend {
            backend: Cpu::ID,
            node: name.to_owned(),
            reason: e.to_string(),
        })
    })
}

fn operand<T: Quantized + TryFrom<i32>>(ty: &TensorType) -> Result<QuantizedOperand<T>, Unsupported> {
    let (scale, zero) = per_tensor(ty)?;
    let zero_point = T::try_from(zero).ok();
    zero_point.map_or_else(
        || refuse("the zero point is out of range"),
        |zero_point| Ok(QuantizedOperand { scale, zero_point }),
    )
}

/// Sums and products of quantized values.
pub(super) fn binary(cpu: Cpu, op: &Binary, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    fn typed<T: Element + Quantized + TryFrom<i32>>(
        cpu: Cpu,
        function: QuantizedBinary,
        plan: Broadcast,
        node: NodeView<'_>,
    ) -> Result<Lowered, Unsupported> {
        let (a, b) = (operand::<T>(node.input(0)?)?, operand::<T>(node.input(1)?)?);
        let y = operand::<T>(node.output(0)?)?;
        let isas = cpu.isas;
        Ok(direct(format!("quantized_binary_{}_{}", T::TYPE, isas.best()), move |bind| {
            let operands = [(bind.input(0), a), (bind.input(1), b)];
            let out = bind.output(0);
            kernel::quantized_binary::<T>(
                isas,
                bind.team(),
                function,
                &plan,
                operands,
                (out, y),
                (T::narrow(T::MIN), T::narrow(T::MAX)),
            );
        }))
    }
    let function = match op.kind {
        BinaryKind::Add => QuantizedBinary::Add,
        BinaryKind::Mul => QuantizedBinary::Mul,
        _ => return refuse("no kernel for this function of quantized values"),
    };
    let element = node.element(0)?;
    if node.element(1)? != element || node.output(0)?.element != element {
        return refuse("operands and result are stored in different types");
    }
    let layout = node.output_layout(0)?;
    let rank = node.output_shape(0)?.len();
    let (a, b) = (operand_shape(node, 0, rank, layout)?, operand_shape(node, 1, rank, layout)?);
    let plan = Broadcast::new(&[&a, &b]).map_err(shapes)?;
    match element {
        ElementType::U8 => typed::<u8>(cpu, function, plan, node),
        ElementType::I8 => typed::<i8>(cpu, function, plan, node),
        other => Err(Unsupported::ElementType(other)),
    }
}

/// A function of one quantized number: a table of 256 results.
pub(super) fn unary(op: &Unary, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    let function = super::unary::function(op.kind).ok_or(Unsupported::Operator("this function"))?;
    table(node, "quantized_table", move |x| {
        let mut y = [0.0];
        let isas = Isas::only(&[armet_kernels::isa::Isa::Scalar]);
        armet_kernels::elementwise::unary(
            isas,
            &armet_kernels::threads::Team::single(),
            function,
            &[x],
            &mut y,
        );
        y[0]
    })
}

/// A table from stored bytes to stored bytes.
pub(super) fn table(
    node: NodeView<'_>,
    name: &str,
    function: impl Fn(f32) -> f32,
) -> Result<Lowered, Unsupported> {
    same_layout(node)?;
    let (x, y) = (node.input(0)?, node.output(0)?);
    let bytes: [u8; 256] = match (x.element, y.element) {
        (ElementType::U8, ElementType::U8) => {
            kernel::table_of(operand::<u8>(x)?, operand::<u8>(y)?, function)
        }
        (ElementType::I8, ElementType::U8) => {
            kernel::table_of(operand::<i8>(x)?, operand::<u8>(y)?, function)
        }
        (ElementType::U8, ElementType::I8) => {
            kernel::table_of(operand::<u8>(x)?, operand::<i8>(y)?, function).map(|v| v as u8)
        }
        (ElementType::I8, ElementType::I8) => {
            kernel::table_of(operand::<i8>(x)?, operand::<i8>(y)?, function).map(|v| v as u8)
        }
        (other, _) => return Err(Unsupported::ElementType(other)),
    };
    Ok(direct(name, move |b| kernel::lookup(b.team(), &bytes, b.bytes(0), b.output_bytes(0))))
}

/// The mean of all pixels of quantized pictures.
pub(super) fn global_average(cpu: Cpu, op: &GlobalPool, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    fn typed<T: Element + Quantized + TryFrom<i32>>(
        cpu: Cpu,
        average: GlobalAverage,
        node: NodeView<'_>,
    ) -> Result<Lowered, Unsupported> {
        let (x, y) = (operand::<T>(node.input(0)?)?, operand::<T>(node.output(0)?)?);
        let isas = cpu.isas;
        Ok(direct(format!("global_average_{}_{}", T::TYPE, isas.best()), move |b| {
            average.run::<T>(isas, b.team(), (b.input(0), x), (b.output(0), y));
        }))
    }
    if op.kind != PoolKind::Average {
        return refuse("no kernel for this pooling of quantized values");
    }
    let shape = node.shape(0)?;
    let element = node.element(0)?;
    if node.output(0)?.element != element {
        return refuse("input and output are stored in different types");
    }
    let average = GlobalAverage {
        batch: shape[0],
        channels: shape[1],
        spatial: shape[2..].iter().product(),
        order: if node.layout(0)? == Layout::Plain { ChannelOrder::First } else { ChannelOrder::Last },
    };
    match element {
        ElementType::U8 => typed::<u8>(cpu, average, node),
        ElementType::I8 => typed::<i8>(cpu, average, node),
        other => Err(Unsupported::ElementType(other)),
    }
}
