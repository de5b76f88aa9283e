//! The memory that this job may still take on this node.

use std::path::Path;

/// The least of all limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Available {
    pub bytes: u64,
    /// Which limit it is, and where it stands.
    pub limit: String,
}

/// None where the system does not say.
pub fn available() -> Option<Available> {
    let variable = |name: &str| std::env::var(name).ok();
    let found = [
        free(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default())
            .map(|bytes| Available { bytes, limit: "the free memory (MemAvailable)".into() }),
        slurm(variable),
        control_group(
            &std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default(),
            Path::new("/sys/fs/cgroup"),
        ),
    ];
    found.into_iter().flatten().min_by_key(|there| there.bytes)
}

fn free(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Of the job on a node. Slurm counts in MiB; 0 is all that the node has.
fn slurm(variable: impl Fn(&str) -> Option<String>) -> Option<Available> {
    let number = |name: &str| variable(name)?.trim().parse::<u64>().ok().filter(|number| *number > 0);
    let node = || Some((number("SLURM_MEM_PER_NODE")?, "SLURM_MEM_PER_NODE"));
    let cores = || {
        let megabytes = number("SLURM_MEM_PER_CPU")?.saturating_mul(number("SLURM_CPUS_ON_NODE")?);
        Some((megabytes, "SLURM_MEM_PER_CPU times SLURM_CPUS_ON_NODE"))
    };
    let (megabytes, name) = node().or_else(cores)?;
    Some(Available { bytes: megabytes.checked_mul(1 << 20)?, limit: format!("Slurm's limit ({name})") })
}

/// The least that any group above this process has left, in version 1 or 2. File pages do not count as
/// taken: the system gives them back.
fn control_group(membership: &str, root: &Path) -> Option<Available> {
    let mut least: Option<Available> = None;
    for line in membership.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (root, limit, taken) = match controllers {
            "" => (root.to_path_buf(), "memory.max", "anon"),
            list if list.split(',').any(|name| name == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes", "total_rss")
            }
            _ => continue,
        };
        let mut group = root.join(path.trim_start_matches('/'));
        loop {
            let read = |name: &str| std::fs::read_to_string(group.join(name)).ok();
            let bytes = read(limit).and_then(|text| text.trim().parse::<u64>().ok());
            // Version 1 writes a huge number where there is no limit.
            if let Some(bytes) = bytes.filter(|bytes| *bytes < 1 << 60) {
                let held = read("memory.stat").and_then(|text| {
                    let line = text.lines().find_map(|line| line.strip_prefix(taken)?.strip_prefix(' '))?;
                    line.trim().parse::<u64>().ok()
                });
                let left = bytes.saturating_sub(held.unwrap_or(0));
                if least.as_ref().is_none_or(|least| left < least.bytes) {
                    let file = group.join(limit);
                    let limit = format!("the limit of the control group ({})", file.display());
                    least = Some(Available { bytes: left, limit });
                }
            }
            if group == root || !group.pop() {
                break;
            }
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_some() {
        assert!(available().is_some_and(|there| there.bytes > 1 << 20));
    }

    #[test]
    fn limits_of_slurm_are_those_of_a_node() {
        let job = |pairs: &'static [(&str, &str)]| {
            slurm(move |name| pairs.iter().find(|(own, _)| *own == name).map(|(_, value)| value.to_string()))
                .map(|there| there.bytes)
        };
        assert_eq!(job(&[("SLURM_MEM_PER_NODE", "2048")]), Some(2 << 30));
        assert_eq!(job(&[("SLURM_MEM_PER_CPU", "512"), ("SLURM_CPUS_ON_NODE", "4")]), Some(2 << 30));
        assert_eq!(job(&[("SLURM_MEM_PER_NODE", "0")]), None);
        assert_eq!(job(&[]), None);
    }

    #[test]
    fn groups_above_count_too() {
        let root = std::env::temp_dir().join(format!("breccia-groups-{}", std::process::id()));
        let inner = root.join("job/step");
        std::fs::create_dir_all(&inner).expect("a folder");
        std::fs::write(inner.join("memory.max"), "max\n").expect("a file");
        std::fs::write(root.join("job/memory.max"), "1000000\n").expect("a file");
        std::fs::write(root.join("job/memory.stat"), "anon 300000\nanon_thp 5\nfile 600000\n")
            .expect("a file");
        let left = |membership: &str| control_group(membership, &root).map(|there| there.bytes);
        let found = control_group("0::/job/step\n", &root).expect("a limit");
        assert!(found.bytes == 700_000 && found.limit.contains("job/memory.max"), "{found:?}");
        assert_eq!(left("0::/\n"), None);
        let old = root.join("memory/old");
        std::fs::create_dir_all(&old).expect("a folder");
        std::fs::write(old.join("memory.limit_in_bytes"), "9223372036854771712\n").expect("a file");
        assert_eq!(left("4:cpu,memory:/old\n"), None);
        std::fs::write(old.join("memory.limit_in_bytes"), "5000\n").expect("a file");
        assert_eq!(left("4:cpu,memory:/old\n"), Some(5000));
        std::fs::remove_dir_all(&root).expect("it was made here");
    }
}
