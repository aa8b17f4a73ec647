//! Every case of every operator on the CPU backend, with each instruction set that this processor has.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use armet_backend_cpu::Cpu;
use armet_conformance::{Outcome, check_case};
use armet_graph::OpKind;
use armet_kernels::isa::{Isa, Isas};
use armet_runtime::Backend;
use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    let arguments = Arguments::from_args();
    let refused: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
    let mut trials = Vec::new();
    let mut sets = vec![("all", Isas::detect()), ("scalar", Isas::only(&[Isa::Scalar]))];
    if Isa::Avx2.is_available() {
        sets.push(("avx2", Isas::only(&[Isa::Scalar, Isa::Avx2])));
    }
    for (name, isas) in sets {
        for &kind in OpKind::ALL {
            for case in kind.cases() {
                let refused = Arc::clone(&refused);
                let title = format!("{}::{}::{name}", kind.name(), case.name);
                trials.push(Trial::test(title, move || {
                    let backend: Arc<dyn Backend> = Arc::new(Cpu::new(isas));
                    match check_case(&case, &backend, 2).map_err(Failed::from)? {
                        Outcome::Agreed { .. } => {}
                        Outcome::Refused(reason) => {
                            let key = format!("{}: {reason}", kind.name());
                            *refused
                                .lock()
                                .unwrap_or_else(PoisonError::into_inner)
                                .entry(key)
                                .or_default() += 1;
                        }
                    }
                    Ok(())
                }));
            }
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    let refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
    let total: usize = refused.values().sum();
    let mut text = format!("ran on: {}; {total} cases were left to the reference\n", Isas::detect().best());
    for (what, count) in refused.iter() {
        text.push_str(&format!("  {count:4} {what}\n"));
    }
    // A closed stream takes the remark, not the result.
    drop(std::io::stderr().write_all(text.as_bytes()));
    conclusion.exit();
}
