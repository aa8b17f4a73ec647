//! Memory of the board and of this process.

use std::{fs, io};

use serde::Serialize;

use crate::{
    limits,
    root::{Root, kibibytes},
};

/// Memory of the board, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// All that the kernel manages.
    pub total: Option<u64>,
    /// What can be had without swapping, within the control groups' limit.
    pub available: Option<u64>,
    /// The control groups' limit.
    pub limit: Option<u64>,
}

impl Memory {
    /// Reads `/proc/meminfo` and the control groups.
    pub fn read(root: &Root) -> Self {
        let text = root.text("/proc/meminfo").unwrap_or_default();
        let limit = limits::memory(root);
        let available = kibibytes(&text, "MemAvailable");
        Self {
            total: kibibytes(&text, "MemTotal"),
            available: available.map(|bytes| bytes.min(limit.unwrap_or(u64::MAX))),
            limit,
        }
    }
}

/// Memory of this process, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProcessMemory {
    /// Resident now.
    pub resident: Option<u64>,
    /// The most that was resident since the start or the last [`ProcessMemory::reset_peak`].
    pub peak: Option<u64>,
}

impl ProcessMemory {
    /// Reads `/proc/self/status`.
    pub fn read(root: &Root) -> Self {
        let text = root.text("/proc/self/status").unwrap_or_default();
        Self { resident: kibibytes(&text, "VmRSS"), peak: kibibytes(&text, "VmHWM") }
    }

    /// Lets the peak count from now. Needs a kernel with `/proc/self/clear_refs`; without it the peak keeps counting.
    pub fn reset_peak(root: &Root) -> io::Result<()> {
        fs::write(root.path("/proc/self/clear_refs"), "5")
    }
}

/// Bytes of a page of this machine's memory.
pub fn page_size() -> usize {
    rustix::param::page_size()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_stays_within_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::captured(folder.path());
        root.write("/proc/meminfo", "MemTotal:       8000 kB\nMemFree:  1 kB\nMemAvailable:    6000 kB\n");
        let memory = Memory::read(&root);
        assert_eq!(
            (memory.total, memory.available, memory.limit),
            (Some(8000 << 10), Some(6000 << 10), None)
        );
        root.write("/proc/self/cgroup", "0::/\n");
        root.write("/sys/fs/cgroup/memory.max", "2048000");
        assert_eq!(Memory::read(&root).available, Some(2048000));
    }

    #[test]
    fn this_process_uses_memory_and_its_peak_is_no_less() {
        let root = Root::machine();
        let memory = ProcessMemory::read(&root);
        let (resident, peak) = (memory.resident.unwrap(), memory.peak.unwrap());
        assert!(resident > 0 && peak >= resident);
        assert!(page_size().is_power_of_two());
    }

    #[test]
    fn the_peak_counts_from_its_reset() {
        let root = Root::machine();
        let large = vec![1_u8; 64 << 20];
        assert_eq!(large.iter().step_by(4096).map(|byte| usize::from(*byte)).sum::<usize>(), 16384);
        drop(large);
        let before = ProcessMemory::read(&root).peak.unwrap();
        if ProcessMemory::reset_peak(&root).is_ok() {
            assert!(ProcessMemory::read(&root).peak.unwrap() < before);
        }
    }
}
