//! The table of real models: `models.tsv` beside this file, embedded and parsed once.
//!
//! Contract: every row has an id of its own and a well-formed source; a table that does not parse fails this crate's
//! tests, so [`entries`] cannot fail at run time.

use std::{fmt, sync::LazyLock};

use serde::Serialize;

/// One file that `armet models fetch` can bring.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Entry {
    /// Short name, unique in the table.
    pub id: &'static str,
    /// Path below the folder of models.
    pub file: &'static str,
    /// SHA-256 of the file, lower-case hex.
    pub sha256: &'static str,
    /// Bytes of the file.
    pub size: u64,
    /// SPDX expression, or `unstated`.
    pub licence: &'static str,
    /// Whether the licence lets a program carry the file.
    pub ship: bool,
    /// Where it comes from.
    #[serde(serialize_with = "as_text")]
    pub source: Source,
    /// What it is.
    pub about: &'static str,
}

impl Entry {
    /// `onnx`, `tflite`, `gguf`, or `media` for pictures and sounds.
    pub(crate) fn kind(&self) -> &'static str {
        if self.file.starts_with("media/") {
            return "media";
        }
        self.file.rsplit_once('.').map_or("", |(_, extension)| extension)
    }
}

/// Where a file comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A file of a package.
    Member(Member),
    /// Made from a skeleton that this program carries.
    Skeleton { name: &'static str, input: Input },
}

/// What a skeleton's recipes take numbers from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// Nothing.
    None,
    /// The bytes of a file of weights.
    Weights(Member),
    /// Another model of the table, by id.
    Model(&'static str),
}

/// One file inside a package of a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub package: Package,
    pub path: &'static str,
}

/// A package: which registry, and name with version as that registry's client spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Package {
    pub registry: Registry,
    pub spec: &'static str,
}

/// How a package is brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Registry {
    /// A wheel, by pip.
    Wheel,
    /// A Python source archive, by pip's own finder: `pip download` would run the package's build script.
    SourceArchive,
    /// A tarball, by npm.
    Npm,
}

impl fmt::Display for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wheel => "pypi",
            Self::SourceArchive => "sdist",
            Self::Npm => "npm",
        })
    }
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.registry, self.spec)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member(member) => write!(f, "{}!{}", member.package, member.path),
            Self::Skeleton { name, input } => {
                write!(f, "skeleton:{name}")?;
                match input {
                    Input::None => Ok(()),
                    Input::Weights(member) => write!(f, " < {}!{}", member.package, member.path),
                    Input::Model(id) => write!(f, " < model:{id}"),
                }
            }
        }
    }
}

fn as_text<S: serde::Serializer>(source: &Source, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(source)
}

/// All rows, in the table's order.
pub(crate) fn entries() -> &'static [Entry] {
    static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
        let rows = include_str!("models.tsv").lines().filter(|line| !line.starts_with('#'));
        rows.map(|line| parse(line).expect("the embedded table is held to its form by a test")).collect()
    });
    &ENTRIES
}

/// The row of an id.
pub(crate) fn entry(id: &str) -> Option<&'static Entry> {
    entries().iter().find(|entry| entry.id == id)
}

fn parse(line: &'static str) -> Option<Entry> {
    let mut fields = line.split('\t');
    let mut field = || fields.next();
    let entry = Entry {
        id: field()?,
        file: field()?,
        sha256: field()?,
        size: field()?.parse().ok()?,
        licence: field()?,
        ship: match field()? {
            "yes" => true,
            "no" => false,
            _ => return None,
        },
        source: source(field()?)?,
        about: field()?,
    };
    field().is_none().then_some(entry)
}

fn source(text: &'static str) -> Option<Source> {
    let Some(made) = text.strip_prefix("skeleton:") else { return Some(Source::Member(member(text)?)) };
    let (name, input) = match made.split_once(" < ") {
        None => (made, Input::None),
        Some((name, input)) => match input.strip_prefix("model:") {
            Some(id) => (name, Input::Model(id)),
            None => (name, Input::Weights(member(input)?)),
        },
    };
    Some(Source::Skeleton { name, input })
}

fn member(text: &'static str) -> Option<Member> {
    let (head, path) = text.split_once('!')?;
    let (registry, spec) = head.split_once(':')?;
    let registry = match registry {
        "pypi" => Registry::Wheel,
        "sdist" => Registry::SourceArchive,
        "npm" => Registry::Npm,
        _ => return None,
    };
    Some(Member { package: Package { registry, spec }, path })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::models::made;

    #[test]
    fn every_row_is_well_formed_and_has_an_id_of_its_own() {
        let mut ids = HashSet::new();
        for line in include_str!("models.tsv").lines().filter(|line| !line.starts_with('#')) {
            let entry = parse(line).unwrap_or_else(|| panic!("not a row: {line}"));
            assert!(ids.insert(entry.id), "{} is there twice", entry.id);
            assert!(
                entry.sha256.len() == 64
                    && entry.sha256.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')),
                "{}",
                entry.id
            );
            assert!(entry.size > 0, "{}", entry.id);
            assert!(["onnx", "tflite", "gguf", "media"].contains(&entry.kind()), "{}", entry.file);
            assert_eq!(
                line.split('\t').nth(6),
                Some(entry.source.to_string().as_str()),
                "sources print as they are written"
            );
        }
        assert_eq!(ids.len(), entries().len());
    }

    #[test]
    fn every_made_row_has_its_skeleton_and_its_input() {
        let mut made_rows = 0;
        for entry in entries() {
            if let Source::Skeleton { name, input } = entry.source {
                made_rows += 1;
                assert!(made::skeleton(name).is_some(), "{name} is not embedded");
                if let Input::Model(id) = input {
                    assert!(super::entry(id).is_some(), "{id} is not in the table");
                }
                assert!(entry.ship, "{name}: a skeleton is shipped, so its licence must allow it");
            }
        }
        assert_eq!(made_rows, 11);
    }

    #[test]
    fn files_whose_licence_forbids_it_are_marked() {
        for entry in entries() {
            let free = !entry.licence.contains("GPL") && entry.licence != "unstated";
            assert_eq!(entry.ship, free, "{}", entry.id);
        }
    }
}
