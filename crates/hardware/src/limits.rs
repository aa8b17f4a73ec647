//! What this process may use: its affinity mask, and the processor and memory limits of its control groups.

use crate::root::{Root, core_list, field};

/// The cores this process may run on; empty where unknown.
pub(crate) fn affinity(root: &Root) -> Vec<usize> {
    let status = root.text("/proc/self/status").unwrap_or_default();
    field(&status, "Cpus_allowed_list").map(core_list).unwrap_or_default()
}

/// Processor time that the control groups grant, in cores; `None` where unlimited.
pub(crate) fn quota(root: &Root) -> Option<f64> {
    let unified = groups(root, "").filter_map(|folder| {
        let text = root.text(&format!("{folder}/cpu.max"))?;
        let (quota, period) = text.split_once(' ')?;
        ratio(quota.parse().ok()?, period.parse().ok()?)
    });
    let legacy = groups(root, "cpu").filter_map(|folder| {
        ratio(
            root.number(&format!("{folder}/cpu.cfs_quota_us"))?,
            root.number(&format!("{folder}/cpu.cfs_period_us"))?,
        )
    });
    unified.chain(legacy).reduce(f64::min)
}

/// Memory that the control groups grant, in bytes; `None` where unlimited.
pub(crate) fn memory(root: &Root) -> Option<u64> {
    let unified = groups(root, "").filter_map(|folder| root.number(&format!("{folder}/memory.max")));
    let legacy =
        groups(root, "memory").filter_map(|folder| root.number(&format!("{folder}/memory.limit_in_bytes")));
    // The older kind says "unlimited" with a number near the largest one.
    unified.chain(legacy).filter(|limit| *limit < 1 << 60).min()
}

fn ratio(quota: f64, period: f64) -> Option<f64> {
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// Folders of this process's control group and all its parents: of the unified hierarchy (no controller), or of one
/// controller of the older kind. Inside a container the path often names nothing and the mount's top is the group.
fn groups(root: &Root, controller: &'static str) -> impl Iterator<Item = String> {
    let text = root.text("/proc/self/cgroup").unwrap_or_default();
    let own = text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        controllers.split(',').any(|name| name == controller).then(|| path.to_owned())
    });
    let mounts: &[&str] = match controller {
        "" => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
        "cpu" => &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"],
        _ => &["/sys/fs/cgroup/memory"],
    };
    let mut paths = vec![String::new()];
    let own = own.unwrap_or_default();
    for part in own.split('/').filter(|part| !part.is_empty() && *part != "..") {
        paths.push(format!("{}/{part}", paths[paths.len() - 1]));
    }
    mounts.iter().flat_map(move |mount| paths.clone().into_iter().map(move |path| format!("{mount}{path}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::captured(folder.path());
        (folder, root)
    }

    #[test]
    fn the_tightest_group_of_the_unified_hierarchy_counts() {
        let (_folder, root) = board();
        root.write("/proc/self/cgroup", "0::/service/armet\n");
        root.write("/sys/fs/cgroup/cpu.max", "max 100000\n");
        root.write("/sys/fs/cgroup/service/cpu.max", "150000 100000\n");
        root.write("/sys/fs/cgroup/service/armet/cpu.max", "400000 100000\n");
        root.write("/sys/fs/cgroup/service/armet/memory.max", "max\n");
        root.write("/sys/fs/cgroup/service/memory.max", "1048576\n");
        assert_eq!(quota(&root), Some(1.5));
        assert_eq!(memory(&root), Some(1 << 20));
    }

    #[test]
    fn the_older_hierarchy_is_read_too() {
        let (_folder, root) = board();
        root.write("/proc/self/cgroup", "5:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n");
        root.write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "250000");
        root.write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
        root.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
        assert_eq!(quota(&root), Some(2.5), "the mount's top is the container's group");
        assert_eq!(memory(&root), None);
        root.write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
        assert_eq!(quota(&root), None);
    }

    #[test]
    fn nothing_known_is_no_limit() {
        let (_folder, root) = board();
        assert_eq!((affinity(&root), quota(&root), memory(&root)), (vec![], None, None));
        root.write("/proc/self/status", "Name:\tarmet\nCpus_allowed:\tf0\nCpus_allowed_list:\t4-7\n");
        assert_eq!(affinity(&root), [4, 5, 6, 7]);
    }
}
