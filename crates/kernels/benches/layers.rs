//! GFLOP/s of matrix products and convolutions of real networks: `cargo bench -p armet-kernels --bench layers [FILTER]`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use armet_kernels::epilogue::{Activation, Epilogue};
use armet_kernels::gemm::{PackedMatrix, gemm};
use armet_kernels::isa::{Isa, Isas};
use armet_kernels::threads::Team;
use std::time::Instant;

/// The lower quartile of the time of `work`, in seconds, over about 0.2 s.
fn time(mut work: impl FnMut()) -> f64 {
    let begin = Instant::now();
    work();
    let runs = (0.2 / begin.elapsed().as_secs_f64()).clamp(5.0, 2000.0) as usize;
    let mut times: Vec<f64> = (0..runs)
        .map(|_| {
            let begin = Instant::now();
            work();
            begin.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 4]
}

fn floats(count: usize) -> Vec<f32> {
    (0..count).map(|index| ((index * 7919) % 1000) as f32 / 1000.0 - 0.5).collect()
}

const PRODUCTS: &[(&str, usize, usize, usize)] = &[
    ("mobilenet 112 32>16", 12544, 32, 16),
    ("mobilenet 112 16>96", 12544, 16, 96),
    ("mobilenet 56 96>24", 3136, 96, 24),
    ("mobilenet 56 24>144", 3136, 24, 144),
    ("mobilenet 28 192>32", 784, 192, 32),
    ("mobilenet 14 384>64", 196, 384, 64),
    ("mobilenet 14 576>96", 196, 576, 96),
    ("mobilenet 7 960>160", 49, 960, 160),
    ("mobilenet 7 320>1280", 49, 320, 1280),
    ("resnet 56 64>256", 3136, 64, 256),
    ("resnet 56 256>64", 3136, 256, 64),
    ("resnet 28 128>512", 784, 128, 512),
    ("resnet 14 1024>256", 196, 1024, 256),
    ("resnet 14 256>1024", 196, 256, 1024),
    ("resnet 7 512>2048", 49, 512, 2048),
    ("resnet 7 2048>512", 49, 2048, 512),
    ("resnet fc", 1, 2048, 1000),
    ("bert 128 384>1536", 128, 384, 1536),
];

fn main() {
    let filter = std::env::args().nth(1).filter(|argument| !argument.starts_with('-')).unwrap_or_default();
    let isas: Vec<Isas> = [Isa::Avx512, Isa::Avx2, Isa::Neon, Isa::Scalar]
        .into_iter()
        .filter(|isa| isa.is_available())
        .map(|isa| Isas::only(&[isa]))
        .collect();
    let team = Team::single();
    // Cores clock up over the first moments of work.
    let warm = PackedMatrix::pack(isas[0], 256, 256, &floats(65536), 256, 1);
    let (a, mut c) = (floats(65536), vec![0.0; 65536]);
    for _ in 0..3000 {
        gemm(&team, 256, &a, 256, &warm, &mut c, 256, &Epilogue::default());
    }
    for &(name, m, k, n) in PRODUCTS.iter().filter(|product| product.0.contains(&filter)) {
        let (a, b, bias) = (floats(m * k), floats(k * n), floats(n));
        let mut c = vec![0.0; m * n];
        print!("{name:24} {m:6}x{k:4}x{n:4}");
        for &isas in &isas {
            let packed = PackedMatrix::pack(isas, k, n, &b, n, 1);
            let epilogue =
                Epilogue { bias: Some(&bias), activation: Activation::Relu, ..Epilogue::default() };
            let seconds = time(|| gemm(&team, m, &a, k, &packed, &mut c, n, &epilogue));
            let gflops = 2.0 * (m * k * n) as f64 / seconds / 1e9;
            print!("  {} {gflops:6.1} GF {:8.1} us", isas.best(), seconds * 1e6);
        }
        println!();
    }
}
