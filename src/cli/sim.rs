//! `nstance sim`: inspect and modify the embedded cloud.
//!
//! In: [`SimArgs`] and the database's path. Out: tables or JSON. Must not: read the environment,
//! the configuration or a terminal; the caller does.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::clock::{Clock, Timestamp};
use crate::diagnostic::counted;
use crate::provider::sim::admin::{Admin, InstanceDetail, InstanceRow, NewImage};
use crate::provider::sim::{SimError, SimImage};
use crate::report::json::FORMAT_VERSION;
use crate::report::table;

/// Looks at the simulated cloud and changes it by hand.
#[derive(Debug, Args)]
pub struct SimArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: SimCommand,
}

/// The subcommands of `nstance sim`. An ID is a provider id, an instance id, an address
/// (`tenant/group/slot`), or the beginning of an id.
#[derive(Debug, Subcommand)]
pub enum SimCommand {
    /// List the instances
    List {
        /// Terminated ones too
        #[arg(long)]
        all: bool,
    },
    /// Show everything about an instance
    Show {
        /// The instance
        id: String,
    },
    /// Stop an instance
    Stop {
        /// The instance
        id: String,
    },
    /// Start an instance
    Start {
        /// The instance
        id: String,
    },
    /// Make an instance unhealthy
    ///
    /// Its health checks fail until `nstance sim recover`; it keeps running.
    Fail {
        /// The instance
        id: String,
    },
    /// Make an instance healthy again after `nstance sim fail`
    Recover {
        /// The instance
        id: String,
    },
    /// Delete an instance, whatever protects it
    Delete {
        /// The instance
        id: String,
    },
    /// Set and unset tags of an instance
    SetTag {
        /// The instance
        id: String,
        /// Tags to set
        #[arg(value_name = "KEY=VALUE", value_parser = parse_tag, required_unless_present = "unset")]
        tags: Vec<(String, String)>,
        /// A tag to remove; may repeat
        #[arg(long, value_name = "KEY")]
        unset: Vec<String>,
    },
    /// Give an instance another type
    SetType {
        /// The instance
        id: String,
        /// The type
        instance_type: String,
    },
    /// Publish and list images
    Image {
        /// What to do
        #[command(subcommand)]
        command: ImageCommand,
    },
    /// Delete everything in the simulated cloud
    Reset {
        /// Don't ask
        #[arg(long)]
        yes: bool,
    },
}

/// The subcommands of `nstance sim image`.
#[derive(Debug, Subcommand)]
pub enum ImageCommand {
    /// Publish an image
    ///
    /// Omitted values come from the known image of the same name with another date.
    Publish {
        /// Its name
        name: String,
        /// Its id
        #[arg(long)]
        id: Option<String>,
        /// When it was made (RFC 3339); by default now
        #[arg(long, value_name = "TIME", value_parser = super::time)]
        created: Option<Timestamp>,
        /// The account or project that owns it
        #[arg(long)]
        owner: Option<String>,
        /// `amd64` or `arm64`
        #[arg(long, value_parser = ["amd64", "arm64"])]
        arch: Option<String>,
        /// A tag; may repeat
        #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = parse_tag)]
        tags: Vec<(String, String)>,
    },
    /// List the images
    List,
}

fn parse_tag(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a tag is given as KEY=VALUE".to_owned()),
    }
}

/// Runs one subcommand on the cloud at `path`.
pub fn run(
    args: &SimArgs,
    path: &Path,
    clock: Arc<dyn Clock>,
    json: bool,
    out: &mut dyn Write,
) -> Result<(), SimError> {
    let now = clock.now();
    let mut admin = Admin::open(path, clock)?;
    let mut print = Printer { out, json, now };
    match &args.command {
        SimCommand::List { all } => print.instances(&admin.list(*all)?),
        SimCommand::Show { id } => print.detail(&admin.show(id)?),
        SimCommand::Stop { id } => print.changed("stopped", &admin.stop(id)?),
        SimCommand::Start { id } => print.changed("started", &admin.start(id)?),
        SimCommand::Fail { id } => print.changed("is unhealthy", &admin.fail(id)?),
        SimCommand::Recover { id } => print.changed("recovered", &admin.recover(id)?),
        SimCommand::Delete { id } => print.changed("deleted", &admin.delete(id)?),
        SimCommand::SetTag { id, tags, unset } => {
            let changes = tags
                .iter()
                .map(|(key, value)| (key, Some(value.as_str())))
                .chain(unset.iter().map(|key| (key, None)));
            let mut changed = None;
            // The id may have matched a tag that is about to change, so resolve it first.
            let id = admin.show(id)?.row.provider_id;
            for (key, value) in changes {
                changed = Some(admin.set_tag(&id, key, value)?);
            }
            match changed {
                Some(row) => print.changed("tagged", &row),
                None => Ok(()),
            }
        }
        SimCommand::SetType { id, instance_type } => {
            print.changed("changed", &admin.set_type(id, instance_type)?)
        }
        SimCommand::Image { command } => match command {
            ImageCommand::Publish {
                name,
                id,
                created,
                owner,
                arch,
                tags,
            } => {
                let image = admin.publish_image(NewImage {
                    name: name.clone(),
                    id: id.clone(),
                    created: *created,
                    owner: owner.clone(),
                    arch: arch.clone(),
                    tags: tags.clone(),
                })?;
                print.published(&image)
            }
            ImageCommand::List => print.images(&admin.images()?),
        },
        SimCommand::Reset { yes } => {
            if !yes {
                return Err(SimError::Unconfirmed {
                    instances: admin.list(false)?.len(),
                });
            }
            let instances = admin.reset()?;
            print.reset(instances)
        }
    }
}

struct Printer<'a> {
    out: &'a mut dyn Write,
    json: bool,
    now: Timestamp,
}

impl Printer<'_> {
    fn json(&mut self, key: &str, value: impl serde::Serialize) -> Result<(), SimError> {
        let document = json!({ "format_version": FORMAT_VERSION, key: value });
        writeln!(self.out, "{document:#}")?;
        Ok(())
    }

    fn instances(&mut self, rows: &[InstanceRow]) -> Result<(), SimError> {
        if self.json {
            return self.json("instances", rows);
        }
        if rows.is_empty() {
            writeln!(self.out, "No instances.")?;
            return Ok(());
        }
        let now = self.now;
        let lines = rows.iter().map(|row| {
            [
                row.provider_id.clone(),
                row.address.clone().unwrap_or_default(),
                row.state.as_str().to_owned(),
                row.instance_type.clone(),
                row.zone.clone(),
                row.subnet.clone().unwrap_or_default(),
                row.ip4.clone(),
                short(row.age(now)),
                row.instance_id.clone().unwrap_or_default(),
            ]
        });
        let heads = [
            "ID",
            "ADDRESS",
            "STATE",
            "TYPE",
            "ZONE",
            "SUBNET",
            "IP4",
            "AGE",
            "INSTANCE ID",
        ];
        let lines: Vec<_> = lines.collect();
        write!(self.out, "{}", table(&heads, &lines))?;
        Ok(())
    }

    fn detail(&mut self, detail: &InstanceDetail) -> Result<(), SimError> {
        if self.json {
            return self.json("instance", detail);
        }
        let row = &detail.row;
        let attributes = &detail.attributes;
        let load_balancers = attributes.load_balancers.as_deref().unwrap_or_default();
        for (name, value) in [
            ("id", Some(row.provider_id.as_str())),
            ("instance id", row.instance_id.as_deref()),
            ("address", row.address.as_deref()),
            ("cluster", row.cluster.as_deref()),
            ("shard", row.shard.as_deref()),
            ("state", Some(row.state.as_str())),
            ("health", detail.unhealthy.then_some("unhealthy (by hand)")),
            ("type", Some(row.instance_type.as_str())),
            ("zone", Some(row.zone.as_str())),
            ("subnet", row.subnet.as_deref()),
            ("ip4", Some(row.ip4.as_str())),
            ("ip6", row.ip6.as_deref()),
            ("created", Some(row.created_at.to_string().as_str())),
        ] {
            if let Some(value) = value {
                writeln!(self.out, "{name:<12} {value}")?;
            }
        }
        if !load_balancers.is_empty() {
            writeln!(
                self.out,
                "{:<12} {}",
                "balancers",
                load_balancers.join(", ")
            )?;
        }
        writeln!(self.out, "\ntags")?;
        for (key, value) in &attributes.tags {
            writeln!(self.out, "  {key} = {value}")?;
        }
        writeln!(self.out, "\nargs")?;
        let args = format!("{:#}", json!(attributes.args));
        for line in args.lines() {
            writeln!(self.out, "  {line}")?;
        }
        if let Some(userdata) = &attributes.userdata {
            writeln!(self.out, "\nuserdata")?;
            for line in userdata.lines() {
                writeln!(self.out, "  {line}")?;
            }
        }
        Ok(())
    }

    fn changed(&mut self, what: &str, row: &InstanceRow) -> Result<(), SimError> {
        if self.json {
            return self.json("instance", row);
        }
        match &row.address {
            Some(address) => writeln!(self.out, "{} ({address}) {what}", row.provider_id)?,
            None => writeln!(self.out, "{} {what}", row.provider_id)?,
        }
        Ok(())
    }

    fn published(&mut self, image: &SimImage) -> Result<(), SimError> {
        if self.json {
            return self.json("image", image);
        }
        writeln!(self.out, "{} ({}) published", image.id, image.name)?;
        Ok(())
    }

    fn images(&mut self, images: &[SimImage]) -> Result<(), SimError> {
        if self.json {
            return self.json("images", images);
        }
        let lines = images.iter().map(|image| {
            [
                image.name.clone(),
                image.arch.clone(),
                image.created.chars().take(10).collect(),
                image.owner.clone(),
                image.family.clone().unwrap_or_default(),
                image.id.clone(),
            ]
        });
        let heads = ["NAME", "ARCH", "CREATED", "OWNER", "FAMILY", "ID"];
        let lines: Vec<_> = lines.collect();
        write!(self.out, "{}", table(&heads, &lines))?;
        Ok(())
    }

    fn reset(&mut self, instances: usize) -> Result<(), SimError> {
        if self.json {
            return self.json("deleted", instances);
        }
        writeln!(
            self.out,
            "The simulated cloud is empty ({} deleted).",
            counted(instances, "instance")
        )?;
        Ok(())
    }
}

/// An age in its largest unit: `45s`, `3m`, `5h`, `12d`.
fn short(age: std::time::Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
#[path = "sim_tests.rs"]
mod tests;
