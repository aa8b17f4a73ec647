//! `armet detect`: objects or page layout in a picture.

use std::path::PathBuf;

use anyhow::Context;
use armet_vision::detect::{Head, Labels};
use armet_vision::draw::{self, Canvas};
use armet_vision::presets::Preparation;
use armet_vision::{Output, Tensor};
use clap::Args;
use serde_json::json;

use super::network::Network;
use crate::output::{self, Terminal};
use crate::picture;

/// A list of labels is at most this long.
const LONGEST_LABELS: u64 = 1 << 24;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The picture (PNG or JPEG).
    image: PathBuf,
    /// The ONNX file of a YOLOv5, v8 or v11, PicoDet or DocLayout detector.
    model: PathBuf,
    /// Least score of a box [default: that of the model's family].
    #[arg(long, value_parser = picture::parse_share, allow_negative_numbers = true)]
    score: Option<f32>,
    /// Most overlap of two boxes of one class [default: that of the model's family].
    #[arg(long, value_parser = picture::parse_share, allow_negative_numbers = true)]
    overlap: Option<f32>,
    /// A file with one class name per line [default: the model's own].
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Write the picture with the boxes drawn, as a PNG or JPEG.
    #[arg(long, short, value_name = "FILE.png", value_parser = picture::output_name())]
    output: Option<PathBuf>,
    /// Threads to run on.
    #[arg(long, short = 't')]
    threads: Option<usize>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, terminal: &mut Terminal) -> anyhow::Result<u8> {
    let mut picture = picture::open(&arguments.image)?;
    let mut network = Network::load(&arguments.model, arguments.threads, terminal)?;
    let compiled = network.session().compiled().clone();
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
    let tensors = network.run(&prepared.planes)?;
    let outputs: Vec<Output<'_>> = tensors.iter().map(Tensor::view).collect();
    let mut thresholds = head.thresholds();
    thresholds.score = arguments.score.unwrap_or(thresholds.score);
    thresholds.overlap = arguments.overlap.unwrap_or(thresholds.overlap);
    let found = head.decode(&outputs, &prepared.placement, &thresholds)?;
    let labels = match &arguments.labels {
        Some(path) => {
            let bytes = armet::read_file(path, LONGEST_LABELS)
                .with_context(|| format!("cannot read {}", path.display()))?;
            let text =
                str::from_utf8(&bytes).with_context(|| format!("{} is not text in UTF-8", path.display()))?;
            Some(Labels::from_lines(text))
        }
        None => Labels::from_metadata(|key| network.model().metadata().get(key).map(String::as_str)),
    };
    let name =
        |class: usize| labels.as_ref().map_or_else(|| class.to_string(), |l| l.name(class).into_owned());
    // Before anything is printed: a reader who leaves early still gets the picture.
    if let Some(path) = &arguments.output {
        let mut canvas = Canvas::new(&mut picture);
        for d in &found {
            let colour = draw::colour(d.class);
            canvas.rectangle(d.left, d.top, d.right, d.bottom, colour);
            canvas.label([d.left, d.top], &format!("{} {:.2}", name(d.class), d.score), colour);
        }
        picture.save(path).with_context(|| format!("cannot write {}", path.display()))?;
        terminal.note(format_args!("wrote {}", path.display()));
    }
    if arguments.json {
        let boxes: Vec<_> = found
            .iter()
            .map(|d| {
                json!({"label": name(d.class), "class": d.class, "score": d.score,
                "box": [d.left, d.top, d.right, d.bottom]})
            })
            .collect();
        terminal
            .json(&json!({"image": arguments.image.to_string_lossy(), "warnings": network.model().warnings(), "head": format!("{head:?}"), "detections": boxes}))?;
    } else {
        let rows: Vec<Vec<String>> = found
            .iter()
            .map(|d| {
                let edges = [d.left, d.top, d.right, d.bottom].map(|v| format!("{v:.1}"));
                let mut row = vec![output::clean(&name(d.class)), format!("{:.3}", d.score)];
                row.extend(edges);
                row
            })
            .collect();
        terminal
            .line(output::table(&["label", "score", "left", "top", "right", "bottom"], &rows).trim_end())?;
    }
    terminal.note(network.summary());
    Ok(u8::from(found.is_empty()))
}
