//! What a backend is.

use armet_graph::{Graph, Node, NodeId, TensorType, ValueId};
use armet_kernels::threads::Team;
use armet_tensor::{Element, ElementType, Layout, Shape, Tensor};
use smallvec::SmallVec;

use crate::{CompileError, PackCache, RunError, Unsupported};

/// The name of a backend (`cpu`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BackendId(pub &'static str);

impl std::fmt::Display for BackendId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// What a backend runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Name of the device.
    pub name: String,
    /// Features it uses.
    pub features: Vec<String>,
}

/// Something that can run nodes.
pub trait Backend: Send + Sync + std::fmt::Debug {
    /// Its name.
    fn id(&self) -> BackendId;
    /// What it runs on.
    fn device(&self) -> DeviceInfo;
    /// The layouts its kernels want; `None` when it only knows the plain one.
    fn layouts(&self) -> Option<&dyn armet_graph::passes::LayoutPreference>;
    /// How it would run a node: cheap, nothing is packed or compiled yet.
    ///
    /// # Errors
    /// The reason why it does not.
    fn lower(&self, node: NodeView<'_>) -> Result<Lowered, Unsupported>;
}

/// A node that a backend takes.
pub enum Lowered {
    /// The first output is the first input's bytes: nothing runs.
    Alias,
    /// Each output is a part of the first input's bytes, from this byte on, one offset for each. Nothing runs where the
    /// input lies in the arena; where it does not, the kernel copies.
    Parts(SmallVec<[usize; 4]>, Box<dyn Lowering>),
    /// The inputs are the output's bytes, one behind the other. Nothing runs where the steps that write them can write
    /// into the output; where they cannot, the kernel copies.
    Whole(Box<dyn Lowering>),
    /// A kernel, still to be prepared.
    Kernel(Box<dyn Lowering>),
}

impl Lowered {
    /// A kernel that need not run where the outputs can be parts of the first input, from these bytes on.
    #[must_use]
    pub fn or_parts(self, offsets: SmallVec<[usize; 4]>) -> Self {
        match self {
            Self::Kernel(kernel) => Self::Parts(offsets, kernel),
            other => other,
        }
    }

    /// A kernel that need not run where the inputs can be written one behind the other.
    #[must_use]
    pub fn or_whole(self) -> Self {
        match self {
            Self::Kernel(kernel) => Self::Whole(kernel),
            other => other,
        }
    }
}

impl std::fmt::Debug for Lowered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Alias => "Alias",
            Self::Parts(..) => "Parts",
            Self::Whole(_) => "Whole",
            Self::Kernel(_) => "Kernel",
        })
    }
}

/// The work between accepting a node and being able to run it: choosing a kernel, packing weights.
pub trait Lowering {
    /// Does the work.
    ///
    /// # Errors
    /// When the backend cannot keep what it promised.
    fn compile(self: Box<Self>, context: &CompileContext<'_>) -> Result<Box<dyn CompiledNode>, CompileError>;
}

impl<F> Lowering for F
where
    F: FnOnce(&CompileContext<'_>) -> Result<Box<dyn CompiledNode>, CompileError>,
{
    fn compile(self: Box<Self>, context: &CompileContext<'_>) -> Result<Box<dyn CompiledNode>, CompileError> {
        self(context)
    }
}

/// What compilation offers to backends.
#[derive(Debug)]
pub struct CompileContext<'a> {
    /// Packed weights, shared by all plans and sessions of a model.
    pub packs: &'a PackCache,
    /// Size of the team that will run the plan.
    pub threads: usize,
}

/// A node that can be run: immutable, shared by sessions.
pub trait CompiledNode: Send + Sync {
    /// The kernel that runs, as it appears in reports.
    fn kernel(&self) -> String;
    /// Bytes of scratch memory one run needs.
    fn scratch_bytes(&self) -> usize;
    /// Runs on these buffers. Allocates nothing.
    ///
    /// # Errors
    /// When values contradict the node (an index out of range).
    fn run(&self, bindings: &mut Bindings<'_>) -> Result<(), RunError>;
}

/// The buffers of one run of one node.
#[derive(Debug)]
pub struct Bindings<'a> {
    pub(crate) inputs: SmallVec<[Option<&'a [u8]>; 8]>,
    pub(crate) outputs: SmallVec<[Option<&'a mut [u8]>; 4]>,
    pub(crate) scratch: Option<&'a mut [u8]>,
    pub(crate) team: &'a Team,
}

impl<'a> Bindings<'a> {
    /// For tests of kernels outside a plan.
    pub fn new(
        inputs: impl IntoIterator<Item = Option<&'a [u8]>>,
        outputs: impl IntoIterator<Item = Option<&'a mut [u8]>>,
        scratch: &'a mut [u8],
        team: &'a Team,
    ) -> Self {
        Self {
            inputs: inputs.into_iter().collect(),
            outputs: outputs.into_iter().collect(),
            scratch: Some(scratch),
            team,
        }
    }

    /// The threads to run on.
    pub fn team(&self) -> &'a Team {
        self.team
    }

    /// Number of inputs.
    pub fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// The bytes of an input; `None` when it was left out.
    pub fn optional_bytes(&self, index: usize) -> Option<&'a [u8]> {
        self.inputs.get(index).copied().flatten()
    }

    /// The bytes of an input that the node has.
    ///
    /// # Panics
    /// When it has not: lowering checked the node.
    pub fn bytes(&self, index: usize) -> &'a [u8] {
        self.optional_bytes(index).expect("lowering checked that the input is there")
    }

    /// The elements of an input whose type lowering has checked. All buffers of a plan are aligned.
    ///
    /// # Panics
    /// When the input is missing or not aligned.
    pub fn input<T: Element>(&self, index: usize) -> &'a [T] {
        bytemuck_cast(self.bytes(index))
    }

    /// As [`Bindings::input`], for an input that may be left out.
    ///
    /// # Panics
    /// When it is not aligned.
    pub fn optional_input<T: Element>(&self, index: usize) -> Option<&'a [T]> {
        self.optional_bytes(index).map(bytemuck_cast)
    }

    /// Takes the bytes of an output; each can be taken once.
    ///
    /// # Panics
    /// When the node has no such output, or it was taken before.
    pub fn output_bytes(&mut self, index: usize) -> &'a mut [u8] {
        self.optional_output_bytes(index).expect("lowering checked that the output is there")
    }

    /// Takes the bytes of an output that may not be wanted.
    pub fn optional_output_bytes(&mut self, index: usize) -> Option<&'a mut [u8]> {
        self.outputs.get_mut(index)?.take()
    }

    /// Takes the elements of an output; each can be taken once.
    ///
    /// # Panics
    /// When the node has no such output, or it was taken before.
    pub fn output<T: Element>(&mut self, index: usize) -> &'a mut [T] {
        self.optional_output(index).expect("lowering checked that the output is there")
    }

    /// As [`Bindings::output`], for an output that may not be wanted.
    ///
    /// # Panics
    /// When it is not aligned.
    pub fn optional_output<T: Element>(&mut self, index: usize) -> Option<&'a mut [T]> {
        let bytes = self.optional_output_bytes(index)?;
        if bytes.is_empty() {
            return Some(&mut []);
        }
        Some(bytemuck::try_cast_slice_mut(bytes).expect("plan buffers are aligned"))
    }

    /// Takes the scratch memory, as elements; what it holds is left over from other steps.
    pub fn scratch<T: Element>(&mut self) -> &'a mut [T] {
        let bytes = self.scratch.take().unwrap_or_default();
        if bytes.is_empty() {
            return &mut [];
        }
        let whole = bytes.len() / size_of::<T>() * size_of::<T>();
        bytemuck::try_cast_slice_mut(&mut bytes[..whole]).expect("plan buffers are aligned")
    }
}

fn bytemuck_cast<T: Element>(bytes: &[u8]) -> &[T] {
    if bytes.is_empty() {
        return &[];
    }
    bytemuck::try_cast_slice(bytes).expect("plan buffers are aligned")
}

/// A node with the types around it, as backends see it.
#[derive(Debug, Clone, Copy)]
pub struct NodeView<'a> {
    /// The graph it is in.
    pub graph: &'a Graph,
    /// Which node.
    pub id: NodeId,
}

impl<'a> NodeView<'a> {
    /// The node.
    pub fn node(&self) -> &'a Node {
        self.graph.node(self.id)
    }

    /// Whether the node has this input.
    pub fn has_input(&self, index: usize) -> bool {
        self.node().input(index).is_some()
    }

    fn input_value(&self, index: usize) -> Result<ValueId, Unsupported> {
        self.node().input(index).ok_or(Unsupported::NotConstant("a left-out input"))
    }

    fn output_value(&self, index: usize) -> Result<ValueId, Unsupported> {
        self.node().outputs.get(index).copied().flatten().ok_or(Unsupported::RunTimeShape)
    }

    fn tensor(&self, value: ValueId) -> Result<&'a TensorType, Unsupported> {
        self.graph.value(value).ty.tensor().ok_or(Unsupported::RunTimeShape)
    }

    /// The type of an input tensor.
    ///
    /// # Errors
    /// When it is left out or no tensor.
    pub fn input(&self, index: usize) -> Result<&'a TensorType, Unsupported> {
        self.tensor(self.input_value(index)?)
    }

    /// The type of an output tensor.
    ///
    /// # Errors
    /// When it is not wanted or no tensor.
    pub fn output(&self, index: usize) -> Result<&'a TensorType, Unsupported> {
        self.tensor(self.output_value(index)?)
    }

    /// The stored element type of an input.
    ///
    /// # Errors
    /// As [`NodeView::input`].
    pub fn element(&self, index: usize) -> Result<ElementType, Unsupported> {
        Ok(self.input(index)?.element)
    }

    /// The logical shape of an input.
    ///
    /// # Errors
    /// As [`NodeView::input`], or when it arrives at run time.
    pub fn shape(&self, index: usize) -> Result<Shape, Unsupported> {
        self.input(index)?.shape().ok_or(Unsupported::RunTimeShape)
    }

    /// The logical shape of an output.
    ///
    /// # Errors
    /// As [`NodeView::output`], or when it arrives at run time.
    pub fn output_shape(&self, index: usize) -> Result<Shape, Unsupported> {
        self.output(index)?.shape().ok_or(Unsupported::RunTimeShape)
    }

    /// How an input lies in memory.
    ///
    /// # Errors
    /// When it is left out.
    pub fn layout(&self, index: usize) -> Result<Layout, Unsupported> {
        Ok(self.graph.value(self.input_value(index)?).layout)
    }

    /// How an output lies in memory.
    ///
    /// # Errors
    /// When it is not wanted.
    pub fn output_layout(&self, index: usize) -> Result<Layout, Unsupported> {
        Ok(self.graph.value(self.output_value(index)?).layout)
    }

    /// The dimensions of an input in memory order.
    ///
    /// # Errors
    /// As [`NodeView::shape`].
    pub fn memory_shape(&self, index: usize) -> Result<Shape, Unsupported> {
        Ok(self.layout(index)?.physical(&self.shape(index)?))
    }

    /// The dimensions of an output in memory order.
    ///
    /// # Errors
    /// As [`NodeView::output_shape`].
    pub fn output_memory_shape(&self, index: usize) -> Result<Shape, Unsupported> {
        Ok(self.output_layout(index)?.physical(&self.output_shape(index)?))
    }

    /// The contents of an input, when known.
    pub fn constant(&self, index: usize) -> Option<&'a Tensor> {
        self.graph.constant(self.node().input(index)?)
    }
}
