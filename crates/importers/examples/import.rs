//! Imports an ONNX file and prints what is in it: `import <file>... `.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use armet_graph::{Graph, Op};
use armet_importers::Directory;
use armet_importers::onnx::{ImportOptions, import};

fn count(graph: &Graph, counts: &mut BTreeMap<&'static str, usize>) {
    for (_, node) in graph.nodes() {
        *counts.entry(node.op.name()).or_default() += 1;
        if let Op::If(op) = &node.op {
            count(&op.then_branch, counts);
            count(&op.else_branch, counts);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for path in std::env::args().skip(1) {
        let directory = Directory::new(Path::new(&path).parent().unwrap_or(Path::new(".")));
        let options = ImportOptions { external: Some(&directory), ..ImportOptions::default() };
        let bytes = std::fs::read(&path)?;
        let begin = std::time::Instant::now();
        match import(bytes.into(), &options) {
            Err(error) => writeln!(out, "{path}: {error}")?,
            Ok(model) => {
                let mut counts = BTreeMap::new();
                count(&model.graph, &mut counts);
                let total: usize = counts.values().sum();
                writeln!(out, "{path}: {total} nodes in {:?}", begin.elapsed())?;
                for &id in model.graph.inputs() {
                    let value = model.graph.value(id);
                    writeln!(out, "  in  {} {}", value.name, value.ty)?;
                }
                for output in model.graph.outputs() {
                    writeln!(out, "  out {} {}", output.name, model.graph.value(output.value).ty)?;
                }
                let counts: Vec<String> = counts.iter().map(|(op, n)| format!("{op} {n}")).collect();
                writeln!(out, "  {}", counts.join(", "))?;
                for warning in &model.warnings {
                    writeln!(out, "  note: {warning}")?;
                }
            }
        }
    }
    Ok(())
}
