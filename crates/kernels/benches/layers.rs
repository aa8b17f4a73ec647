//! GFLOP/s of matrix products and convolutions of real networks: `cargo bench -p armet-kernels --bench layers [FILTER]`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use armet_kernels::conv::{ConvOptions, ConvShape, Convolution, InputLayout};
use armet_kernels::epilogue::{Activation, Epilogue};
use armet_kernels::gemm::{PackedMatrix, gemm};
use armet_kernels::isa::{Isa, Isas};
use armet_kernels::threads::Team;
use std::time::Instant;

/// The least time of `work`, in seconds, over about 0.2 s: others share the machine.
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
    times[0]
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

/// Name, input side, channels in and out, kernel, stride, groups.
type Layer = (&'static str, usize, usize, usize, usize, usize, usize);

const CONVOLUTIONS: &[Layer] = &[
    ("mobilenet stem", 224, 3, 32, 3, 2, 1),
    ("resnet stem", 224, 3, 64, 7, 2, 1),
    ("yolov8n stem", 640, 3, 16, 3, 2, 1),
    ("dw 112x32", 112, 32, 32, 3, 1, 32),
    ("dw 112x96 s2", 112, 96, 96, 3, 2, 96),
    ("dw 56x144", 56, 144, 144, 3, 1, 144),
    ("dw 28x192", 28, 192, 192, 3, 1, 192),
    ("dw 14x384", 14, 384, 384, 3, 1, 384),
    ("dw 7x960", 7, 960, 960, 3, 1, 960),
    ("dw5 28x240", 28, 240, 240, 5, 1, 240),
    ("dw5 14x672", 14, 672, 672, 5, 1, 672),
    ("dw5 56x144 s2", 56, 144, 144, 5, 2, 144),
    ("dw3 56x72", 56, 72, 72, 3, 1, 72),
    ("3x3 56 64>64", 56, 64, 64, 3, 1, 1),
    ("3x3 28 128>128", 28, 128, 128, 3, 1, 1),
    ("3x3 14 256>256", 14, 256, 256, 3, 1, 1),
    ("3x3 7 512>512", 7, 512, 512, 3, 1, 1),
    ("3x3 56 128>128 s2", 56, 128, 128, 3, 2, 1),
    ("3x3 160 16>16", 160, 16, 16, 3, 1, 1),
    ("3x3 320 16>32 s2", 320, 16, 32, 3, 2, 1),
    ("3x3 80 32>32", 80, 32, 32, 3, 1, 1),
    ("3x3 40 64>64", 40, 64, 64, 3, 1, 1),
    ("3x3 20 128>128", 20, 128, 128, 3, 1, 1),
    ("1x1 56 256>512 s2", 56, 256, 512, 1, 2, 1),
    ("3x3 28 g32 128>128", 28, 128, 128, 3, 1, 32),
];

fn shape((_, side, in_c, out_c, kernel, stride, groups): Layer) -> ConvShape {
    let pad = kernel / 2;
    ConvShape {
        stride_h: stride,
        stride_w: stride,
        pad_top: pad,
        pad_left: pad,
        pad_bottom: pad,
        pad_right: pad,
        groups,
        ..ConvShape::new((side, side), in_c, out_c, (kernel, kernel))
    }
}

fn bench_convolution(layer: Layer, isas: &[Isas], team: &Team) {
    let shape = shape(layer);
    let weights = floats(shape.weights_len());
    let bias = floats(shape.out_c);
    let epilogue = Epilogue { bias: Some(&bias), activation: Activation::Relu, ..Epilogue::default() };
    let layouts = if shape.in_c == 3 {
        &[InputLayout::ChannelsFirst, InputLayout::ChannelsLast][..]
    } else {
        &[InputLayout::ChannelsLast][..]
    };
    for &input_layout in layouts {
        print!("{:20}", layer.0);
        let mut last = "";
        for &isas in isas {
            for allow_winograd in [false, true] {
                let options = ConvOptions { input_layout, allow_winograd, ..ConvOptions::default() };
                let Ok(convolution) = Convolution::new(isas, &shape, &weights, options) else { continue };
                if allow_winograd && convolution.algorithm_name() == last {
                    continue;
                }
                last = convolution.algorithm_name();
                let x = floats(convolution.input_len());
                let mut y = vec![0.0; convolution.output_len()];
                let mut scratch = vec![0.0; convolution.scratch_len(team.threads())];
                let seconds = time(|| convolution.run(team, &x, &mut y, &epilogue, &mut scratch));
                let gflops = 2.0 * shape.multiplications() as f64 / seconds / 1e9;
                let isa = isas.best();
                print!("  {isa} {last} {gflops:6.1} GF {:8.1} us", seconds * 1e6);
            }
        }
        println!();
    }
}

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
    for &layer in CONVOLUTIONS.iter().filter(|layer| layer.0.contains(&filter)) {
        bench_convolution(layer, &isas[..isas.len() - 1], &team);
    }
}
