//! From the second run with equal shapes on, a session allocates nothing: on any thread, with any instruction set.

#![expect(clippy::unwrap_used, reason = "a test ends where what it stands on is missing")]

#[expect(dead_code, reason = "the other counter is for another test")]
mod counting;
mod models;
#[expect(dead_code, reason = "most of its parts are for other tests")]
mod onnx;

use std::fs;
use std::time::{Duration, Instant};

use armet::{CompileSettings, Engine, Isa, Isas, Tensor};

/// Waits until the engine's workers have started and every thread but this one sleeps: starting allocates.
fn wait_for_quiet(workers: usize) {
    let own = fs::read_link("/proc/thread-self").unwrap();
    let started = Instant::now();
    loop {
        let (mut named, mut busy) = (0, 0);
        for task in fs::read_dir("/proc/self/task").unwrap().map(|entry| entry.unwrap().path()) {
            // The name stands in brackets, the state behind them; a thread that ended meanwhile has neither.
            let Ok(stat) = fs::read_to_string(task.join("stat")) else { continue };
            let (name, rest) = stat.split_once('(').and_then(|(_, s)| s.rsplit_once(") ")).unwrap();
            named += usize::from(name.starts_with("armet-"));
            busy += usize::from(task.file_name() != own.file_name() && !rest.starts_with('S'));
        }
        if named == workers && busy == 0 {
            return;
        }
        assert!(started.elapsed() < Duration::from_mins(1), "{named} workers, {busy} busy threads");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What runs of a loop allocate whose body is planned already.
fn allocations_of_a_loop() -> Vec<String> {
    let engine = Engine::builder().threads(1).build().unwrap();
    let mut session = engine.compile(&onnx::recurrence(), &CompileSettings::default()).unwrap().session();
    let first = Tensor::vector(&[0.5f32, -0.5, 0.25]);
    let rows = Tensor::new([20, 3], &[0.125f32; 60]).unwrap();
    let mut found = Vec::new();
    for repeat in 1..5 {
        let (sum, sizes, count) = counting::allocations(|| {
            let outputs = session.run(&[("first", (&first).into()), ("rows", (&rows).into())]).unwrap();
            outputs.iter().map(|(_, output)| output.view().unwrap().bytes().len()).sum::<usize>()
        });
        assert_eq!(sum, (3 + 60) * 4);
        if repeat > 1 && count > 0 {
            found.push(format!("run {repeat} of a loop: {count} allocations of {sizes:?} bytes"));
        }
    }
    found
}

#[test]
fn repeated_runs_allocate_nothing() {
    let mut found = Vec::new();
    for (name, input, shape) in models::MODELS {
        let model = models::load(name);
        for threads in [1, 2] {
            for isas in [Isas::detect(), Isas::only(&[Isa::Scalar])] {
                let engine = Engine::builder().threads(threads).isas(isas).build().unwrap();
                let mut session = engine.compile(&model, &CompileSettings::default()).unwrap().session();
                let given = [1, 2, 3].map(|seed| models::values(shape, seed));
                session.run(&[(input, (&given[0]).into())]).unwrap();
                wait_for_quiet(threads - 1);
                for repeat in 2..8 {
                    let value = &given[repeat % 3];
                    let (sum, sizes, count) = counting::allocations(|| {
                        let outputs = session.run(&[(input, value.into())]).unwrap();
                        outputs.iter().map(|(_, output)| output.view().unwrap().bytes().len()).sum::<usize>()
                    });
                    assert!(sum > 0);
                    if count > 0 {
                        found.push(format!(
                            "run {repeat} of {name} on {threads} threads with {isas:?}: {count} allocations of \
                             {sizes:?} bytes"
                        ));
                    }
                }
            }
        }
    }
    found.extend(allocations_of_a_loop());
    assert!(found.is_empty(), "{}", found.join("\n"));
    let (kept, sizes, count) = counting::allocations(|| vec![7_u8; 123]);
    assert_eq!((kept.len(), sizes, count), (123, vec![123], 1), "the counter counts");
}
