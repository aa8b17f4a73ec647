//! `armet detect`: objects or page layout in a picture.

use std::path::PathBuf;

use anyhow::Context;
use armet::ValueRef;
use armet_vision::Output;
use armet_vision::detect::{Head, Labels};
use armet_vision::presets::Preparation;
use clap::Args;
use serde_json::json;

use super::report;
use crate::options::ModelOptions;
use crate::output::{self, Terminal};
use crate::picture;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The picture (PNG or JPEG).
    image: PathBuf,
    /// The ONNX file of a YOLOv5, v8 or v11, PicoDet or DocLayout detector.
    model: PathBuf,
    /// Least score of a box [default: that of the model's family].
    #[arg(long)]
    score: Option<f32>,
    /// Most overlap of two boxes of one class [default: that of the model's family].
    #[arg(long)]
    overlap: Option<f32>,
    /// A file with one class name per line [default: the model's own].
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Threads to run on.
    #[arg(long, short = 't')]
    threads: Option<usize>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, terminal: &mut Terminal) -> anyhow::Result<u8> {
    let options = ModelOptions::plain(arguments.model.clone(), arguments.threads);
    let picture = picture::open(&arguments.image)?;
    let model = options.load(terminal)?;
    let compiled = options.compile(&model)?;
    let inputs = compiled.inputs();
    let input = inputs.first().context("the model has no inputs")?;
    let shapes: Vec<Vec<usize>> = compiled
        .outputs()
        .iter()
        .map(|o| o.dims().map(|d| d.iter().map(|d| d.fixed().unwrap_or(0)).collect()).unwrap_or_default())
        .collect();
    let shape_refs: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
    let head = Head::guess(&shape_refs)?;
    let preparation = Preparation::named(head.preset())?;
    let dims: Vec<Option<usize>> =
        input.dims().map(|d| d.iter().map(armet::Dim::fixed).collect()).unwrap_or_default();
    let (width, height) = preparation.size_in(&dims);
    let prepared = preparation.apply(&picture, width, height)?;
    let tensor = picture::tensor(&prepared.planes)?;
    let mut session = compiled.session();
    let outputs = session.run(&[(input.name.as_str(), ValueRef::from(&tensor))])?;
    let tensors: Vec<(Vec<usize>, Vec<f32>)> = outputs
        .iter()
        .filter_map(|(_, value)| {
            let view = value.view()?;
            Some((view.shape().to_vec(), view.values::<f32>().ok()?.into_owned()))
        })
        .collect();
    drop(outputs);
    let outputs: Vec<Output<'_>> = tensors.iter().map(|(shape, data)| Output { shape, data }).collect();
    let mut thresholds = head.thresholds();
    thresholds.score = arguments.score.unwrap_or(thresholds.score);
    thresholds.overlap = arguments.overlap.unwrap_or(thresholds.overlap);
    let found = head.decode(&outputs, &prepared.placement, &thresholds)?;
    let labels = match &arguments.labels {
        Some(path) => {
            let text =
                std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            Some(Labels::from_lines(&text))
        }
        None => Labels::from_metadata(|key| model.metadata().get(key).map(String::as_str)),
    };
    let name =
        |class: usize| labels.as_ref().map_or_else(|| class.to_string(), |l| l.name(class).into_owned());
    if arguments.json {
        let boxes: Vec<_> = found
            .iter()
            .map(|d| {
                json!({"label": name(d.class), "class": d.class, "score": d.score,
                "box": [d.left, d.top, d.right, d.bottom]})
            })
            .collect();
        terminal
            .json(&json!({"image": arguments.image, "head": format!("{head:?}"), "detections": boxes}))?;
    } else {
        let rows: Vec<Vec<String>> = found
            .iter()
            .map(|d| {
                let edges = [d.left, d.top, d.right, d.bottom].map(|v| format!("{v:.1}"));
                let mut row = vec![name(d.class), format!("{:.3}", d.score)];
                row.extend(edges);
                row
            })
            .collect();
        terminal
            .line(output::table(&["label", "score", "left", "top", "right", "bottom"], &rows).trim_end())?;
    }
    terminal.note(report::summary(&session.stages()));
    Ok(u8::from(found.is_empty()))
}
