//! Every operator and its answer: a kernel, or an explicit no.

use armet_graph::Op;
use armet_runtime::{Lowered, NodeView, Unsupported};

use crate::{Cpu, ops};

#[deny(clippy::wildcard_enum_match_arm)]
pub(crate) fn lower(cpu: Cpu, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    let refuse = || Err(Unsupported::Operator(node.node().op.name()));
    match &node.node().op {
        Op::Custom(_) => Err(Unsupported::Custom),
        Op::Unary(op) => ops::unary::lower(cpu, op, node),
        Op::Binary(op) => ops::binary::lower(cpu, op, node),
        Op::Where(_) => ops::where_select::lower(cpu, node),
        Op::Cast(op) => ops::cast::lower(cpu, op, node),
        Op::CastLike(op) => ops::cast::lower(cpu, &op.to(node.output(0)?.element), node),
        Op::Concat(op) => ops::concat::lower(op, node),
        Op::Split(op) => ops::split::lower(op, node),
        Op::Slice(_) => ops::slice::lower(node),
        Op::Transpose(op) => ops::transpose::lower(op, node),
        Op::Reshape(_) | Op::Flatten(_) | Op::Squeeze(_) | Op::Unsqueeze(_) | Op::Identity(_) => {
            ops::reshape::lower(node)
        }
        Op::Expand(_) => ops::expand::lower(node),
        Op::Tile(_) => ops::tile::lower(node),
        Op::Pad(op) => ops::pad::lower(op, node),
        Op::ConvertLayout(_) => ops::convert_layout::lower(node),
        Op::MatMul(op) => ops::matmul::lower(cpu, op, node),
        Op::Gemm(op) => ops::matmul::lower_gemm(cpu, op, node),
        Op::GlobalPool(op) => ops::global_pool::lower(cpu, op, node),
        Op::Pool(op) => ops::pool::lower(cpu, op, node),
        Op::Resize(op) => ops::resize::lower(cpu, op, node),
        Op::Gather(op) => ops::gather::lower(op, node),
        Op::GatherElements(op) => ops::gather::lower_elements(op, node),
        Op::GatherNd(op) => ops::gather::lower_nd(op, node),
        Op::Recurrent(op) => ops::recurrent::lower(cpu, op, node),
        Op::Requantize(_) => ops::requantize::lower(cpu, node),
        Op::QuantizeLinear(op) => ops::requantize::lower_quantize(cpu, op, node),
        Op::DequantizeLinear(op) => ops::requantize::lower_dequantize(cpu, op, node),
        Op::DynamicQuantizeLinear(_) => ops::requantize::lower_dynamic(cpu, node),
        Op::MatMulInteger(_) => ops::matmul_integer::lower(cpu, node),
        Op::Clip(_) => ops::clip::lower(cpu, node),
        Op::Cumulate(op) => ops::cumulate::lower(op, node),
        Op::ScatterElements(op) => ops::scatter::lower_elements(op, node),
        Op::ScatterNd(op) => ops::scatter::lower_nd(op, node),
        Op::Softmax(op) => ops::softmax::lower(cpu, op, node),
        Op::BatchNormalization(op) => ops::batch_normalization::lower(cpu, op, node),
        Op::LayerNormalization(op) => ops::layer_normalization::lower(cpu, op, node),
        Op::InstanceNormalization(op) => ops::instance_normalization::lower(cpu, op, node),
        Op::Reduce(op) => ops::reduce::lower(cpu, op, node),
        Op::Conv(op) => ops::conv::lower(cpu, op, node),
        Op::ConvTranspose(op) => ops::conv_transpose::lower(cpu, op, node),
        Op::GridSample(op) => ops::grid_sample::lower(cpu, op, node),
        Op::RoiAlign(op) => ops::roi_align::lower(cpu, op, node),
        Op::BitCast(_) => ops::bit_cast::lower(node),
        Op::OneHot(op) => ops::one_hot::lower(op, node),
        Op::Trilu(op) => ops::trilu::lower(op, node),
        Op::ReverseSequence(op) => ops::reverse_sequence::lower(op, node),
        Op::TensorScatter(op) => ops::tensor_scatter::lower(op, node),
        Op::Dft(op) => ops::dft::lower(op, node),
        Op::ArgReduce(op) => ops::arg_reduce::lower(cpu, op, node),
        Op::TopK(op) => ops::top_k::lower(op, node),
        Op::ChannelShuffle(op) => ops::channel_shuffle::lower(op, node),
        Op::DepthToSpace(op) => ops::depth_to_space::lower(op, node),
        Op::SpaceToDepth(op) => ops::depth_to_space::lower_back(op, node),
        Op::DeformConv(op) => ops::deform_conv::lower(cpu, op, node),
        Op::ConvInteger(op) => ops::conv_integer::lower(cpu, op, node),
        Op::RotaryEmbedding(op) => ops::rotary_embedding::lower(cpu, op, node),
        Op::MatMulNBits(op) => ops::matmul_n_bits::lower(cpu, op, node),
        Op::Attention(op) => ops::attention::lower(cpu, op, node),
        Op::GroupQueryAttention(_)
        | Op::Inverse(_)
        | Op::FlexAttention(_)
        | Op::LinearAttention(_)
        | Op::Shape(_)
        | Op::Size(_)
        | Op::ConstantOfShape(_)
        | Op::Range(_)
        | Op::NonZero(_)
        | Op::Col2Im(_)
        | Op::MaxRoiPool(_)
        | Op::Det(_)
        | Op::MelWeightMatrix(_)
        | Op::Unique(_)
        | Op::NonMaxSuppression(_)
        | Op::If(_)
        | Op::Loop(_)
        | Op::Sequence(_)
        | Op::SplitToSequence(_)
        | Op::ConcatFromSequence(_)
        | Op::Optional(_)
        | Op::StringNormalizer(_)
        | Op::StringConcat(_)
        | Op::StringSplit(_)
        | Op::RegexFullMatch(_)
        | Op::TfIdfVectorizer(_)
        | Op::LabelEncoder(_)
        | Op::TreeEnsemble(_)
        | Op::SvmProbabilities(_)
        | Op::Random(_) => refuse(),
    }
}
