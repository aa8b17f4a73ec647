//! Reading whole files whose size nobody vouches for.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use bytes::Bytes;

/// The bytes of a file, or of a pipe until its writer closes it.
///
/// # Errors
/// When it cannot be read, is neither file nor pipe (a device may never end), or has more than `limit` bytes.
pub fn read_file(path: &Path, limit: u64) -> io::Result<Bytes> {
    let kind = path.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !kind.is_file() && !is_pipe(kind) {
        return Err(io::Error::other("it is neither a file nor a pipe"));
    }
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    if length > limit {
        return Err(io::Error::other(format!("it has {length} bytes, and at most {limit} are read")));
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX))?;
    // One byte more than is allowed shows what is longer than it said.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("it has more than {limit} bytes")));
    }
    Ok(bytes.into())
}

#[cfg(unix)]
fn is_pipe(kind: std::fs::FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&kind)
}

#[cfg(not(unix))]
fn is_pipe(_: std::fs::FileType) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_end_or_is_too_long_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, b"12345").unwrap();
        assert_eq!(&read_file(&file, 5).unwrap()[..], b"12345");
        let told = |path: &Path, limit| read_file(path, limit).unwrap_err().to_string();
        assert_eq!(told(&file, 4), "it has 5 bytes, and at most 4 are read");
        assert_eq!(read_file(folder.path(), 9).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        if cfg!(unix) {
            assert_eq!(told(Path::new("/dev/zero"), 9), "it is neither a file nor a pipe");
        }
    }
}
