//! The first look: `demo`, help, versions and completions.

#[expect(dead_code, reason = "other tests need the rest")]
mod common;

use armet_vision::{Limits, Picture};
use common::{armet, json};

fn is_near(found: &serde_json::Value, expected: f64, most: f64) -> bool {
    found.as_f64().is_some_and(|found| (found - expected).abs() <= most)
}

#[test]
fn the_demo_finds_the_one_face() {
    let folder = tempfile::tempdir().unwrap();
    for threads in ["1", "2"] {
        let found = json(folder.path(), ["demo", "--json", "--output", "found.png", "--threads", threads]);
        let faces = found["faces"].as_array().unwrap();
        assert_eq!(faces.len(), 1, "{faces:?}");
        let face = &faces[0];
        assert!(face["score"].as_f64().unwrap() > 0.99, "{face}");
        for (edge, expected) in [("left", 180.0), ("top", 60.0), ("right", 268.0), ("bottom", 174.0)] {
            assert!(is_near(&face[edge], expected, 1.5), "{edge} of {face}");
        }
        let landmarks = [[204.0, 101.0], [246.0, 103.0], [224.0, 129.0], [202.0, 140.0], [245.0, 142.0]];
        assert_eq!(face["landmarks"].as_array().unwrap().len(), landmarks.len());
        for (index, [x, y]) in landmarks.into_iter().enumerate() {
            let place = &face["landmarks"][index];
            assert!(is_near(&place[0], x, 1.5) && is_near(&place[1], y, 1.5), "landmark {index} of {face}");
        }
        assert!(found["load_ms"].as_f64().unwrap() > 0.0 && found["run_ms"].as_f64().unwrap() > 0.0);
        for (network, name) in found["networks"].as_array().unwrap().iter().zip(["pnet", "rnet", "onet"]) {
            assert_eq!(network["model"], name);
            assert!(network["runs"].as_u64().unwrap() > 0);
            let steps = network["placement"].as_array().unwrap();
            assert!(!steps.is_empty() && steps.iter().all(|step| step["backend"] == "cpu"), "{network}");
        }
    }
    let png = std::fs::read(folder.path().join("found.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
    let picture = Picture::open(&folder.path().join("found.png"), &Limits::default()).unwrap();
    let plain = Picture::open(&common::asset("astronaut.jpg"), &Limits::default()).unwrap();
    assert_eq!((picture.width(), picture.height()), (plain.width(), plain.height()));
    assert_ne!(picture.rgb(), plain.rgb(), "the face is drawn");
}

#[test]
fn the_demo_says_what_it_found_and_where_it_ran() {
    let folder = tempfile::tempdir().unwrap();
    let call = armet(folder.path(), ["demo"]);
    assert_eq!(call.code, 0, "{call:?}");
    for words in [
        "face of 88 x 114 pixels at (180, 60)",
        "left eye",
        "pnet: ",
        "on cpu",
        "picture with what was found: demo.png",
    ] {
        assert!(call.out.contains(words), "{words} is not in {call:?}");
    }
    assert!(folder.path().join("demo.png").exists());
}

#[test]
fn the_demo_says_when_it_cannot_write() {
    let folder = tempfile::tempdir().unwrap();
    let call = armet(folder.path(), ["demo", "--output", "no folder/found.png"]);
    assert_eq!((call.code, call.out.as_str()), (2, ""));
    let first = "error: cannot write no folder/found.png; choose a place with --output\n";
    assert!(call.err.starts_with(first), "{call:?}");
}

#[test]
fn completions_and_help_go_to_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    for (shell, mark) in [("bash", "_armet"), ("zsh", "#compdef armet"), ("fish", "complete -c armet")] {
        let call = armet(folder.path(), ["completions", shell]);
        assert_eq!((call.code, call.err.as_str()), (0, ""));
        for words in [mark, "demo", "inspect", "dump-layers"] {
            assert!(call.out.contains(words), "{words} is not in the completions of {shell}");
        }
    }
    for arguments in [&["--help"][..], &["help", "run"], &["bench", "--help"]] {
        let call = armet(folder.path(), arguments);
        assert_eq!((call.code, call.err.as_str()), (0, ""), "{arguments:?}");
        assert!(call.out.contains("Usage: armet"), "{call:?}");
    }
    let call = armet(folder.path(), ["--version"]);
    assert_eq!(call.code, 0);
    assert!(call.out.starts_with("armet "), "{call:?}");
}
