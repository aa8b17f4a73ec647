//! Values that are the bytes of other values: aliases, parts of a value, and values that are written into a larger one.
//!
//! Contract: a view lies wholly within the value it is of, at a multiple of [`ALIGNED`] bytes; what is embedded in a whole is
//! written by a kernel step, once, and no two values of a whole share bytes.

use std::collections::{HashMap, HashSet};

use armet_graph::{Graph, Node, ValueId};
use smallvec::SmallVec;

use crate::{Location, Lowered};

/// Kernels may count on buffers at multiples of this many bytes.
const ALIGNED: usize = 16;
/// A part keeps the whole alive, so one that is smaller than this share of it (one in so many) is copied.
const SMALL: usize = 4;

/// Which values lie in which.
#[derive(Debug, Default)]
pub(crate) struct Views {
    /// The value that one lies in, and from which byte on.
    within: HashMap<ValueId, (ValueId, usize)>,
    /// The step after which a value is complete.
    complete: HashMap<ValueId, usize>,
    /// Values in the arena that kernels write, and wholes of such.
    written: HashSet<ValueId>,
}

impl Views {
    /// A step gives these; a kernel does when it runs on buffers.
    pub(crate) fn given(&mut self, values: &[Option<ValueId>], step: usize, by_kernel: bool) {
        for &value in values.iter().flatten() {
            self.complete.insert(value, step);
            if by_kernel {
                self.written.insert(value);
            }
        }
    }

    /// The value whose memory a value is in, and from which byte on; itself for most.
    pub(crate) fn root(&self, value: ValueId) -> (ValueId, usize) {
        let (mut value, mut offset) = (value, 0);
        while let Some(&(outer, at)) = self.within.get(&value) {
            (value, offset) = (outer, offset + at);
        }
        (value, offset)
    }

    /// All values that lie in others, in order, with the step after which each is complete, where one gives it.
    pub(crate) fn all(&self) -> Vec<(ValueId, Option<usize>)> {
        let mut all: Vec<_> = self.within.keys().map(|&value| (value, self.complete(value))).collect();
        // A whole lies in nothing, but no step writes it as such.
        let holders: HashSet<ValueId> = self.within.values().map(|(holder, _)| *holder).collect();
        all.extend(holders.iter().filter(|h| !self.within.contains_key(h)).map(|&h| (h, self.complete(h))));
        all.sort_unstable();
        all
    }

    fn complete(&self, mut value: ValueId) -> Option<usize> {
        loop {
            match (self.complete.get(&value), self.within.get(&value)) {
                (Some(&step), _) => return Some(step),
                (None, Some(&(outer, _))) => value = outer,
                (None, None) => return None,
            }
        }
    }

    /// Where a value lies, when its root lies here.
    pub(crate) fn place(&self, graph: &Graph, value: ValueId, root: Location) -> Location {
        match root {
            Location::Arena { offset, .. } => {
                let len = bytes(graph, value).unwrap_or(0);
                Location::Arena { offset: offset + self.root(value).1, len }
            }
            other => other,
        }
    }

    /// Whether the results of a node are views, so that it need not run; then they are known as such.
    pub(crate) fn take(&mut self, graph: &Graph, node: &Node, lowered: &Lowered) -> bool {
        match lowered {
            Lowered::Alias => match (node.input(0), node.output()) {
                (Some(from), Some(to)) => {
                    self.within.insert(to, (from, 0));
                    true
                }
                _ => false,
            },
            Lowered::Parts(offsets, _) => self.cut(graph, node, offsets).is_some(),
            Lowered::Whole(_) => self.join(graph, node).is_some(),
            Lowered::Kernel(_) => false,
        }
    }

    fn cut(&mut self, graph: &Graph, node: &Node, offsets: &[usize]) -> Option<()> {
        let from = node.input(0)?;
        let (root, before) = self.root(from);
        let end = bytes(graph, from)?;
        if !self.written.contains(&root) || offsets.len() < node.outputs.len() {
            return None;
        }
        let mut wanted = 0;
        for (output, &offset) in node.outputs.iter().zip(offsets) {
            let Some(output) = *output else { continue };
            let len = bytes(graph, output)?;
            if !(before + offset).is_multiple_of(ALIGNED) || offset + len > end {
                return None;
            }
            wanted += len;
        }
        if wanted * SMALL < bytes(graph, root)? {
            return None;
        }
        for (output, &offset) in node.outputs.iter().zip(offsets) {
            if let Some(output) = *output {
                self.within.insert(output, (from, offset));
            }
        }
        Some(())
    }

    fn join(&mut self, graph: &Graph, node: &Node) -> Option<()> {
        let whole = node.output()?;
        let mut embedded: SmallVec<[(ValueId, usize); 4]> = SmallVec::new();
        let (mut at, mut complete) = (0usize, 0usize);
        for input in &node.inputs {
            let input = (*input)?;
            let len = bytes(graph, input)?;
            if len == 0 {
                continue;
            }
            let (root, before) = self.root(input);
            let step = *self.complete.get(&root).filter(|_| self.written.contains(&root))?;
            let again = embedded.iter().any(|(value, _)| *value == root);
            if again || before != 0 || bytes(graph, root)? != len || !at.is_multiple_of(ALIGNED) {
                return None;
            }
            embedded.push((root, at));
            complete = complete.max(step);
            at += len;
        }
        if at == 0 || at != bytes(graph, whole)? {
            return None;
        }
        self.within.extend(embedded.into_iter().map(|(value, at)| (value, (whole, at))));
        self.written.insert(whole);
        self.complete.insert(whole, complete);
        Some(())
    }
}

fn bytes(graph: &Graph, value: ValueId) -> Option<usize> {
    graph.value(value).ty.tensor().filter(|ty| ty.element.byte_size().is_some())?.byte_len()
}
