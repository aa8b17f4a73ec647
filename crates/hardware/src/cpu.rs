//! The processor: its name, clusters of like cores, and their caches.

use std::{collections::BTreeMap, thread};

use serde::Serialize;

use crate::{
    features::features,
    limits,
    root::{Root, core_list, field},
};

/// The processor and what of it this process may use.
#[derive(Clone, Debug, Serialize)]
pub struct Cpu {
    /// The processor's name, or the core types on ARM.
    pub model: Option<String>,
    /// The board's name, where firmware states it.
    pub board: Option<String>,
    /// Rust's name of the architecture.
    pub architecture: &'static str,
    /// Instruction sets, see [`features`].
    pub features: Vec<&'static str>,
    /// Cores that are online.
    pub cores: Vec<usize>,
    /// Of those, the ones in this process's affinity mask.
    pub affinity: Vec<usize>,
    /// Processor time that control groups grant, in cores.
    pub quota: Option<f64>,
    /// Groups of like cores, strongest first; together they are `cores`.
    pub clusters: Vec<Cluster>,
}

/// Cores of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cluster {
    /// Their numbers.
    pub cores: Vec<usize>,
    /// The kind of core, where known.
    pub name: Option<String>,
    /// The kernel's measure of strength, 1024 for the strongest cores.
    pub capacity: Option<u32>,
    /// Highest clock in kHz.
    pub max_khz: Option<u64>,
    /// Caches of its first core.
    pub caches: Vec<Cache>,
}

/// One cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cache {
    /// 1 is nearest to the core.
    pub level: u32,
    /// What it holds.
    pub kind: CacheKind,
    /// Its size.
    pub bytes: u64,
    /// Bytes of a line.
    pub line: Option<u32>,
    /// Cores that share it.
    pub shared_by: Vec<usize>,
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheKind {
    /// Data.
    Data,
    /// Instructions.
    Instruction,
    /// Both.
    Unified,
}

const CORES: &str = "/sys/devices/system/cpu";

impl Cpu {
    /// Reads the processor below `root`.
    pub fn read(root: &Root) -> Self {
        let cpuinfo = root.text("/proc/cpuinfo").unwrap_or_default();
        let cores = online(root, &cpuinfo);
        let clusters = clusters(root, &cpuinfo, &cores);
        let mask = limits::affinity(root);
        let allowed: Vec<usize> = cores.iter().copied().filter(|core| mask.contains(core)).collect();
        let names: Vec<&str> = clusters.iter().filter_map(|cluster| cluster.name.as_deref()).collect();
        let model = field(&cpuinfo, "model name").or_else(|| field(&cpuinfo, "Model")).map(str::to_owned);
        Self {
            model: if names.is_empty() { model } else { Some(names.join(" + ")) },
            board: ["/proc/device-tree/model", "/sys/class/dmi/id/product_name"]
                .iter()
                .find_map(|path| root.text(path)),
            architecture: std::env::consts::ARCH,
            features: features(),
            affinity: if allowed.is_empty() { cores.clone() } else { allowed },
            quota: limits::quota(root),
            cores,
            clusters,
        }
    }

    /// Threads that can run at once for this process: the affinity mask's cores, bounded by the quota; at least one.
    pub fn usable(&self) -> usize {
        let granted = self.quota.map_or(usize::MAX, |cores| cores.ceil() as usize);
        self.affinity.len().min(granted).max(1)
    }

    /// The cores of the affinity mask, strongest first.
    pub fn strongest_first(&self) -> Vec<usize> {
        let ordered = self.clusters.iter().flat_map(|cluster| &cluster.cores).copied();
        ordered.filter(|core| self.affinity.contains(core)).collect()
    }

    /// Bytes of a data or unified cache of the strongest cores that this process may use.
    pub fn data_cache(&self, level: u32) -> Option<u64> {
        let used = |cluster: &&Cluster| cluster.cores.iter().any(|core| self.affinity.contains(core));
        let caches = &self.clusters.iter().find(used)?.caches;
        caches
            .iter()
            .find(|cache| cache.level == level && cache.kind != CacheKind::Instruction)
            .map(|cache| cache.bytes)
    }
}

fn online(root: &Root, cpuinfo: &str) -> Vec<usize> {
    let listed = core_list(&root.text(&format!("{CORES}/online")).unwrap_or_default());
    if !listed.is_empty() {
        return listed;
    }
    let counted = cpuinfo
        .lines()
        .filter(|line| line.split(':').next().is_some_and(|key| key.trim() == "processor"))
        .count();
    let count = if counted > 0 { counted } else { thread::available_parallelism().map_or(1, usize::from) };
    (0..count).collect()
}

/// Cores are of one kind when the kernel gives them one capacity and, on ARM, one part number. Where it gives no
/// capacities, the highest clocks decide, and cores within 15 % of each other count as alike: processors with favoured
/// cores state slightly different clocks for each.
fn clusters(root: &Root, cpuinfo: &str, cores: &[usize]) -> Vec<Cluster> {
    let mut kinds: BTreeMap<(Option<u32>, Option<String>, u64), Cluster> = BTreeMap::new();
    let parts = part_names(cpuinfo);
    let clock = |core: usize| root.number::<u64>(&format!("{CORES}/cpu{core}/cpufreq/cpuinfo_max_freq"));
    let mut by_clock = cores.to_vec();
    by_clock.sort_by_key(|core| std::cmp::Reverse(clock(*core)));
    let mut reference = 0;
    for core in by_clock {
        let capacity = root.number(&format!("{CORES}/cpu{core}/cpu_capacity"));
        let max_khz = clock(core);
        if max_khz.unwrap_or(0) * 100 < reference * 85 || reference == 0 {
            reference = max_khz.unwrap_or(0);
        }
        let name = parts.get(&core).cloned();
        let kind = (capacity, name.clone(), if capacity.is_some() { 0 } else { reference });
        let new = || Cluster { cores: Vec::new(), name, capacity, max_khz, caches: caches(root, core) };
        let cluster = kinds.entry(kind).or_insert_with(new);
        cluster.cores.push(core);
        cluster.max_khz = cluster.max_khz.max(max_khz);
    }
    let mut clusters: Vec<Cluster> = kinds.into_values().collect();
    for cluster in &mut clusters {
        cluster.cores.sort_unstable();
    }
    clusters
        .sort_by_key(|cluster| (std::cmp::Reverse((cluster.capacity, cluster.max_khz)), cluster.cores[0]));
    clusters
}

fn caches(root: &Root, core: usize) -> Vec<Cache> {
    let folder = format!("{CORES}/cpu{core}/cache");
    let indices = root.numbered(&folder, "index").into_iter();
    indices.filter_map(|index| cache(root, &format!("{folder}/{index}"))).collect()
}

fn cache(root: &Root, folder: &str) -> Option<Cache> {
    Some(Cache {
        level: root.number(&format!("{folder}/level"))?,
        kind: match root.text(&format!("{folder}/type"))?.as_str() {
            "Data" => CacheKind::Data,
            "Instruction" => CacheKind::Instruction,
            "Unified" => CacheKind::Unified,
            _ => return None,
        },
        bytes: size(&root.text(&format!("{folder}/size"))?)?,
        line: root.number(&format!("{folder}/coherency_line_size")),
        shared_by: core_list(&root.text(&format!("{folder}/shared_cpu_list")).unwrap_or_default()),
    })
}

fn size(text: &str) -> Option<u64> {
    let (digits, unit) = text.split_at(text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len());
    let shift = match unit {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Names of ARM cores by number, from the implementer and part that the kernel prints for each.
fn part_names(cpuinfo: &str) -> BTreeMap<usize, String> {
    let named = |block: &str| {
        let core = field(block, "processor")?.parse().ok()?;
        let hex = |key| u32::from_str_radix(field(block, key)?.trim_start_matches("0x"), 16).ok();
        let (implementer, part) = (hex("CPU implementer")?, hex("CPU part")?);
        let known = PARTS.iter().find(|(i, p, _)| (*i, *p) == (implementer, part));
        Some((
            core,
            known
                .map_or_else(|| format!("{implementer:#04x}/{part:#05x}"), |(_, _, name)| (*name).to_owned()),
        ))
    };
    cpuinfo.split("\n\n").filter_map(named).collect()
}

/// Implementer, part number and name of the cores found on Linux boards.
const PARTS: &[(u32, u32, &str)] = &[
    (0x41, 0xd03, "Cortex-A53"),
    (0x41, 0xd04, "Cortex-A35"),
    (0x41, 0xd05, "Cortex-A55"),
    (0x41, 0xd07, "Cortex-A57"),
    (0x41, 0xd08, "Cortex-A72"),
    (0x41, 0xd09, "Cortex-A73"),
    (0x41, 0xd0a, "Cortex-A75"),
    (0x41, 0xd0b, "Cortex-A76"),
    (0x41, 0xd0c, "Neoverse-N1"),
    (0x41, 0xd0d, "Cortex-A77"),
    (0x41, 0xd40, "Neoverse-V1"),
    (0x41, 0xd41, "Cortex-A78"),
    (0x41, 0xd42, "Cortex-A78AE"),
    (0x41, 0xd44, "Cortex-X1"),
    (0x41, 0xd46, "Cortex-A510"),
    (0x41, 0xd47, "Cortex-A710"),
    (0x41, 0xd48, "Cortex-X2"),
    (0x41, 0xd49, "Neoverse-N2"),
    (0x41, 0xd4b, "Cortex-A78C"),
    (0x41, 0xd4d, "Cortex-A715"),
    (0x41, 0xd4e, "Cortex-X3"),
    (0x41, 0xd4f, "Neoverse-V2"),
    (0x41, 0xd80, "Cortex-A520"),
    (0x41, 0xd81, "Cortex-A720"),
    (0x41, 0xd82, "Cortex-X4"),
    (0x48, 0xd01, "TaiShan-v110"),
    (0x70, 0x303, "FTC310"),
    (0x70, 0x660, "FTC660"),
    (0x70, 0x661, "FTC661"),
    (0x70, 0x662, "FTC662"),
    (0x70, 0x663, "FTC663"),
    (0x70, 0x664, "FTC664"),
    (0x70, 0x862, "FTC862"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn board() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::captured(folder.path());
        (folder, root)
    }

    /// Four small and four big cores, as on an RK3588.
    fn big_little() -> (tempfile::TempDir, Root) {
        let (folder, root) = board();
        root.write("/sys/devices/system/cpu/online", "0-7\n");
        root.write("/proc/device-tree/model", "Radxa ROCK 5B\0");
        let mut cpuinfo = String::new();
        for core in 0..8 {
            let big = core >= 4;
            let folder = format!("/sys/devices/system/cpu/cpu{core}");
            root.write(&format!("{folder}/cpu_capacity"), if big { "1024\n" } else { "530\n" });
            // The two big pairs differ a little in clock, and are still one kind.
            root.write(
                &format!("{folder}/cpufreq/cpuinfo_max_freq"),
                ["1800000", "2256000", "2304000"][[0, 0, 0, 0, 1, 1, 2, 2][core]],
            );
            for (index, (level, kind, bytes)) in
                [("1", "Data", "64K"), ("1", "Instruction", "64K"), ("2", "Unified", "512K")]
                    .iter()
                    .enumerate()
            {
                root.write(&format!("{folder}/cache/index{index}/level"), level);
                root.write(&format!("{folder}/cache/index{index}/type"), kind);
                root.write(&format!("{folder}/cache/index{index}/size"), bytes);
                root.write(&format!("{folder}/cache/index{index}/shared_cpu_list"), &core.to_string());
            }
            let part = if big { "0xd0b" } else { "0xd05" };
            let block = format!("processor\t: {core}\nCPU implementer\t: 0x41\nCPU part\t: {part}\n\n");
            cpuinfo.push_str(&block);
        }
        root.write("/proc/cpuinfo", &cpuinfo);
        (folder, root)
    }

    #[test]
    fn big_cores_come_first() {
        let (_folder, root) = big_little();
        let cpu = Cpu::read(&root);
        assert_eq!(cpu.model.as_deref(), Some("Cortex-A76 + Cortex-A55"));
        assert_eq!(cpu.board.as_deref(), Some("Radxa ROCK 5B"));
        let clusters: Vec<_> =
            cpu.clusters.iter().map(|c| (c.cores.clone(), c.capacity, c.max_khz)).collect();
        assert_eq!(
            clusters,
            [(vec![4, 5, 6, 7], Some(1024), Some(2_304_000)), (vec![0, 1, 2, 3], Some(530), Some(1_800_000))]
        );
        assert_eq!(cpu.strongest_first(), [4, 5, 6, 7, 0, 1, 2, 3]);
        assert_eq!(
            (cpu.data_cache(1), cpu.data_cache(2), cpu.data_cache(3)),
            (Some(64 << 10), Some(512 << 10), None)
        );
        assert_eq!(cpu.usable(), 8);
    }

    #[test]
    fn affinity_and_quota_bound_what_is_usable() {
        let (_folder, root) = big_little();
        root.write("/proc/self/status", "Cpus_allowed_list:\t2-5,90\n");
        root.write("/proc/self/cgroup", "0::/\n");
        root.write("/sys/fs/cgroup/cpu.max", "250000 100000");
        let cpu = Cpu::read(&root);
        assert_eq!(cpu.affinity, [2, 3, 4, 5], "cores that are not online do not count");
        assert_eq!(cpu.strongest_first(), [4, 5, 2, 3]);
        assert_eq!((cpu.quota, cpu.usable()), (Some(2.5), 3));
    }

    #[test]
    fn without_capacities_clocks_decide_and_favoured_cores_do_not_split() {
        let (_folder, root) = board();
        root.write("/sys/devices/system/cpu/online", "0-3\n");
        for (core, clock) in [5_400_000, 5_100_000, 3_900_000, 3_900_000].iter().enumerate() {
            root.write(
                &format!("/sys/devices/system/cpu/cpu{core}/cpufreq/cpuinfo_max_freq"),
                &clock.to_string(),
            );
        }
        let clusters: Vec<_> = Cpu::read(&root).clusters.into_iter().map(|cluster| cluster.cores).collect();
        assert_eq!(clusters, [[0, 1], [2, 3]]);
    }

    #[test]
    fn a_board_without_sys_is_one_cluster_of_the_counted_cores() {
        let (_folder, root) = board();
        root.write(
            "/proc/cpuinfo",
            "processor\t: 0\nmodel name\t: Some CPU\n\nprocessor\t: 1\nmodel name\t: Some CPU\n",
        );
        let cpu = Cpu::read(&root);
        assert_eq!((cpu.cores.as_slice(), cpu.model.as_deref()), (&[0, 1][..], Some("Some CPU")));
        assert_eq!(cpu.clusters.len(), 1);
        assert_eq!((cpu.affinity.len(), cpu.usable(), cpu.data_cache(1)), (2, 2, None));
    }

    #[test]
    fn an_empty_folder_is_still_a_board() {
        let (_folder, root) = board();
        let cpu = Cpu::read(&root);
        assert!(!cpu.cores.is_empty() && cpu.usable() >= 1);
        assert_eq!(cpu.clusters.iter().map(|cluster| cluster.cores.len()).sum::<usize>(), cpu.cores.len());
    }

    #[test]
    fn this_machine_can_be_read() {
        let cpu = Cpu::read(&Root::machine());
        assert!(cpu.usable() <= cpu.cores.len());
        assert!(cpu.affinity.iter().all(|core| cpu.cores.contains(core)));
        assert_eq!(cpu.strongest_first().len(), cpu.affinity.len());
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(
            ["48K", "2M", "512", "", "3Q"].map(size),
            [Some(48 << 10), Some(2 << 20), Some(512), None, None]
        );
    }
}
