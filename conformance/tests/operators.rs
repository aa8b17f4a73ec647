//! Custom operators from shared libraries, compiled here from C: the example, and libraries that do wrong.

use std::path::{Path, PathBuf};
use std::process::Command;

use armet::{
    CustomOperators, CustomProblem, Engine, EvaluateError, LibraryError, LoadOptions, Model, RunError,
    Tensor, load_operators,
};
use armet_conformance::resources::skip;

/// Operators that do wrong, each in its own way.
const WRONG: &str = r#"
#include "armet_operators.h"
static int32_t same(void *user, armet_call *call) {
    (void)user;
    call->outputs[0]->element = call->inputs[0]->element;
    call->outputs[0]->rank = 1;
    call->outputs[0]->dims[0] = call->inputs[0]->dims[0];
    return ARMET_OK;
}
static int32_t unknown_length(void *user, armet_call *call) {
    same(user, call);
    call->outputs[0]->dims[0] = -7;
    return ARMET_OK;
}
static int32_t patient(void *user, armet_call *call) {
    return call->inputs[0]->dims[0] < 0 ? ARMET_NEEDS_SHAPE : same(user, call);
}
static int32_t fails(void *user, armet_call *call) { (void)user; return armet_fail(call, "no such luck"); }
static int32_t silent(void *user, armet_call *call) { (void)user; (void)call; return 77; }
static int32_t nan_writer(void *user, armet_call *call) {
    (void)user;
    ((float *)call->outputs[0]->data)[1] = 0.0f / 0.0f;
    return ARMET_OK;
}
static int32_t ones(void *user, armet_call *call) {
    (void)user;
    for (size_t i = 0; i < call->outputs[0]->bytes / 4; i++) ((float *)call->outputs[0]->data)[i] = 1.0f;
    return ARMET_OK;
}
static float own[2];
static int32_t own_memory(void *user, armet_call *call) {
    (void)user;
    call->outputs[0]->data = own;
    return ARMET_OK;
}
static int32_t shorter(void *user, armet_call *call) {
    (void)user;
    call->outputs[0]->dims[0] = 1;
    return ARMET_OK;
}
#define OPERATOR(n, i, r) \
    static const armet_operator n = {sizeof(armet_operator), "example", #n, 1, INT64_MAX, 0, i, r, 0}
OPERATOR(Fails, same, fails);
OPERATOR(Silent, same, silent);
OPERATOR(NotANumber, same, nan_writer);
OPERATOR(UnknownLength, unknown_length, ones);
OPERATOR(Patient, patient, ones);
OPERATOR(OwnMemory, same, own_memory);
OPERATOR(Shorter, same, shorter);
OPERATOR(NoType, silent, ones);
OPERATOR(NoRun, same, RUN);
static const armet_operator *const all[] = {&Fails, &Silent, &NotANumber, &UnknownLength, &Patient,
                                            &OwnMemory, &Shorter, &NoType, &NoRun};
static const armet_library library = {sizeof(armet_library), ABI, "wrong", all, 9};
#ifndef NAME
#define NAME armet_operators
#endif
const armet_library *NAME(uint32_t abi) { (void)abi; return &library; }
"#;

fn operators_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/operators")
}

/// Compiles a file; `None` where there is no compiler.
fn compile(source: &Path, out: &Path, defines: &[&str]) -> Option<()> {
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-O1", "-Wall", "-I"]).arg(operators_folder().join("include"));
    command.args(defines).arg("-o").arg(out).arg(source).arg("-lm");
    match command.output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(())
        }
        Err(_) => None,
    }
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
}

/// An ONNX file with the node `y = example.<operator>(x)`, with `alpha` of 3.
fn model(operator: &str) -> Vec<u8> {
    let value = |name: &str| {
        let any_length = field(1, &field(2, b"n"));
        let tensor = [&[8, 1], &field(2, &any_length)[..]].concat();
        [field(1, name.as_bytes()), field(2, &field(1, &tensor))].concat()
    };
    let alpha = [&field(1, b"alpha")[..], &[21], &3.0f32.to_le_bytes(), &[160, 1, 1]].concat();
    let node = [
        field(1, b"x"),
        field(2, b"y"),
        field(4, operator.as_bytes()),
        field(5, &alpha),
        field(7, b"example"),
    ];
    let graph = [field(1, &node.concat()), field(2, b"g"), field(11, &value("x")), field(12, &value("y"))];
    let opset =
        |domain: &str, version: u8| field(8, &[&field(1, domain.as_bytes())[..], &[16, version]].concat());
    [vec![8, 10], field(7, &graph.concat()), opset("", 21), opset("example", 1)].concat()
}

fn run(library: &Path, operator: &str, values: &[f32]) -> Result<Vec<f32>, RunError> {
    let mut operators = CustomOperators::new();
    for registration in load_operators(library).expect("the library is right") {
        operators.add(registration);
    }
    let model = Model::from_bytes_with(model(operator), &LoadOptions { operators, ..LoadOptions::default() })
        .expect("the model is right");
    let engine = Engine::builder().threads(1).build().expect("an engine");
    let mut session = engine.compile(&model, &armet::CompileSettings::default())?.session();
    let given = Tensor::vector(values);
    let outputs = session.run(&[("x", (&given).into())])?;
    Ok(outputs.tensor("y").expect("the output").values::<f32>().expect("numbers").into_owned())
}

#[test]
fn the_c_example_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("libsoft_sign.so");
    let source = operators_folder().join("examples/soft_sign.c");
    if compile(&source, &library, &["-Wextra", "-Werror", "-std=gnu11"]).is_none() {
        return skip("the_c_example_runs", "cc");
    }
    assert_eq!(run(&library, "SoftSign", &[-1.0, 0.0, 3.0]).expect("it runs"), [-0.25, 0.0, 0.5]);
    assert_eq!(run(&library, "SoftSign", &[]).expect("it runs"), [0.0; 0]);
}

#[test]
fn libraries_that_do_wrong_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("wrong.c");
    std::fs::write(&source, WRONG).expect("a file");
    let make = |name: &str, defines: &[&str]| {
        let library = folder.path().join(name);
        compile(&source, &library, defines).map(|()| library)
    };
    let Some(wrong) = make("libwrong.so", &["-DABI=ARMET_OPERATORS_ABI", "-DRUN=ones"]) else {
        return skip("libraries_that_do_wrong_are_named", "cc");
    };
    let problem = |operator| match run(&wrong, operator, &[1.0, 2.0]) {
        Err(RunError::Evaluate { source: EvaluateError::Custom(error), .. }) => {
            assert_eq!(
                (error.source_name.as_str(), error.operator),
                ("libwrong.so", format!("example.{operator}"))
            );
            error.problem
        }
        other => panic!("{operator}: {other:?}"),
    };
    assert_eq!(problem("Fails"), CustomProblem::Failed("no such luck".into()));
    assert_eq!(problem("Silent"), CustomProblem::Failed("it returned 77".into()));
    assert_eq!(problem("NotANumber"), CustomProblem::NotANumber { output: 0, index: 1 });
    let error = run(&wrong, "UnknownLength", &[1.0]).expect_err("no input has this length").to_string();
    assert!(error.contains("the length -7, which no input has"), "{error}");
    assert_eq!(run(&wrong, "Patient", &[1.0, 2.0]).expect("it runs"), [1.0, 1.0]);

    for operator in ["OwnMemory", "Shorter"] {
        let problem = problem(operator);
        assert!(problem.to_string().contains("run changed what result 0 is"), "{problem}");
    }
    let error = run(&wrong, "NoType", &[1.0]).expect_err("infer says no").to_string();
    assert!(error.contains("example.NoType of libwrong.so failed: infer failed: it returned 77"), "{error}");

    let other = make("libother.so", &["-DABI=2", "-DRUN=ones"]).expect("there is a compiler");
    let error = load_operators(&other).expect_err("it is of another version");
    assert!(matches!(error, LibraryError::OtherVersion { library: 2, engine: 1, .. }), "{error}");
    let unnamed =
        make("libunnamed.so", &["-DABI=1", "-DRUN=ones", "-DNAME=other"]).expect("there is a compiler");
    assert!(matches!(load_operators(&unnamed), Err(LibraryError::MissingSymbol { .. })));
    let half = make("libhalf.so", &["-DABI=1", "-DRUN=0"]).expect("there is a compiler");
    let error = load_operators(&half).expect_err("an operator has no run").to_string();
    assert!(error.contains("NoRun has no run"), "{error}");
    assert!(matches!(load_operators(&source), Err(LibraryError::Open { .. })));
    let bytes = std::fs::read(&wrong).expect("it is there");
    let cut = folder.path().join("libcut.so");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).expect("a file");
    assert!(matches!(load_operators(&cut), Err(LibraryError::Broken { .. })));
    let datum = folder.path().join("datum.c");
    std::fs::write(&datum, "int armet_operators = 5;").expect("a file");
    let library = folder.path().join("libdatum.so");
    compile(&datum, &library, &[]).expect("there is a compiler");
    let error = load_operators(&library).expect_err("it is no function").to_string();
    assert!(error.contains("armet_operators is no function in it"), "{error}");
    let nowhere = folder.path().join("libnowhere.so");
    assert!(matches!(load_operators(&nowhere), Err(LibraryError::Find { .. })));
}
