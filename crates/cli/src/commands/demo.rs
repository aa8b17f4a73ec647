//! `armet demo`: real networks on a real picture, everything in the command itself.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use armet_vision::draw::Canvas;
use armet_vision::faces::{self, Face, Settings};
use armet_vision::{Limits, Picture};
use clap::Args;
use serde_json::json;

use super::network::Network;
use super::run::ms;
use crate::output::{self, Terminal};
use crate::picture;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where to write the picture with what was found.
    #[arg(long, short, default_value = "demo.png", value_name = "FILE.png", value_parser = picture::output_name())]
    output: PathBuf,
    /// Threads to run on.
    #[arg(long, short = 't')]
    threads: Option<usize>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

const PICTURE: &[u8] = include_bytes!("../../assets/astronaut.jpg");
const PROPOSER: &[u8] = include_bytes!("../../assets/pnet.onnx");
const REFINER: &[u8] = include_bytes!("../../assets/rnet.onnx");
const FINISHER: &[u8] = include_bytes!("../../assets/onet.onnx");

const LANDMARKS: [&str; 5] = ["left eye", "right eye", "nose", "left of mouth", "right of mouth"];

pub(crate) fn run(arguments: &Arguments, terminal: &mut Terminal) -> anyhow::Result<u8> {
    let mut picture = Picture::decode(PICTURE, &Limits::default())?;
    let started = Instant::now();
    let mut proposer = Network::embedded("pnet", PROPOSER, arguments.threads)?;
    let mut refiner = Network::embedded("rnet", REFINER, arguments.threads)?;
    let mut finisher = Network::embedded("onet", FINISHER, arguments.threads)?;
    let load = started.elapsed();
    let mut find = || {
        faces::find(&picture, &Settings::default(), |network, planes| {
            let network = match network {
                faces::Network::Proposer => &mut proposer,
                faces::Network::Refiner => &mut refiner,
                faces::Network::Finisher => &mut finisher,
            };
            network.run(planes)
        })
    };
    let started = Instant::now();
    let found: Vec<Face> = find()?;
    let duration = started.elapsed();
    let mut canvas = Canvas::new(&mut picture);
    for face in &found {
        let colour = [42, 157, 60];
        let edges = [face.left, face.top, face.right, face.bottom].map(|v| v as f32);
        canvas.rectangle(edges[0], edges[1], edges[2], edges[3], colour);
        for [x, y] in face.landmarks {
            canvas.point([x as f32, y as f32], [230, 57, 70]);
        }
        canvas.label([edges[0], edges[1]], &format!("face {:.3}", face.score), colour);
    }
    picture.save(&arguments.output).with_context(|| {
        format!("cannot write {}; choose a place with --output", arguments.output.display())
    })?;
    let networks = [&proposer, &refiner, &finisher];
    let device = proposer.session().compiled().engine().devices();
    let isa = device.first().map_or_else(String::new, |(id, d)| format!("{id} ({})", d.name));
    if arguments.json {
        terminal.json(&json!({
            "faces": found,
            "output": arguments.output.to_string_lossy(),
            "load_ms": ms(load),
            "run_ms": ms(duration),
            "device": isa,
            "networks": networks.iter().map(|n| n.json()).collect::<Vec<_>>(),
        }))?;
        return Ok(u8::from(found.is_empty()));
    }
    terminal.line(format_args!(
        "MTCNN, three networks in a row, on a portrait of astronaut Eileen Collins (NASA, public domain)\n"
    ))?;
    for face in &found {
        terminal.line(format_args!(
            "face of {:.0} x {:.0} pixels at ({:.0}, {:.0}), score {:.4}",
            face.right - face.left,
            face.bottom - face.top,
            face.left,
            face.top,
            face.score
        ))?;
        for (name, [x, y]) in LANDMARKS.iter().zip(face.landmarks) {
            terminal.line(format_args!("  {name:14} ({x:.0}, {y:.0})"))?;
        }
    }
    if found.is_empty() {
        terminal.line("no face was found: this is a fault, please report it")?;
    }
    terminal.line("")?;
    for network in networks {
        terminal.line(network.summary())?;
    }
    let size = PROPOSER.len() + REFINER.len() + FINISHER.len();
    terminal.line(format_args!(
        "\nloaded {} of models in {:.1} ms, found faces in {:.1} ms on {isa}",
        output::bytes(size),
        ms(load),
        ms(duration)
    ))?;
    terminal.line(format_args!("picture with what was found: {}", arguments.output.display()))?;
    terminal.note("next: armet models fetch, then armet run, bench and inspect with a model of your own");
    Ok(u8::from(found.is_empty()))
}
