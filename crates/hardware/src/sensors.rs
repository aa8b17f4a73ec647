//! What changes while a program runs: clocks and temperatures.

use serde::Serialize;

use crate::root::{Root, field};

/// One reading.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sensors {
    /// Clock of each core asked for, in kHz, where readable.
    pub clocks_khz: Vec<u64>,
    /// Every temperature that the kernel shows.
    pub temperatures: Vec<Temperature>,
}

/// A named temperature.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Temperature {
    /// The kernel's name for the place.
    pub name: String,
    /// Degrees Celsius.
    pub celsius: f64,
}

impl Sensors {
    /// Reads the clocks of `cores` and all temperatures.
    pub fn read(root: &Root, cores: &[usize]) -> Self {
        Self { clocks_khz: clocks(root, cores), temperatures: temperatures(root) }
    }

    /// The fastest clock of the cores asked for.
    pub fn clock_khz(&self) -> Option<u64> {
        self.clocks_khz.iter().copied().max()
    }

    /// The hottest place.
    pub fn hottest(&self) -> Option<&Temperature> {
        self.temperatures.iter().max_by(|a, b| a.celsius.total_cmp(&b.celsius))
    }
}

fn clocks(root: &Root, cores: &[usize]) -> Vec<u64> {
    let governed =
        |core: &usize| root.number(&format!("/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq"));
    let clocks: Vec<u64> = cores.iter().filter_map(governed).collect();
    if !clocks.is_empty() {
        return clocks;
    }
    let text = root.text("/proc/cpuinfo").unwrap_or_default();
    let of_core = |block: &str| {
        let core: usize = field(block, "processor")?.parse().ok()?;
        let megahertz: f64 = field(block, "cpu MHz")?.parse().ok()?;
        cores.contains(&core).then_some((megahertz * 1000.0) as u64)
    };
    text.split("\n\n").filter_map(of_core).collect()
}

fn temperatures(root: &Root) -> Vec<Temperature> {
    let mut found = Vec::new();
    let mut add = |name: Option<String>, path: String, fallback: &str| {
        if let Some(thousandths) = root.number::<f64>(&path) {
            // Some zones report an impossible value while their sensor sleeps.
            if (-50_000.0..250_000.0).contains(&thousandths) {
                found.push(Temperature {
                    name: name.unwrap_or_else(|| fallback.to_owned()),
                    celsius: thousandths / 1000.0,
                });
            }
        }
    };
    for zone in root.numbered("/sys/class/thermal", "thermal_zone") {
        let folder = format!("/sys/class/thermal/{zone}");
        add(root.text(&format!("{folder}/type")), format!("{folder}/temp"), &zone);
    }
    for monitor in root.numbered("/sys/class/hwmon", "hwmon") {
        let folder = format!("/sys/class/hwmon/{monitor}");
        add(root.text(&format!("{folder}/name")), format!("{folder}/temp1_input"), &monitor);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_zones_monitors_and_clocks() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::captured(folder.path());
        root.write("/sys/class/thermal/thermal_zone0/type", "cpu-thermal\n");
        root.write("/sys/class/thermal/thermal_zone0/temp", "48312\n");
        root.write("/sys/class/thermal/thermal_zone1/temp", "-274000\n");
        root.write("/sys/class/hwmon/hwmon2/name", "k10temp\n");
        root.write("/sys/class/hwmon/hwmon2/temp1_input", "61500\n");
        root.write("/sys/devices/system/cpu/cpu4/cpufreq/scaling_cur_freq", "2256000\n");
        root.write("/sys/devices/system/cpu/cpu5/cpufreq/scaling_cur_freq", "408000\n");
        let sensors = Sensors::read(&root, &[4, 5, 6]);
        assert_eq!(sensors.clock_khz(), Some(2_256_000));
        assert_eq!(sensors.temperatures.len(), 2);
        assert_eq!(sensors.hottest().map(|t| (t.name.as_str(), t.celsius)), Some(("k10temp", 61.5)));
    }

    #[test]
    fn without_a_governor_the_clock_is_in_cpuinfo() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::captured(folder.path());
        assert_eq!(Sensors::read(&root, &[0]), Sensors::default());
        root.write(
            "/proc/cpuinfo",
            "processor\t: 0\ncpu MHz\t\t: 2100.5\n\nprocessor\t: 1\ncpu MHz\t\t: 3000.0\n",
        );
        assert_eq!(Sensors::read(&root, &[0]).clock_khz(), Some(2_100_500));
    }
}
