//! Opening a library and reading what it says of itself.

#![expect(unsafe_code, reason = "opening a library runs it, and what it exports are pointers")]

use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use armet_graph::ops::CustomRegistration;
use libloading::Library;
use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};

use crate::ABI;
use crate::abi::{Entry, MAY_GIVE_NAN, RawHead, RawLibrary, RawOperator};
use crate::call::LibraryOperator;

/// The function that a library exports.
const SYMBOL: &str = "armet_operators";
/// More operators than any library has.
const MOST: usize = 4096;

/// Why a library gives no operators.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// There is no such file.
    #[error("cannot find the operator library {path}")]
    Find {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The system cannot load it.
    #[error("cannot load the operator library {path}")]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: libloading::Error,
    },
    /// It is no library of operators.
    #[error("{path} is no operator library: it does not export armet_operators")]
    MissingSymbol {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: libloading::Error,
    },
    /// It was made for another version of the interface.
    #[error(
        "{path} speaks version {library} of armet_operators.h, this engine version {engine}; compile it again"
    )]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        library: u32,
        /// The engine's version.
        engine: u32,
    },
    /// It has nothing for this version of the interface.
    #[error("{path} has no operators for version {engine} of armet_operators.h")]
    Nothing {
        /// The file.
        path: PathBuf,
        /// The engine's version.
        engine: u32,
    },
    /// What it says of itself is not complete.
    #[error("the operator library {path} is broken: {what}")]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

/// The operators of a shared library. It stays loaded while the process lives.
///
/// The library's code runs in this process, with all its rights: load only what is trusted like the program itself, and what
/// keeps to the rules that `armet_operators.h` states.
///
/// # Errors
/// See [`LibraryError`].
pub fn load(path: &Path) -> Result<Vec<CustomRegistration>, LibraryError> {
    // A bare name would be looked for in the system's folders.
    let found = path.canonicalize().map_err(|source| LibraryError::Find { path: path.into(), source })?;
    check_file(&found).map_err(|what| LibraryError::Broken { path: path.into(), what })?;
    // SAFETY: the caller names a library that it trusts to be run, its initializers included.
    let library = unsafe { Library::new(&found) };
    let library = library.map_err(|source| LibraryError::Open { path: path.into(), source })?;
    // Operators are used for as long as models are, and nobody can tell when the last one has gone.
    let library: &'static Library = Box::leak(Box::new(library));
    // SAFETY: a library that exports this name declares it as the header does.
    let entry = unsafe { library.get::<Entry>(SYMBOL) };
    let entry = entry.map_err(|source| LibraryError::MissingSymbol { path: path.into(), source })?;
    // SAFETY: the header lets it be called with any version; it gives null or its own static description.
    let described = unsafe { entry(ABI) };
    // SAFETY: null, or the beginning that all versions share.
    let Some(head) = (unsafe { described.cast::<RawHead>().as_ref() }) else {
        return Err(LibraryError::Nothing { path: path.into(), engine: ABI });
    };
    if head.abi != ABI {
        return Err(LibraryError::OtherVersion { path: path.into(), library: head.abi, engine: ABI });
    }
    let broken = |what: String| LibraryError::Broken { path: path.into(), what };
    if head.size < size_of::<RawLibrary>() {
        return Err(broken("its armet_library is shorter than the header has it".into()));
    }
    // SAFETY: of this version and as long as the struct; it lives as long as the process.
    let described = unsafe { &*described };
    let count = described.operator_count;
    if count == 0 || count > MOST || described.operators.is_null() {
        return Err(broken(format!("it lists {count} operators")));
    }
    // SAFETY: of this version, so the list has as many entries as it says and lives as long as the process.
    let operators = unsafe { std::slice::from_raw_parts(described.operators, count) };
    let file = path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into());
    let read = |(index, operator): (usize, &*const RawOperator)| {
        // SAFETY: an entry of the list is null or an operator, which begins with its size.
        let size = unsafe { operator.cast::<usize>().as_ref() }.copied().unwrap_or(0);
        if size < size_of::<RawOperator>() {
            return Err(broken(format!("operator {index} is missing or shorter than the header has it")));
        }
        // SAFETY: not null and as long as the struct; it lives as long as the process.
        read(unsafe { &**operator }, &file).map_err(|what| broken(format!("operator {index}: {what}")))
    };
    operators.iter().enumerate().map(read).collect()
}

/// Refuses what would end the process when the system maps or calls it: a file that is shorter than it says, and data under
/// the name of the function. What is no ELF file at all is left to the system, which says so.
fn check_file(path: &Path) -> Result<(), String> {
    let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
    if !bytes.starts_with(b"\x7FELF") {
        return Ok(());
    }
    let short = || "the file is damaged or shorter than it says of itself".to_owned();
    let file = object::File::parse(&*bytes).map_err(|_| short())?;
    let len = bytes.len() as u64;
    let whole = |(offset, size): (u64, u64)| offset.checked_add(size).is_some_and(|end| end <= len);
    if !file.segments().all(|segment| whole(segment.file_range())) {
        return Err(short());
    }
    let entry = file.dynamic_symbols().find(|symbol| symbol.name() == Ok(SYMBOL) && symbol.is_definition());
    if entry.is_some_and(|symbol| symbol.kind() != SymbolKind::Text) {
        return Err(format!("{SYMBOL} is no function in it"));
    }
    Ok(())
}

fn read(operator: &RawOperator, file: &str) -> Result<CustomRegistration, String> {
    let (domain, name) = (text(operator.domain, "domain")?, text(operator.name, "name")?);
    let infer = operator.infer.ok_or_else(|| format!("{name} has no infer"))?;
    let run = operator.run.ok_or_else(|| format!("{name} has no run"))?;
    let (first, last) = (operator.first_opset, operator.last_opset);
    if name.is_empty() || first > last {
        return Err(format!("{name:?} for versions {first} to {last} is nothing"));
    }
    let may_give_nan = operator.flags & MAY_GIVE_NAN != 0;
    let callbacks = LibraryOperator { infer, run, user: operator.user, may_give_nan };
    Ok(CustomRegistration {
        domain,
        name,
        opsets: first..=last,
        source_name: file.to_owned(),
        overrides: false,
        operator: Arc::new(callbacks),
    })
}

fn text(address: *const c_char, what: &str) -> Result<String, String> {
    if address.is_null() {
        return Err(format!("it has no {what}"));
    }
    // SAFETY: not null, and the header asks for text that ends with a zero byte.
    let text = unsafe { CStr::from_ptr(address) };
    text.to_str().map(str::to_owned).map_err(|_| format!("its {what} is not UTF-8"))
}
