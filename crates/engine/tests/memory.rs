//! Memory of a session that meets ever new shapes: bounded by the largest few.

#[expect(dead_code, reason = "the other counter is for another test")]
mod counting;
#[expect(dead_code, reason = "the list of models is for other tests")]
mod models;

use armet::{CompileSettings, Engine};

#[test]
fn three_hundred_sizes_keep_memory_flat() {
    const LARGEST: usize = 128;
    let engine = Engine::builder().threads(2).build().unwrap();
    let compiled = engine.compile(&models::load("pnet"), &CompileSettings::default()).unwrap();
    let mut session = compiled.session();
    let mut run = |height: usize, width: usize| {
        let value = models::values([1, height, width, 3], 1);
        let outputs = session.run(&[("input_1", (&value).into())]).unwrap();
        let cells = |length: usize| (length - 2).div_ceil(2) - 4;
        let shape = outputs.get("softmax").unwrap().view().unwrap().shape().to_vec();
        assert_eq!(shape, [1, cells(height), cells(width), 2]);
        drop(outputs);
        drop(value);
        (session.arena_bytes(), counting::live_bytes())
    };
    // As many plans of the largest sizes as a session keeps: what all later ones have to stay below.
    let (mut most_arena, mut most_live) = (0, 0);
    for (height, width) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)] {
        let (arena, live) = run(LARGEST - height, LARGEST - width);
        (most_arena, most_live) = (most_arena.max(arena), most_live.max(live));
    }
    let packed = compiled.packed_weights();
    let mut numbers = models::Numbers(3);
    for _ in 0..300 {
        let (height, width) = (12 + numbers.next(LARGEST - 14), 12 + numbers.next(LARGEST - 14));
        let (arena, live) = run(height, width);
        assert!(arena <= most_arena, "{height}x{width}: {arena} bytes of arenas, before {most_arena}");
        // Plans differ a little in what they note of themselves.
        assert!(live <= most_live + (64 << 10), "{height}x{width}: {live} bytes, before {most_live}");
    }
    assert!(compiled.packed_weights() <= packed + 8, "{} packs, before {packed}", compiled.packed_weights());
}
