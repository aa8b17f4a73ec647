//! Rewrites that keep a graph's meaning and make it cheaper. THE list of passes, in the order in which they run.
//!
//! A pass is one file of this folder with one function that edits a graph and says how many rewrites it made. It may
//! count on types: every value's type is inferred before the first pass and kept right by each. Shapes may be symbolic;
//! a pass rewrites only where what it needs is known. Running all passes again on their own result changes nothing that
//! matters, so a model may be simplified once, cloned, given concrete shapes and simplified again.

use std::time::{Duration, Instant};

use crate::{Graph, GraphError};

mod affine;
mod facts;
mod heads;
mod patterns;
mod rewrite;
#[cfg(test)]
mod testing;

mod assign_layouts;
mod batch_normalization_to_scale;
mod fold_add_into_matmul;
mod fold_batch_normalization_into_conv;
mod fold_constants;
mod fold_pad_into_conv;
mod fold_scale_into_conv;
mod fold_scale_into_matmul;
mod fold_transpose_into_matmul;
mod fuse_activation_into_conv;
mod fuse_add_into_conv;
mod gemm_to_matmul;
mod inline_conditionals;
mod limits_to_clip;
mod merge_equal_nodes;
mod merge_reshapes;
mod merge_transposes;
mod qdq_to_typed_values;
mod recognise_activations;
mod recognise_attention;
mod recognise_channel_shuffle;
mod recognise_layer_normalization;
mod recognise_rotary_embedding;
mod reduce_to_global_pool;
mod remove_dead_code;
mod remove_identities;

/// One rewrite of the list.
#[derive(Clone, Copy)]
pub struct Pass {
    /// Its name: that of its file.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    run: fn(&mut Graph, &PassContext<'_>) -> Result<usize, GraphError>,
}

impl std::fmt::Debug for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pass").field("name", &self.name).finish_non_exhaustive()
    }
}

macro_rules! passes {
    ($($module:ident: $summary:literal;)*) => {
        /// Every pass, in the order in which they run.
        pub const ALL: &[Pass] =
            &[$(Pass { name: stringify!($module), summary: $summary, run: $module::run }),*];
    };
}

passes! {
    fold_constants: "Computes what follows from constants and from concrete shapes.";
    inline_conditionals: "Puts the taken branch in place of an If whose condition is a constant.";
    remove_dead_code: "Removes nodes and contents that no result of the graph needs.";
    merge_equal_nodes: "Computes the same from the same inputs once.";
    remove_identities: "Removes nodes that give their input back.";
    reduce_to_global_pool: "Makes reductions over all spatial axes global pooling.";
    merge_reshapes: "Makes rows of Reshape, Squeeze, Unsqueeze and Flatten one Reshape with a constant shape.";
    merge_transposes: "Makes rows of Transpose one, or none where they undo each other.";
    recognise_channel_shuffle: "Makes an exchange of groups of channels, by Reshape, Transpose and Reshape, one node.";
    limits_to_clip: "Makes Clip, Min and Max with constant limits a function of one number.";
    recognise_activations: "Makes spelled-out SiLU, hard-swish, GELU, Softplus and Mish one node.";
    recognise_layer_normalization: "Makes spelled-out LayerNormalization and RMSNormalization one node.";
    fold_pad_into_conv: "Takes a Pad into the padding of the Conv or pooling behind it.";
    gemm_to_matmul: "Makes Gemm a MatMul with a bias.";
    fold_transpose_into_matmul: "Takes the exchange of an operand's last two axes into a flag of MatMul.";
    fold_scale_into_matmul: "Takes a factor before or behind a MatMul into its alpha.";
    recognise_rotary_embedding: "Makes spelled-out rotary embedding one node.";
    recognise_attention: "Makes spelled-out attention one node, which takes heads beside each other.";
    fold_batch_normalization_into_conv: "Takes BatchNormalization into the weights and bias before it.";
    fold_scale_into_conv: "Takes arithmetic with constants per channel into the weights and bias before it.";
    fold_add_into_matmul: "Makes an added vector the bias of a MatMul.";
    batch_normalization_to_scale: "Makes a BatchNormalization that is left a product and a sum.";
    fuse_add_into_conv: "Lets a Conv or MatMul add a tensor to its result.";
    fuse_activation_into_conv: "Lets a Conv, ConvTranspose or MatMul apply the activation behind it.";
    qdq_to_typed_values: "Makes quantization with constant parameters part of the values' types.";
    assign_layouts: "Lets values lie as kernels want them and converts at the borders.";
}

/// What a pass may know besides the graph.
struct PassContext<'a> {
    layout: Option<&'a dyn LayoutPreference>,
}

/// How the passes run.
#[derive(Clone, Copy, Default)]
pub struct PassOptions<'a> {
    /// Names of passes that are left out.
    pub disabled: &'a [String],
    /// Called with the name of each pass and the graph it left.
    pub after: Option<&'a dyn Fn(&'static str, &Graph)>,
    /// How the backend wants values laid out; without it all stay plain.
    pub layout: Option<&'a dyn LayoutPreference>,
}

impl std::fmt::Debug for PassOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PassOptions").field("disabled", &self.disabled).finish_non_exhaustive()
    }
}

/// What one pass did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassReport {
    /// Its name.
    pub name: &'static str,
    /// Rewrites it made.
    pub rewrites: usize,
    /// Nodes before it.
    pub nodes_before: usize,
    /// Nodes behind it.
    pub nodes_after: usize,
    /// Time it took.
    pub duration: Duration,
}

/// Which layouts a backend wants around a node.
pub trait LayoutPreference {
    /// What it wants for this node.
    fn preference(&self, graph: &Graph, node: crate::NodeId) -> LayoutChoice;
}

/// The layouts of a node's data inputs and results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LayoutChoice {
    /// The first input lies as `input`, the result and a tensor added to it as `output`. Weights and biases stay plain.
    Required {
        /// Layout of the first input.
        input: armet_tensor::Layout,
        /// Layout of the result.
        output: armet_tensor::Layout,
    },
    /// Any layout, if all data inputs and results share it. (A Reshape only counts as such where it leaves batch and
    /// channels alone.)
    Any,
    /// Inputs in any layout, results plain; a Transpose may write any layout as well.
    AnyInput,
    /// Plain inputs and results only.
    PlainOnly,
}

/// Runs every pass that is not disabled.
///
/// # Errors
/// When a disabled name is no pass, or the graph is not well formed.
pub fn run_all(graph: &mut Graph, options: &PassOptions<'_>) -> Result<Vec<PassReport>, GraphError> {
    run(graph, options, |_| true)
}

/// Runs only the pass that assigns layouts: for a graph that was simplified before and whose shapes are concrete.
///
/// # Errors
/// When a disabled name is no pass, or the graph is not well formed.
pub fn run_layout(graph: &mut Graph, options: &PassOptions<'_>) -> Result<Vec<PassReport>, GraphError> {
    run(graph, options, |name| name == "assign_layouts")
}

fn run(
    graph: &mut Graph,
    options: &PassOptions<'_>,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<PassReport>, GraphError> {
    for name in options.disabled {
        if !ALL.iter().any(|pass| pass.name == name) {
            let known = ALL.iter().map(|pass| pass.name).collect::<Vec<_>>().join(", ");
            return Err(GraphError::UnknownPass { name: name.clone(), known });
        }
    }
    crate::infer::infer(graph)?;
    let context = PassContext { layout: options.layout };
    let mut reports = Vec::with_capacity(ALL.len());
    for pass in ALL {
        if !wanted(pass.name) || options.disabled.iter().any(|name| name == pass.name) {
            continue;
        }
        let nodes_before = graph.node_count();
        let start = Instant::now();
        let rewrites = (pass.run)(graph, &context)?;
        let duration = start.elapsed();
        reports.push(PassReport {
            name: pass.name,
            rewrites,
            nodes_before,
            nodes_after: graph.node_count(),
            duration,
        });
        if let Some(after) = options.after {
            after(pass.name, graph);
        }
    }
    Ok(reports)
}
