//! The built-in images.
//!
//! In: nothing. Out: [`SimImage`]s. Must not: change from one run to the next.

use crate::config::model::ProviderKind;

use super::images::{SimImage, ami_id, gcp_id};

/// The images of the simulated providers, with several dates to test look-ups. AWS's images have
/// their real owners; the embedded cloud's own have plain names, which are also their ids. With the
/// provider `sim`, all of them exist.
///
/// | cloud | names | owner | dates |
/// | --- | --- | --- | --- |
/// | AWS | `debian-13-{amd64,arm64}-DATE-N` | 136693071363 | 2025-08-14, 2025-11-17, 2026-03-16, 2026-09-14 |
/// | AWS | `debian-12-{amd64,arm64}-DATE-N` | 136693071363 | 2025-03-16, 2026-01-12 |
/// | AWS | `ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-{amd64,arm64}-server-DATE` | 099720109477 (alias `amazon`) | 2025-08-21, 2026-08-20 |
/// | AWS | `al2023-ami-2023.N.DATE.0-kernel-6.1-{x86_64,arm64}` | 137112412989 (alias `amazon`) | 2025-08-18, 2026-08-17 |
/// | GCP | `debian-13-trixie[-arm64]-vDATE`, families `debian-13[-arm64]` | debian-cloud | 2025-09-10, 2026-09-09 |
/// | GCP | `debian-12-bookworm[-arm64]-vDATE`, families `debian-12[-arm64]` | debian-cloud | 2025-09-10 |
/// | GCP | `ubuntu-2404-noble-{amd64,arm64}-vDATE`, families `ubuntu-2404-lts-{amd64,arm64}` | ubuntu-os-cloud | 2025-08-28, 2026-08-27 |
/// | sim | `debian-13`, `debian-13-arm64`, `debian-12`, `ubuntu-24.04`, `ubuntu-24.04-arm64` | sim | 2025-08-14 |
pub fn catalogue() -> Vec<SimImage> {
    let mut images = Vec::new();
    for (name, arch) in [
        ("debian-12", "amd64"),
        ("debian-13", "amd64"),
        ("debian-13-arm64", "arm64"),
        ("ubuntu-24.04", "amd64"),
        ("ubuntu-24.04-arm64", "arm64"),
    ] {
        images.push(SimImage {
            id: name.to_owned(),
            name: name.to_owned(),
            created: date_of("20250814"),
            owner: "sim".to_owned(),
            arch: arch.to_owned(),
            only_on: Some(ProviderKind::Sim),
            ..SimImage::default()
        });
    }
    for (release, dates) in [
        (
            12,
            &[("20250316", "2053"), ("20260112", "2355")] as &[(&str, &str)],
        ),
        (
            13,
            &[
                ("20250814", "2204"),
                ("20251117", "2299"),
                ("20260316", "2418"),
                ("20260914", "2601"),
            ],
        ),
    ] {
        for (date, number) in dates {
            for arch in ["amd64", "arm64"] {
                let name = format!("debian-{release}-{arch}-{date}-{number}");
                images.push(aws(&name, date, "136693071363", None, arch));
            }
        }
    }
    for date in ["20250821", "20260820"] {
        for arch in ["amd64", "arm64"] {
            let name = format!("ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-{arch}-server-{date}");
            images.push(aws(&name, date, "099720109477", Some("amazon"), arch));
        }
    }
    for (minor, date) in [(8, "20250818"), (12, "20260817")] {
        for (arch, suffix) in [("amd64", "x86_64"), ("arm64", "arm64")] {
            let name = format!("al2023-ami-2023.{minor}.{date}.0-kernel-6.1-{suffix}");
            images.push(aws(&name, date, "137112412989", Some("amazon"), arch));
        }
    }
    for (stem, family, project, arch, dates) in [
        (
            "debian-12-bookworm",
            "debian-12",
            "debian-cloud",
            "amd64",
            &["20250910"] as &[&str],
        ),
        (
            "debian-12-bookworm-arm64",
            "debian-12-arm64",
            "debian-cloud",
            "arm64",
            &["20250910"],
        ),
        (
            "debian-13-trixie",
            "debian-13",
            "debian-cloud",
            "amd64",
            &["20250910", "20260909"],
        ),
        (
            "debian-13-trixie-arm64",
            "debian-13-arm64",
            "debian-cloud",
            "arm64",
            &["20250910", "20260909"],
        ),
        (
            "ubuntu-2404-noble-amd64",
            "ubuntu-2404-lts-amd64",
            "ubuntu-os-cloud",
            "amd64",
            &["20250828", "20260827"],
        ),
        (
            "ubuntu-2404-noble-arm64",
            "ubuntu-2404-lts-arm64",
            "ubuntu-os-cloud",
            "arm64",
            &["20250828", "20260827"],
        ),
    ] {
        for date in dates {
            let name = format!("{stem}-v{date}");
            images.push(SimImage {
                id: gcp_id(project, &name),
                name,
                created: date_of(date),
                owner: project.to_owned(),
                arch: arch.to_owned(),
                family: Some(family.to_owned()),
                only_on: Some(ProviderKind::Gcp),
                ..SimImage::default()
            });
        }
    }
    images
}

fn aws(name: &str, date: &str, owner: &str, alias: Option<&str>, arch: &str) -> SimImage {
    SimImage {
        id: ami_id(name),
        name: name.to_owned(),
        created: date_of(date),
        owner: owner.to_owned(),
        owner_alias: alias.map(str::to_owned),
        arch: arch.to_owned(),
        only_on: Some(ProviderKind::Aws),
        ..SimImage::default()
    }
}

/// Converts `20260914` to the form of AWS's creation dates.
fn date_of(date: &str) -> String {
    format!(
        "{}-{}-{}T00:00:00.000Z",
        &date[..4],
        &date[4..6],
        &date[6..]
    )
}
