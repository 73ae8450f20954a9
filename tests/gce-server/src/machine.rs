//! Machine types by their names.
//!
//! In: a name. Out: its family and number of CPUs. Must not: know which zones have it.

/// A machine type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MachineType {
    /// As in `n2d`.
    pub(crate) family: String,
    pub(crate) cpus: u64,
}

const FAMILIES: &[&str] = &[
    "a2", "a3", "c2", "c2d", "c3", "c3d", "c4", "c4a", "e2", "g2", "m1", "m2", "m3", "n1", "n2",
    "n2d", "n4", "t2a", "t2d",
];

const CLASSES: &[&str] = &[
    "standard", "highmem", "highcpu", "megamem", "ultramem", "highgpu", "megagpu",
];

impl MachineType {
    /// Reads a name: none where there is no such type.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let new = |family: &str, cpus| {
            Some(Self {
                family: family.to_owned(),
                cpus,
            })
        };
        match name {
            "f1-micro" | "g1-small" => return new("n1", 1),
            "e2-micro" | "e2-small" | "e2-medium" => return new("e2", 2),
            _ => {}
        }
        let parts: Vec<&str> = name.split('-').collect();
        let count = |text: &str| text.parse().ok().filter(|count| (1..=416).contains(count));
        match parts[..] {
            ["custom", cpus, memory] => {
                memory.parse::<u64>().ok()?;
                new("n1", count(cpus)?)
            }
            [family, "custom", cpus, memory] if FAMILIES.contains(&family) => {
                memory.parse::<u64>().ok()?;
                new(family, count(cpus)?)
            }
            // GPUs, not CPUs.
            [family @ ("a2" | "a3"), _, gpus] => new(family, 12 * count(gpus.strip_suffix('g')?)?),
            [family, class, cpus] | [family, class, cpus, "lssd"]
                if FAMILIES.contains(&family) && CLASSES.contains(&class) =>
            {
                new(family, count(cpus)?)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MachineType;

    #[test]
    fn names_are_read() {
        for (name, expected) in [
            ("e2-medium", Some(("e2", 2))),
            ("n2-standard-4", Some(("n2", 4))),
            ("n2d-highmem-96", Some(("n2d", 96))),
            ("custom-2-4096", Some(("n1", 2))),
            ("n2-custom-4-8192", Some(("n2", 4))),
            ("c3-standard-8-lssd", Some(("c3", 8))),
            ("a2-highgpu-1g", Some(("a2", 12))),
            ("e2-standerd-4", None),
            ("x9-standard-4", None),
            ("n2-standard-0", None),
            ("n2-standard", None),
            ("", None),
        ] {
            let found = MachineType::parse(name);
            let found = found.as_ref().map(|found| (&*found.family, found.cpus));
            assert_eq!(found, expected, "{name}");
        }
    }
}
