//! A share of the long checks, small enough for every submission. `cargo xtask figures standard` runs them in full.

use armet::PASSES;
use armet_conformance::resources::{Resource, model, skip};
use armet_conformance::stress::{graphs, mutants, sessions, sizes};

#[test]
fn random_graphs_give_the_same_with_and_without_passes() {
    let seen = graphs::check(100_000, 600, &mut |_| {}).expect("engines can be made");
    let told: Vec<String> =
        seen.faults.iter().map(|f| format!("seed {}: {}\n{}", f.seed, f.what, f.graph)).collect();
    assert!(told.is_empty(), "{} faults\n{}", told.len(), told.join("\n"));
    for pass in PASSES.iter().map(|pass| pass.name).filter(|name| name.starts_with("recognise_")) {
        assert!(seen.passes.get(pass).is_some_and(|n| *n > 0), "{pass} never fires: {:?}", seen.passes);
    }
    assert!(seen.nodes > 3000 && seen.operators.len() > 50, "{} nodes, {:?}", seen.nodes, seen.operators);
}

#[test]
fn sizes_that_change_leave_nothing_behind() {
    let Some(folder) = Resource::Models.find() else {
        skip("sizes_that_change_leave_nothing_behind", "target/models");
        return;
    };
    for one in sizes::MODELS.iter().filter(|one| ["mtcnn_pnet", "silero_vad_seq"].contains(&one.model)) {
        let file = folder.join(one.model).with_extension("onnx");
        let seen = sizes::check(one, &file, 12, 2).expect("the model runs");
        assert_eq!((seen.fault.clone(), seen.differ_from_fresh), (None, 0), "{seen:?}");
        assert!(seen.largest_gap < 1e-4, "{seen:?}");
    }
}

#[test]
fn sessions_at_once_give_what_one_gives() {
    let Some(file) = model("mtcnn_rnet") else {
        skip("sessions_at_once_give_what_one_gives", "target/models");
        return;
    };
    let seen = sessions::check(&file, &[1, 24, 24, 3], 4, 50).expect("the model runs");
    assert_eq!((seen.differ, seen.packed.0), (0, seen.packed.1), "{seen:?}");
}

#[test]
fn changed_files_are_errors_or_models() {
    let Some(cases) = Resource::OnnxCases.find() else {
        skip("changed_files_are_errors_or_models", "target/onnx-cases");
        return;
    };
    let seen = mutants::check(&cases, 7_000_000, 8000, &mut |_| {}).expect("nothing hangs");
    assert!(seen.faults.is_empty(), "{:#?}", seen.faults);
    assert!(seen.ran > 1000 && seen.not_loaded > 1000, "{seen:?}");
}
