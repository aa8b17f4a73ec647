//! The folder below which `/proc` and `/sys` are read, and the small text formats that their files have.

use std::{fs, path::PathBuf};

/// Where `/proc` and `/sys` lie: the running machine's, or those of a captured board.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

impl Default for Root {
    fn default() -> Self {
        Self::machine()
    }
}

impl Root {
    /// The running machine.
    pub fn machine() -> Self {
        Self("/".into())
    }

    /// A captured board: a folder with `proc` and `sys` in it.
    pub fn captured(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// A file's text without surrounding space; `None` where it cannot be read.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let bytes = fs::read(self.path(path)).ok()?;
        // Files of the device tree end in a zero byte.
        Some(
            String::from_utf8_lossy(&bytes).trim_matches(|c: char| c == '\0' || c.is_whitespace()).to_owned(),
        )
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// Names in a folder that are `prefix` and a number, by that number.
    pub(crate) fn numbered(&self, folder: &str, prefix: &str) -> Vec<String> {
        let names = fs::read_dir(self.path(folder)).into_iter().flatten().filter_map(Result::ok);
        let mut found: Vec<(usize, String)> = names
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                Some((name.strip_prefix(prefix)?.parse().ok()?, name))
            })
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, name)| name).collect()
    }

    #[cfg(test)]
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// The value of `key` in lines of `key: value`.
pub(crate) fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

/// The kernel's list format: `0-3,6,8-9`. Ranges are bounded, so that no text can ask for much memory.
pub(crate) fn core_list(text: &str) -> Vec<usize> {
    const MOST_CORES: usize = 4096;
    let mut cores = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<usize>(), last.trim().parse::<usize>()) {
            cores.extend(first..=last.min(MOST_CORES));
        }
    }
    cores.sort_unstable();
    cores.dedup();
    cores
}

/// Kibibytes of a line such as `MemTotal: 123 kB`, in bytes.
pub(crate) fn kibibytes(text: &str, key: &str) -> Option<u64> {
    field(text, key)?.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(core_list("0-3,6,8-9\n"), [0, 1, 2, 3, 6, 8, 9]);
        assert_eq!(core_list("3,1,1"), [1, 3]);
        assert_eq!(core_list(""), [0; 0]);
        assert_eq!(core_list("x-y,5"), [5]);
        assert!(core_list("0-18446744073709551615").len() <= 4097);
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "Cpu:\t1\nMemTotal:  16 kB\nMemTotalHigh: 2 kB\n";
        assert_eq!(field(text, "Cpu"), Some("1"));
        assert_eq!(kibibytes(text, "MemTotal"), Some(16384));
        assert_eq!(field(text, "Mem"), None);
    }
}
