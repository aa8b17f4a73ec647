//! Calling back: what a node has as the structs of the interface, and what comes back as types and tensors.

#![expect(unsafe_code, reason = "callbacks of a shared library take pointers")]

use std::ffi::{CString, c_char, c_void};
use std::ptr;

use armet_graph::ops::{CustomFailure, CustomNode, CustomOperator};
use armet_graph::{AttributeValue, Dim, InferError, InferInputs, TensorType, ValueType};
use armet_tensor::storage::AlignedBytes;
use armet_tensor::{ElementType, Shape, Tensor};

use crate::abi::{self, Callback, RawAttribute, RawCall, RawTensor};

/// Element types that cross the interface, with ONNX's numbers.
const ELEMENTS: [(i32, ElementType); 13] = [
    (1, ElementType::F32),
    (2, ElementType::U8),
    (3, ElementType::I8),
    (4, ElementType::U16),
    (5, ElementType::I16),
    (6, ElementType::I32),
    (7, ElementType::I64),
    (9, ElementType::Bool),
    (10, ElementType::F16),
    (11, ElementType::F64),
    (12, ElementType::U32),
    (13, ElementType::U64),
    (16, ElementType::Bf16),
];

/// Room for an error's text.
const MESSAGE: usize = 512;
/// What every buffer is aligned to.
const ALIGNMENT: usize = 64;

/// An operator of a library.
#[derive(Debug)]
pub(crate) struct LibraryOperator {
    pub(crate) infer: Callback,
    pub(crate) run: Callback,
    pub(crate) user: *mut c_void,
    pub(crate) may_give_nan: bool,
}

// SAFETY: the interface demands callbacks that several threads may call at once, and `user` is only handed to them.
unsafe impl Send for LibraryOperator {}
// SAFETY: as above.
unsafe impl Sync for LibraryOperator {}

/// A tensor on its way to a callback or back.
struct Piece {
    element: i32,
    dims: Vec<i64>,
    data: *mut c_void,
    bytes: usize,
}

impl Piece {
    /// Room for a type.
    fn empty() -> Self {
        Self { element: 0, dims: vec![0; abi::MAX_RANK], data: ptr::null_mut(), bytes: 0 }
    }

    fn new(element: ElementType, dims: Vec<i64>) -> Result<Self, String> {
        let found = ELEMENTS.iter().find(|(_, known)| *known == element);
        let (number, _) = found.ok_or_else(|| format!("{element} does not cross the C interface"))?;
        Ok(Self { element: *number, dims, data: ptr::null_mut(), bytes: 0 })
    }

    /// With the contents of a tensor, which `copies` holds where they are not aligned.
    fn of(tensor: &Tensor, copies: &mut Vec<AlignedBytes>) -> Result<Self, String> {
        let dims = tensor.shape().iter().map(|&d| d as i64).collect();
        let mut piece = Self::new(tensor.element(), dims)?;
        let mut bytes = tensor.bytes();
        if !bytes.as_ptr().addr().is_multiple_of(ALIGNMENT) {
            copies
                .push(AlignedBytes::try_copy_from(bytes).ok_or("there is no memory for a copy of an input")?);
            bytes = copies.last().map_or(bytes, |copy| &**copy);
        }
        // Callbacks may not write inputs.
        piece.data = bytes.as_ptr().cast_mut().cast();
        piece.bytes = bytes.len();
        Ok(piece)
    }

    fn raw(&mut self, rank: usize) -> RawTensor {
        RawTensor {
            size: size_of::<RawTensor>(),
            element: self.element,
            rank: i32::try_from(rank).unwrap_or(i32::MAX),
            dims: self.dims.as_mut_ptr(),
            data: self.data,
            bytes: self.bytes,
        }
    }
}

/// What a result was handed over as.
#[derive(PartialEq)]
struct Handed {
    element: i32,
    rank: i32,
    dims: (*mut i64, Vec<i64>),
    data: *mut c_void,
    bytes: usize,
}

impl Handed {
    fn of((raw, piece): (&RawTensor, &Piece)) -> Self {
        Self {
            element: raw.element,
            rank: raw.rank,
            dims: (raw.dims, piece.dims.clone()),
            data: raw.data,
            bytes: raw.bytes,
        }
    }
}

/// What a callback said.
enum Answer {
    Ok(Vec<(i32, i32)>),
    NeedsShape,
    NeedsValue(usize),
    Failed(String),
}

fn text(value: &str) -> Result<CString, String> {
    CString::new(value).map_err(|_| format!("the text {value:?} holds a zero byte"))
}

/// Attributes with everything that they point to.
#[derive(Default)]
struct Attributes {
    texts: Vec<CString>,
    #[expect(
        clippy::vec_box,
        reason = "attributes point at these: they stay where they are when the list grows"
    )]
    tensors: Vec<Box<RawTensor>>,
    pieces: Vec<Piece>,
    copies: Vec<AlignedBytes>,
    raw: Vec<RawAttribute>,
}

impl Attributes {
    fn of(node: &CustomNode) -> Result<Self, String> {
        let mut all = Self::default();
        for (name, value) in &node.attributes {
            let mut raw = RawAttribute {
                size: size_of::<RawAttribute>(),
                name: all.text(name)?,
                kind: 0,
                count: 1,
                ints: ptr::null(),
                floats: ptr::null(),
                text: ptr::null(),
                tensor: ptr::null(),
            };
            match value {
                AttributeValue::Int(value) => {
                    (raw.kind, raw.ints) = (abi::ATTRIBUTE_INT, ptr::from_ref(value));
                }
                AttributeValue::Float(value) => {
                    (raw.kind, raw.floats) = (abi::ATTRIBUTE_FLOAT, ptr::from_ref(value));
                }
                AttributeValue::Text(value) => {
                    (raw.kind, raw.text) = (abi::ATTRIBUTE_TEXT, all.text(value)?);
                }
                AttributeValue::Ints(values) => {
                    (raw.kind, raw.count, raw.ints) = (abi::ATTRIBUTE_INTS, values.len(), values.as_ptr());
                }
                AttributeValue::Floats(values) => {
                    (raw.kind, raw.count, raw.floats) =
                        (abi::ATTRIBUTE_FLOATS, values.len(), values.as_ptr());
                }
                AttributeValue::Tensor(value) => {
                    let mut piece = Piece::of(value, &mut all.copies)?;
                    all.tensors.push(Box::new(piece.raw(value.shape().len())));
                    all.pieces.push(piece);
                    let tensor = all.tensors.last().map_or(ptr::null(), |tensor| ptr::from_ref(&**tensor));
                    (raw.kind, raw.tensor) = (abi::ATTRIBUTE_TENSOR, tensor);
                }
                AttributeValue::Texts(_) | AttributeValue::Graph(_) => {
                    return Err(format!("attribute {name} does not cross the C interface"));
                }
            }
            all.raw.push(raw);
        }
        Ok(all)
    }

    fn text(&mut self, value: &str) -> Result<*const c_char, String> {
        // The characters lie on the heap and stay there when the list grows.
        self.texts.push(text(value)?);
        Ok(self.texts.last().map_or(ptr::null(), |text| text.as_ptr()))
    }
}

impl LibraryOperator {
    fn call(
        &self,
        callback: Callback,
        node: &CustomNode,
        inputs: &mut [Option<Piece>],
        outputs: &mut [Piece],
        known: bool,
    ) -> Result<Answer, String> {
        let (domain, name) = (text(&node.domain)?, text(&node.operator)?);
        let attributes = Attributes::of(node)?;
        let attribute_list: Vec<*const RawAttribute> = attributes.raw.iter().map(ptr::from_ref).collect();
        let given: Vec<Option<RawTensor>> =
            inputs.iter_mut().map(|p| p.as_mut().map(|p| p.raw(p.dims.len()))).collect();
        let input_list: Vec<*const RawTensor> =
            given.iter().map(|p| p.as_ref().map_or(ptr::null(), ptr::from_ref)).collect();
        let mut results: Vec<RawTensor> =
            outputs.iter_mut().map(|p| p.raw(if known { p.dims.len() } else { 0 })).collect();
        let output_list: Vec<*mut RawTensor> = results.iter_mut().map(ptr::from_mut).collect();
        let handed: Vec<Handed> = results.iter().zip(outputs.iter()).map(Handed::of).collect();
        let mut message = vec![0_u8; MESSAGE];
        let mut call = RawCall {
            size: size_of::<RawCall>(),
            domain: domain.as_ptr(),
            name: name.as_ptr(),
            opset: node.opset,
            attributes: attribute_list.as_ptr(),
            attribute_count: attribute_list.len(),
            inputs: input_list.as_ptr(),
            input_count: input_list.len(),
            outputs: output_list.as_ptr(),
            output_count: output_list.len(),
            message: message.as_mut_ptr().cast(),
            message_size: MESSAGE,
            needed: 0,
        };
        // SAFETY: the callback came from a library of this version of the interface, which says that it may be called so;
        // all that `call` points to is owned by this function or its caller and outlives the call.
        let status = unsafe { callback(self.user, &raw mut call) };
        let needed = call.needed;
        if known && status == abi::OK {
            let now = results.iter().zip(outputs.iter()).map(Handed::of);
            if let Some(index) = handed.iter().zip(now).position(|(before, now)| *before != now) {
                return Ok(Answer::Failed(format!(
                    "run changed what result {index} is; the engine has said its type, shape and memory, and run only \
                     writes there"
                )));
            }
        }
        Ok(match status {
            abi::OK => Answer::Ok(results.iter().map(|r| (r.element, r.rank)).collect()),
            abi::NEEDS_SHAPE => Answer::NeedsShape,
            abi::NEEDS_VALUE if needed < inputs.len() => Answer::NeedsValue(needed),
            other => {
                let end = message.iter().position(|&b| b == 0).unwrap_or(MESSAGE);
                let said = String::from_utf8_lossy(&message[..end]).into_owned();
                Answer::Failed(if said.is_empty() { format!("it returned {other}") } else { said })
            }
        })
    }
}

fn element(number: i32) -> Option<ElementType> {
    ELEMENTS.iter().find(|(known, _)| *known == number).map(|(_, element)| *element)
}

/// The number that stands for a dimension, and the dimensions that negative numbers stand for.
fn number(dim: &Dim, names: &mut Vec<Dim>) -> i64 {
    if let Some(fixed) = dim.fixed() {
        return fixed as i64;
    }
    let known = names.iter().position(|known| *dim != Dim::Unknown && known == dim);
    let at = known.unwrap_or_else(|| {
        names.push(dim.clone());
        names.len() - 1
    });
    -1 - at as i64
}

impl CustomOperator for LibraryOperator {
    fn infer(&self, node: &CustomNode, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let mut names = Vec::new();
        let mut copies = Vec::new();
        let mut pieces = Vec::with_capacity(inputs.len());
        for index in 0..inputs.len() {
            if !inputs.has(index) {
                pieces.push(None);
                continue;
            }
            let element = inputs.element(index)?;
            let dims = inputs.dims(index)?.iter().map(|dim| number(dim, &mut names)).collect();
            let piece = match inputs.value(index) {
                Ok(tensor) => Piece::of(tensor, &mut copies),
                Err(_) => Piece::new(element, dims),
            };
            pieces.push(Some(piece.map_err(InferError::Mismatch)?));
        }
        let mut outputs: Vec<Piece> = (0..node.outputs).map(|_| Piece::empty()).collect();
        let answer = self.call(self.infer, node, &mut pieces, &mut outputs, false);
        let found = match answer.map_err(InferError::Mismatch)? {
            Answer::Ok(found) => found,
            // Asked again when the dimensions are numbers; with numbers for all there is nothing to wait for.
            Answer::NeedsShape if !names.is_empty() => return Err(InferError::NeedsRank(0)),
            Answer::NeedsShape => {
                return Err(InferError::Mismatch("infer wants shapes, and all are there".into()));
            }
            Answer::NeedsValue(input) => return Err(InferError::NeedsValue(input)),
            Answer::Failed(reason) => return Err(InferError::Mismatch(format!("infer failed: {reason}"))),
        };
        let types = found.into_iter().zip(&outputs).enumerate().map(|(index, ((number, rank), piece))| {
            let wrong = |what: String| InferError::Mismatch(format!("infer gave result {index} {what}"));
            let element = element(number).ok_or_else(|| wrong(format!("the element type {number}")))?;
            let rank = usize::try_from(rank).ok().filter(|&rank| rank <= abi::MAX_RANK);
            let rank = rank.ok_or_else(|| wrong("a number of dimensions that cannot be".into()))?;
            let dims = piece.dims[..rank].iter().map(|&d| match usize::try_from(d) {
                Ok(fixed) => Ok(Dim::Fixed(fixed)),
                Err(_) => usize::try_from(-(d + 1))
                    .ok()
                    .and_then(|at| names.get(at))
                    .cloned()
                    .ok_or_else(|| wrong(format!("the length {d}, which no input has"))),
            });
            Ok(TensorType::new(element, dims.collect::<Result<Vec<_>, _>>()?).into())
        });
        types.collect()
    }

    fn run(&self, node: &CustomNode, inputs: &[Option<&Tensor>]) -> Result<Vec<Tensor>, CustomFailure> {
        let known: Vec<Option<ValueType>> = inputs
            .iter()
            .map(|input| input.map(|t| TensorType::fixed(t.element(), t.shape()).into()))
            .collect();
        let given: Vec<_> = known
            .iter()
            .zip(inputs)
            .map(|(ty, tensor)| {
                Some(armet_graph::InferInput { ty: ty.as_ref()?, value: *tensor, entries: None })
            })
            .collect();
        let types =
            self.infer(node, &InferInputs(&given)).map_err(|error| CustomFailure(error.to_string()))?;
        let mut copies = Vec::new();
        let mut pieces = Vec::with_capacity(inputs.len());
        for input in inputs {
            pieces.push(input.map(|tensor| Piece::of(tensor, &mut copies)).transpose()?);
        }
        let mut outputs = Vec::with_capacity(types.len());
        let mut buffers: Vec<(ElementType, Shape, AlignedBytes)> = Vec::with_capacity(types.len());
        for ty in types.iter().filter_map(ValueType::tensor) {
            let shape = ty.shape().ok_or("the shape of a result is not known")?;
            let bytes = ty.byte_len().ok_or("a result is larger than memory")?;
            let mut buffer = AlignedBytes::try_zeroed(bytes).ok_or("there is no memory for a result")?;
            let dims = shape.iter().map(|&d| d as i64).collect();
            let mut piece = Piece::new(ty.element, dims)?;
            piece.data = buffer.as_mut_ptr().cast();
            piece.bytes = bytes;
            outputs.push(piece);
            buffers.push((ty.element, shape, buffer));
        }
        match self.call(self.run, node, &mut pieces, &mut outputs, true)? {
            Answer::Ok(_) => {}
            Answer::Failed(reason) => return Err(reason.into()),
            Answer::NeedsShape | Answer::NeedsValue(_) => {
                return Err("run returned an answer that only infer may give".into());
            }
        }
        let results = buffers.into_iter();
        results.map(|(element, shape, buffer)| Ok(Tensor::from_aligned(element, shape, buffer)?)).collect()
    }

    fn may_give_nan(&self) -> bool {
        self.may_give_nan
    }
}
