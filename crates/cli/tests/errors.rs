//! What cannot be done: exit code 2, nothing on standard output, and a first line that says what is wrong.

#![expect(clippy::unwrap_used, reason = "a test ends where what it stands on is missing")]

#[expect(dead_code, reason = "other tests need the rest")]
mod common;

use common::{armet, words};

/// The call fails, its first line on the error stream is `first`, and `more` stands in what follows.
fn refused(line: &str, first: &str, more: &str) {
    let folder = common::folder();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("text.onnx", b"hello, this is text\n");
    write("noise.onnx", b"\x08\x08\x07\x00");
    write("empty.onnx", b"");
    write("cut.onnx", &std::fs::read(common::asset("rnet.onnx")).unwrap()[..5000]);
    write("words.png", b"no picture at all");
    write("lite.tflite", b"\x1c\0\0\0TFL3\x14\0\x20\0");
    write("words.gguf", b"GGUF\x03\0\0\0");
    std::fs::create_dir(folder.path().join("saved")).unwrap();
    write("saved/saved_model.pb", b"\x08\x01\x12\0");
    let jpeg = std::fs::read(common::asset("astronaut.jpg")).unwrap();
    write("cut.jpg", &jpeg[..jpeg.len() / 2]);
    write("arrays.npz", b"PK\x03\x04");
    let three = armet::Tensor::zeros(armet::ElementType::F32, [24, 24, 3]).unwrap();
    write("rank3.npy", &armet::npy::write(&three).unwrap());
    let integers = armet::Tensor::zeros(armet::ElementType::I64, [1, 24, 24, 3]).unwrap();
    write("int64.npy", &armet::npy::write(&integers).unwrap());
    let call = armet(folder.path(), words(line));
    assert_eq!(call.code, 2, "{line}: {call:?}");
    assert_eq!(call.out, "", "{line}");
    let (found, rest) = call.err.split_once('\n').unwrap_or((&call.err, ""));
    assert_eq!(found, first, "{line}: {call:?}");
    assert!(rest.contains(more), "{line}: {more} is not in {call:?}");
}

#[test]
fn models_that_cannot_be_loaded() {
    for command in ["run", "bench", "inspect"] {
        let line = |model: &str| {
            format!("{command} {model}{}", if command == "run" { " --input random" } else { "" })
        };
        refused(&line("none.onnx"), "error: cannot load none.onnx", "hint: check the path");
        refused(&line("text.onnx"), "error: cannot load text.onnx", "not an ONNX model: it is text; export ");
        refused(&line("noise.onnx"), "error: cannot load noise.onnx", "it is damaged, or no ONNX file");
        refused(&line("empty.onnx"), "error: cannot load empty.onnx", "the file is empty; bring it again");
        refused(
            &line("cut.onnx"),
            "error: cannot load cut.onnx",
            "the field at byte 38; bring the file again",
        );
        refused(&line("."), "error: cannot load .", "hint: give the .onnx file itself, not the folder");
        refused(
            &line("astronaut.jpg"),
            "error: cannot load astronaut.jpg",
            "it is a JPEG picture; a picture",
        );
        refused(
            &line("lite.tflite"),
            "error: cannot load lite.tflite",
            "it is a TensorFlow Lite model; convert",
        );
        refused(&line("words.gguf"), "error: cannot load words.gguf", "it is a GGUF file");
        refused(
            &line("saved"),
            "error: cannot load saved",
            "hint: it is a TensorFlow SavedModel; convert it: python",
        );
    }
}

/// A field of a protobuf message that holds bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    assert!(bytes.len() < 128, "the length fits in one byte");
    [&[number << 3 | 2, bytes.len() as u8][..], bytes].concat()
}

#[test]
fn all_that_is_unsupported_is_listed_at_once() {
    let node = |operator: &str, domain: &str, input: &str, output: &str| {
        let text = |number, text: &str| field(number, text.as_bytes());
        field(1, &[text(1, input), text(2, output), text(4, operator), text(7, domain)].concat())
    };
    let graph = [
        node("Relu", "", "x", "a"),
        node("Whiten", "com.example", "a", "b"),
        node("Embroider", "", "a", "c"),
        field(11, &field(1, b"x")),
        field(12, &field(1, b"b")),
    ];
    let opset =
        |domain: &str, version: u8| field(8, &[field(1, domain.as_bytes()), vec![2 << 3, version]].concat());
    let model = [vec![1 << 3, 8], field(7, &graph.concat()), opset("", 17), opset("com.example", 1)].concat();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("unknown.onnx"), model).unwrap();
    for line in ["inspect unknown.onnx", "run unknown.onnx --input random", "bench unknown.onnx --json"] {
        let call = armet(folder.path(), words(line));
        assert_eq!((call.code, call.out.as_str()), (2, ""), "{line}: {call:?}");
        let expected = "error: cannot load unknown.onnx\n  because: 2 unsupported\n  \
            node b: com.example.Whiten of opset 1: there is no such operator\n  \
            node c: Embroider of opset 17: there is no such operator\n";
        assert_eq!(call.err, expected, "{line}");
    }
}

#[test]
fn inputs_that_do_not_fit() {
    let unknown = "error: the model has no input pixels; it has input_2";
    refused("run rnet.onnx --input pixels=random", unknown, "");
    refused("run rnet.onnx", "error: input input_2 was not given", "hint: give it with --input NAME=FILE");
    refused(
        "run rnet.onnx --input rank3.npy",
        "error: input input_2 must be float32[N,24,24,3], got float32[24,24,3]",
        "",
    );
    refused(
        "run rnet.onnx --input input_2=int64.npy",
        "error: input input_2 must be float32[N,24,24,3], got int64[1,24,24,3]",
        "",
    );
    refused("run rnet.onnx --input none.png", "error: cannot read picture none.png", "No such file");
    let sound = "error: cannot read text.onnx as an array (.npy) or a picture";
    refused("run rnet.onnx --input text.onnx", sound, "not a PNG or JPEG");
    refused("run rnet.onnx --input words.png", "error: cannot read picture words.png", "not a PNG or JPEG");
    refused("run rnet.onnx --input none.npy", "error: cannot read none.npy", "No such file");
}

#[test]
fn options_that_do_not_fit() {
    let run = |options: &str| format!("run rnet.onnx --input random {options}");
    refused(
        &run("--threads 0"),
        "error: 0 threads were asked for; the number must be between 1 and 1024",
        "",
    );
    refused(&run("--backend gpu"), "error: there is no backend gpu; there are cpu, reference", "");
    let shape = "error: --shape does not fit the model";
    refused(&run("--shape pixels=1,24,24,3"), shape, "the model has no input pixels; it has input_2");
    refused(
        &run("--dim batch=2"),
        "error: --dim does not fit the model",
        "the model has no open dimension batch; it has N",
    );
    let twice = "more than once; give it once";
    refused(&run("--dim N=3 --dim N=50"), &format!("error: --dim was given for N {twice}"), "");
    let shape = "--shape input_2=1,24,24,3";
    refused(&run(&format!("{shape} {shape}")), &format!("error: --shape was given for input_2 {twice}"), "");
    refused(
        &run("--input input_2=random --input input_2=random"),
        "error: input input_2 was given 2 times; give it once",
        "",
    );
    refused(
        &run("--shape input_2=24,24,3"),
        "error: --shape gives input input_2 the shape [24,24,3]; the model declares float32[N,24,24,3]",
        "",
    );
    refused(
        &run("--size 24x24"),
        "error: --size is for pictures, and no input is given as one; sizes of made-up inputs are set with --dim or --shape",
        "",
    );
    let folder = common::folder();
    for (options, first) in [
        (
            "--disable-pass polish",
            "error: invalid value 'polish' for '--disable-pass <PASS>'\n  [possible values: fold_",
        ),
        ("--dump-after polish", "error: invalid value 'polish' for '--dump-after <PASS>'"),
        ("--isa mmx", "error: there is no instruction set mmx; there are scalar, "),
    ] {
        let call = armet(folder.path(), words(&run(options)));
        assert_eq!((call.code, call.out.as_str()), (2, ""), "{options}");
        assert!(call.err.starts_with(first), "{options}: {call:?}");
    }
}

#[test]
fn options_that_cannot_be_read() {
    let folder = common::folder();
    for (line, about) in [
        ("run", "<MODEL>"),
        ("paint rnet.onnx", "unrecognized subcommand 'paint'"),
        ("run rnet.onnx --threads many", "'--threads <THREADS>'"),
        ("run rnet.onnx --shape 1,2", "'--shape <NAME=DIMS>'"),
        ("run rnet.onnx --dim N", "'--dim <NAME=N>'"),
        ("run rnet.onnx --dim =3", "'--dim <NAME=N>': expected NAME=N"),
        ("run rnet.onnx --dim N=99999999999999999999", "\"99999999999999999999\" is not a size"),
        ("run rnet.onnx --shape =1,2", "'--shape <NAME=DIMS>': expected NAME=DIMS"),
        ("run rnet.onnx --isa scalar,", "a value is required for '--isa <ISA>'"),
        ("run rnet.onnx --backend=", "a value is required for '--backend <BACKEND>'"),
        ("run rnet.onnx --input input_2=", "'--input <NAME=FILE>'"),
        ("bench rnet.onnx --seconds soon", "'--seconds <SECONDS>'"),
        ("bench rnet.onnx --seconds -1", "'--seconds <SECONDS>': expected a number of seconds"),
        ("inspect rnet.onnx --format pdf", "'--format <FORMAT>'"),
        ("inspect rnet.onnx --format dot --json", "'--format <FORMAT>' cannot be used with '--json'"),
        ("run rnet.onnx --input astronaut.jpg --size 0x0", "'--size <WxH>': expected WIDTHxHEIGHT"),
        ("run rnet.onnx --input astronaut.jpg --mean nan", "'--mean <R,G,B>': expected a number"),
        ("run rnet.onnx --input random --shape input_2=1,,3", "\"\" is not a dimension"),
        ("detect astronaut.jpg rnet.onnx --score nan", "'--score <SCORE>': expected a number from 0 to 1"),
        (
            "detect astronaut.jpg rnet.onnx --overlap 2",
            "'--overlap <OVERLAP>': expected a number from 0 to 1",
        ),
        ("detect astronaut.jpg rnet.onnx -o x.gif", "let the name end in .png or .jpg"),
        ("ocr astronaut.jpg -o x", "let the name end in .png or .jpg"),
        ("demo -o x.bmp", "let the name end in .png or .jpg"),
        ("completions cmd", "'<SHELL>'"),
    ] {
        let call = armet(folder.path(), words(line));
        assert_eq!((call.code, call.out.as_str()), (2, ""), "{line}");
        let head = call.err.lines().take(3).collect::<Vec<_>>().join("\n");
        assert!(head.starts_with("error: ") && head.contains(about), "{line}: {call:?}");
    }
}

#[test]
fn pictures_that_are_not_there() {
    refused("ocr none.png", "error: cannot read picture none.png", "No such file");
    let cut = "the file ends before the picture does";
    refused("ocr cut.jpg", "error: cannot read picture cut.jpg", cut);
    refused("run onet.onnx --input cut.jpg", "error: cannot read picture cut.jpg", cut);
    refused("run onet.onnx --input .", "error: cannot read .", "is a directory");
    let archive = "error: arrays.npz is an archive (.npz?), and an input is one array";
    refused("run onet.onnx --input arrays.npz", archive, "hint: save one of its arrays with numpy.save");
    refused("detect astronaut.jpg onet.onnx", OUTPUTS, "");
    refused("detect none.png rnet.onnx", "error: cannot read picture none.png", "No such file");
    refused("detect astronaut.jpg none.onnx", "error: cannot load none.onnx", "hint: check the path");
}

/// What `detect` says of a network that finds no boxes.
const OUTPUTS: &str = "error: outputs of shapes [?, 4], [?, 10], [?, 2] belong to no detection head known here (YOLOv5 \
    [1, N, 5 + C], YOLOv8 [1, 4 + C, N], end-to-end [1, N, 6], PicoDet pairs); `run` shows the raw outputs";
