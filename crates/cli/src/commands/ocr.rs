//! `armet ocr`: the text in a picture.

use std::path::{Path, PathBuf};

use anyhow::Context;
use armet_vision::draw::{self, Canvas};
use armet_vision::ocr::{self, Characters, OcrError, Settings};
use clap::Args;
use serde_json::json;

use super::network::Network;
use crate::output::{Hint, Terminal, clean};
use crate::picture;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The picture (PNG or JPEG).
    image: PathBuf,
    /// Folder with the three PP-OCR models that `armet models fetch` brings.
    #[arg(long, default_value = "models", value_name = "DIR")]
    models: PathBuf,
    /// Write the picture with the found lines drawn, as a PNG or JPEG.
    #[arg(long, short, value_name = "FILE.png", value_parser = picture::output_name())]
    output: Option<PathBuf>,
    /// Threads to run on.
    #[arg(long, short = 't')]
    threads: Option<usize>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

const MODELS: [&str; 3] = ["ppocr4_det", "ppocr2_cls", "ppocr4_rec"];

fn load(
    folder: &Path,
    name: &str,
    threads: Option<usize>,
    terminal: &mut Terminal,
) -> anyhow::Result<Network> {
    let path = folder.join(format!("{name}.onnx"));
    if !path.exists() {
        let hint = format!("armet models fetch {} --dir {}", MODELS.join(" "), folder.display());
        return Err(Hint::new(format!("{} is not there", path.display()), hint).into());
    }
    Network::load(&path, threads, terminal)
}

pub(crate) fn run(arguments: &Arguments, terminal: &mut Terminal) -> anyhow::Result<u8> {
    let mut page = picture::open(&arguments.image)?;
    let mut networks = Vec::new();
    for name in MODELS {
        networks.push(load(&arguments.models, name, arguments.threads, terminal)?);
    }
    let [mut detector, mut classifier, mut recogniser] =
        <[Network; 3]>::try_from(networks).ok().context("three networks were loaded")?;
    let list = recogniser.model().metadata().get("character").cloned();
    let characters = Characters::new(&list.ok_or(OcrError::NoCharacters)?)?;
    let lines = ocr::read(&page, &characters, &Settings::default(), |network, planes| {
        let network = match network {
            ocr::Network::Detector => &mut detector,
            ocr::Network::Classifier => &mut classifier,
            ocr::Network::Recogniser => &mut recogniser,
        };
        let outputs = network.run(planes)?;
        outputs.into_iter().next().context("the network has no outputs")
    })?;
    let networks = [&detector, &classifier, &recogniser];
    // Before anything is printed: a reader who leaves early still gets the picture.
    if let Some(path) = &arguments.output {
        let mut canvas = Canvas::new(&mut page);
        for (index, line) in lines.iter().enumerate() {
            let corners = line.corners;
            canvas.polygon(&corners, draw::colour(index));
            let label =
                if draw::has_letters_for(&line.text) { line.text.clone() } else { (index + 1).to_string() };
            canvas.label(corners[0], &label, draw::colour(index));
        }
        page.save(path).with_context(|| format!("cannot write {}", path.display()))?;
        terminal.note(format_args!("wrote {}", path.display()));
    }
    if arguments.json {
        let lines: Vec<_> = lines
            .iter()
            .map(|line| json!({"text": line.text, "score": line.confidence, "box": line.corners}))
            .collect();
        let steps: Vec<_> = networks.iter().map(|n| n.json()).collect();
        terminal
            .json(&json!({"image": arguments.image.to_string_lossy(), "lines": lines, "networks": steps}))?;
    } else {
        for line in &lines {
            terminal.line(clean(&line.text))?;
        }
    }
    for network in networks {
        terminal.note(network.summary());
    }
    Ok(u8::from(lines.is_empty()))
}
