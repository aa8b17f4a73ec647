//! THE list of operators. docs/conformance.md tells how each one fares.
//!
//! An operator is one struct in one file of this folder: its attributes, the types of its results, its meaning, its
//! cost and its test cases. Adding a line here makes every backend fail to compile until it answers.

use crate::{Attributes, Case, Context, EvaluateError, InferError, InferInputs, Value, ValueType};

mod movement;
pub(crate) mod support;

pub mod numbers;
pub mod window;

/// How much work a use of an operator is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Floating-point or integer arithmetic operations; a multiply-add counts two.
    pub operations: u64,
    /// Bytes of inputs, weights and results that must be moved at least once.
    pub bytes: u64,
}

/// What an operator must say of itself. No method has a default: half an operator does not compile.
pub trait Operator: std::fmt::Debug + Send + Sync {
    /// Its name: ONNX's where it has one.
    fn name(&self) -> &'static str;
    /// Its attributes, for dumps, hashes and reports.
    fn attributes(&self) -> Attributes;
    /// The types of its results.
    ///
    /// Quantized inputs are shown as the real numbers they stand for (`float32`).
    ///
    /// # Errors
    /// [`InferError::NeedsValue`] or [`InferError::NeedsRank`] when data of the run decides; others are faults.
    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError>;
    /// Its meaning: scalar, obvious, double precision inside. The oracle of every kernel.
    ///
    /// # Errors
    /// When an input is missing, or has a type or contents that the operator has no meaning for.
    fn evaluate(&self, inputs: &[Option<&Value>], context: &Context) -> Result<Vec<Value>, EvaluateError>;
    /// The arithmetic of one evaluation: operations only; bytes follow from the types.
    fn operations(&self, inputs: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64;
    /// What every backend is held to.
    fn cases() -> Vec<Case>
    where
        Self: Sized;
}

macro_rules! operators {
    ($($(#[$doc:meta])* $variant:ident($module:ident::$ty:ident)),* $(,)?) => {
        /// Any operator.
        #[derive(Debug, Clone)]
        pub enum Op { $($(#[$doc])* $variant($ty)),* }

        /// Which operator, without its attributes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum OpKind { $($(#[$doc])* $variant),* }

        impl OpKind {
            /// Every operator.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The variant's name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant)),* }
            }

            /// What every backend is held to.
            pub fn cases(self) -> Vec<Case> {
                match self { $(Self::$variant => $ty::cases()),* }
            }
        }

        impl Op {
            /// Which operator this is.
            pub const fn kind(&self) -> OpKind {
                match self { $(Self::$variant(_) => OpKind::$variant),* }
            }

            /// The operator's own description of itself.
            pub fn operator(&self) -> &dyn Operator {
                match self { $(Self::$variant(op) => op),* }
            }
        }

        $(impl From<$ty> for Op { fn from(op: $ty) -> Self { Self::$variant(op) } })*
    };
}

macro_rules! modules {
    ($($module:ident: $($ty:ident),+;)*) => { $(mod $module; pub use $module::{$($ty),+};)* };
}

modules! {
    unary: Unary, UnaryKind;
    binary: Binary, BinaryKind;
    clip: Clip;
    where_select: Where;
    cast: Cast;
    cast_like: CastLike;
    bit_cast: BitCast;
    reduce: Reduce, ReduceKind;
    arg_reduce: ArgReduce, ArgKind;
    conv: Conv;
    conv_transpose: ConvTranspose;
    deform_conv: DeformConv;
    col2im: Col2Im;
    matmul: MatMul;
    gemm: Gemm;
    det: Det;
    dft: Dft;
    mel_weight_matrix: MelWeightMatrix;
    pool: Pool, PoolKind;
    global_pool: GlobalPool;
    roi_align: RoiAlign;
    max_roi_pool: MaxRoiPool;
    softmax: Softmax;
    batch_normalization: BatchNormalization;
    layer_normalization: LayerNormalization;
    instance_normalization: InstanceNormalization;
    attention: Attention, ScoreStage;
    flex_attention: FlexAttention;
    linear_attention: LinearAttention;
    rotary_embedding: RotaryEmbedding;
    group_query_attention: GroupQueryAttention;
    matmul_n_bits: MatMulNBits;
    inverse: Inverse;
    concat: Concat;
    split: Split;
    slice: Slice;
    gather: Gather;
    gather_elements: GatherElements;
    gather_nd: GatherNd;
    scatter_elements: ScatterElements;
    scatter_nd: ScatterNd, ScatterReduction;
    tensor_scatter: TensorScatter;
    transpose: Transpose;
    reshape: Reshape;
    flatten: Flatten;
    squeeze: Squeeze;
    unsqueeze: Unsqueeze;
    expand: Expand;
    tile: Tile;
    pad: Pad, PadMode;
    resize: Resize, ResizeMode, CoordinateMode, NearestMode, AspectPolicy, AxisScale, Taps;
    grid_sample: GridSample, GridMode, GridPadding;
    channel_shuffle: ChannelShuffle;
    depth_to_space: DepthToSpace;
    space_to_depth: SpaceToDepth;
    shape: ShapeOf;
    size: Size;
    constant_of_shape: ConstantOfShape;
    range: Range;
    non_zero: NonZero;
    unique: Unique;
    non_max_suppression: NonMaxSuppression;
    cumulate: Cumulate, CumulateKind;
    one_hot: OneHot;
    top_k: TopK;
    trilu: Trilu;
    reverse_sequence: ReverseSequence;
    identity: Identity;
    recurrent: Recurrent, RecurrentKind, RecurrentActivation, Direction;
    conditional: If;
    looping: Loop, MOST_TURNS, stack;
    sequence: Sequence, SequenceKind;
    split_to_sequence: SplitToSequence;
    concat_from_sequence: ConcatFromSequence;
    optional: Optional, OptionalKind;
    random: Random, Distribution;
    string_normalizer: StringNormalizer, LetterCase;
    string_concat: StringConcat;
    string_split: StringSplit;
    regex_full_match: RegexFullMatch;
    tf_idf_vectorizer: TfIdfVectorizer, TermWeight;
    label_encoder: LabelEncoder;
    tree_ensemble: TreeEnsemble, TreeNode, TreeBranch, TreeTest, TreeAggregate;
    svm_probabilities: SvmProbabilities;
    quantize_linear: QuantizeLinear;
    dequantize_linear: DequantizeLinear;
    dynamic_quantize_linear: DynamicQuantizeLinear;
    matmul_integer: MatMulInteger;
    conv_integer: ConvInteger;
    requantize: Requantize;
    convert_layout: ConvertLayout;
    custom: Custom, CustomError, CustomFailure, CustomNode, CustomOperator, CustomOperators, CustomProblem,
        CustomRegistration;
}

operators! {
    /// A function of one number, for each element.
    Unary(unary::Unary),
    /// A function of two numbers, with NumPy broadcasting.
    Binary(binary::Binary),
    /// Limits given as inputs.
    Clip(clip::Clip),
    /// Elements of one input or of the other, by a condition.
    Where(where_select::Where),
    /// Conversion of the element type.
    Cast(cast::Cast),
    /// Conversion to the element type of another tensor.
    CastLike(cast_like::CastLike),
    /// The same bits read as another element type.
    BitCast(bit_cast::BitCast),
    /// Sum, mean, maximum ... over axes.
    Reduce(reduce::Reduce),
    /// Index of the maximum or minimum along an axis.
    ArgReduce(arg_reduce::ArgReduce),
    /// Convolution over any number of spatial axes.
    Conv(conv::Conv),
    /// Transposed convolution.
    ConvTranspose(conv_transpose::ConvTranspose),
    /// Convolution with moved taps.
    DeformConv(deform_conv::DeformConv),
    /// Columns of blocks added up to a picture.
    Col2Im(col2im::Col2Im),
    /// Matrix product over the last two axes, batched, with optional bias.
    MatMul(matmul::MatMul),
    /// `alpha * A' * B' + beta * C` of matrices.
    Gemm(gemm::Gemm),
    /// Determinants.
    Det(det::Det),
    /// The discrete Fourier transform.
    Dft(dft::Dft),
    /// The matrix that turns spectra into the mel scale.
    MelWeightMatrix(mel_weight_matrix::MelWeightMatrix),
    /// Matrix product with weights of few bits.
    MatMulNBits(matmul_n_bits::MatMulNBits),
    /// The inverse of square matrices.
    Inverse(inverse::Inverse),
    /// Maximum, average or Lp norm of a sliding window.
    Pool(pool::Pool),
    /// Maximum or average of all spatial axes.
    GlobalPool(global_pool::GlobalPool),
    /// Regions of pictures brought to one size by interpolation.
    RoiAlign(roi_align::RoiAlign),
    /// The largest elements of bins of regions.
    MaxRoiPool(max_roi_pool::MaxRoiPool),
    /// Softmax or its logarithm along an axis.
    Softmax(softmax::Softmax),
    /// Scale and shift by stored statistics, per channel.
    BatchNormalization(batch_normalization::BatchNormalization),
    /// Normalization over the trailing axes.
    LayerNormalization(layer_normalization::LayerNormalization),
    /// Normalization of each channel of each item.
    InstanceNormalization(instance_normalization::InstanceNormalization),
    /// Attention by scaled products.
    Attention(attention::Attention),
    /// Attention over a cache that is written here.
    GroupQueryAttention(group_query_attention::GroupQueryAttention),
    /// Attention with subgraphs for scores and probabilities.
    FlexAttention(flex_attention::FlexAttention),
    /// Attention by a state that is carried along.
    LinearAttention(linear_attention::LinearAttention),
    /// Positions turned into rotations.
    RotaryEmbedding(rotary_embedding::RotaryEmbedding),
    /// Joins tensors along an axis.
    Concat(concat::Concat),
    /// Cuts a tensor along an axis.
    Split(split::Split),
    /// A strided part of a tensor.
    Slice(slice::Slice),
    /// Entries of one axis, by index.
    Gather(gather::Gather),
    /// Elements by index along one axis.
    GatherElements(gather_elements::GatherElements),
    /// Elements or slices by coordinates.
    GatherNd(gather_nd::GatherNd),
    /// Writes elements by index along one axis.
    ScatterElements(scatter_elements::ScatterElements),
    /// Writes elements or slices by coordinates.
    ScatterNd(scatter_nd::ScatterNd),
    /// Writes new entries into a cache along one axis.
    TensorScatter(tensor_scatter::TensorScatter),
    /// Permutes axes.
    Transpose(transpose::Transpose),
    /// Another shape for the same elements.
    Reshape(reshape::Reshape),
    /// Two axes in place of all.
    Flatten(flatten::Flatten),
    /// Drops axes of length one.
    Squeeze(squeeze::Squeeze),
    /// Adds axes of length one.
    Unsqueeze(unsqueeze::Unsqueeze),
    /// Broadcasts to a shape.
    Expand(expand::Expand),
    /// Repeats along axes.
    Tile(tile::Tile),
    /// Adds or removes margins.
    Pad(pad::Pad),
    /// Interpolates to other sizes.
    Resize(resize::Resize),
    /// Samples at given places.
    GridSample(grid_sample::GridSample),
    /// Channels of several groups, one of each in turn.
    ChannelShuffle(channel_shuffle::ChannelShuffle),
    /// Moves channels into blocks of pixels.
    DepthToSpace(depth_to_space::DepthToSpace),
    /// Moves blocks of pixels into channels.
    SpaceToDepth(space_to_depth::SpaceToDepth),
    /// The dimensions of a tensor, as a tensor.
    Shape(shape::ShapeOf),
    /// The number of elements of a tensor, as a tensor.
    Size(size::Size),
    /// One value repeated in a shape that is an input.
    ConstantOfShape(constant_of_shape::ConstantOfShape),
    /// Numbers from start to limit by steps.
    Range(range::Range),
    /// Coordinates of the elements that are not zero.
    NonZero(non_zero::NonZero),
    /// Elements or slices without repetition.
    Unique(unique::Unique),
    /// Boxes chosen by score that do not overlap.
    NonMaxSuppression(non_max_suppression::NonMaxSuppression),
    /// Running sum or product along an axis.
    Cumulate(cumulate::Cumulate),
    /// Indicator vectors of indices.
    OneHot(one_hot::OneHot),
    /// The largest or smallest elements along an axis.
    TopK(top_k::TopK),
    /// The upper or lower triangle of matrices.
    Trilu(trilu::Trilu),
    /// Beginnings of sequences turned around.
    ReverseSequence(reverse_sequence::ReverseSequence),
    /// The value itself.
    Identity(identity::Identity),
    /// LSTM, GRU or plain recurrent layer over a sequence.
    Recurrent(recurrent::Recurrent),
    /// One of two subgraphs, by a condition.
    If(conditional::If),
    /// A subgraph again and again, some results carried along, others stacked.
    Loop(looping::Loop),
    /// Lists of tensors: made, read, changed.
    Sequence(sequence::Sequence),
    /// A tensor cut into a list of tensors.
    SplitToSequence(split_to_sequence::SplitToSequence),
    /// A list of tensors joined to one.
    ConcatFromSequence(concat_from_sequence::ConcatFromSequence),
    /// A value or nothing: made, read, asked.
    Optional(optional::Optional),
    /// Random numbers.
    Random(random::Random),
    /// Words left out, and the others in one case.
    StringNormalizer(string_normalizer::StringNormalizer),
    /// Texts behind texts.
    StringConcat(string_concat::StringConcat),
    /// Texts cut into parts.
    StringSplit(string_split::StringSplit),
    /// Which texts are of a pattern.
    RegexFullMatch(regex_full_match::RegexFullMatch),
    /// How often n-grams are in rows of words.
    TfIdfVectorizer(tf_idf_vectorizer::TfIdfVectorizer),
    /// Values looked up in a table.
    LabelEncoder(label_encoder::LabelEncoder),
    /// Sums of what decision trees say.
    TreeEnsemble(tree_ensemble::TreeEnsemble),
    /// Probabilities of classes from scores for pairs of them.
    SvmProbabilities(svm_probabilities::SvmProbabilities),
    /// Real numbers to integers, parameters as inputs.
    QuantizeLinear(quantize_linear::QuantizeLinear),
    /// Integers to real numbers, parameters as inputs.
    DequantizeLinear(dequantize_linear::DequantizeLinear),
    /// Real numbers to `uint8`, parameters measured.
    DynamicQuantizeLinear(dynamic_quantize_linear::DynamicQuantizeLinear),
    /// Matrix product of integers, summed in `int32`.
    MatMulInteger(matmul_integer::MatMulInteger),
    /// Convolution of integers, summed in `int32`.
    ConvInteger(conv_integer::ConvInteger),
    /// The same real numbers stored otherwise: quantized, dequantized, or with other scales.
    Requantize(requantize::Requantize),
    /// The same tensor laid out otherwise in memory.
    ConvertLayout(convert_layout::ConvertLayout),
    /// What the engine does not know, given by whoever loads the model.
    Custom(custom::Custom),
}

impl Op {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.operator().name()
    }

    /// Its attributes.
    pub fn attributes(&self) -> Attributes {
        self.operator().attributes()
    }

    /// Whether two evaluations of equal inputs give equal results, as far as is known.
    pub fn is_deterministic(&self) -> bool {
        !matches!(self, Self::Random(_) | Self::Custom(_))
    }

    /// The cost of one evaluation, when the types are concrete.
    pub fn cost(&self, inputs: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> Cost {
        let bytes = |types: &[Option<&ValueType>]| -> u64 {
            types.iter().flatten().filter_map(|t| t.tensor()?.byte_len()).map(|n| n as u64).sum()
        };
        Cost {
            operations: self.operator().operations(inputs, outputs),
            bytes: bytes(inputs) + bytes(outputs),
        }
    }
}
