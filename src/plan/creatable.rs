//! Finds what keeps a new instance from being created, though it can be rendered.
//!
//! In: a group, a rendered spec, and whether a real cloud is asked. Out: the error. Must not: look at
//! instances that exist, which stay as they are.

use crate::config::model::{Config, ProviderKind};
use crate::diagnostic::Diagnostic;
use crate::render::group::CompiledGroup;
use crate::spec::InstanceSpec;

/// The error, if the instance can't be created.
pub(super) fn refusal(
    config: &Config,
    group: &CompiledGroup<'_>,
    spec: &InstanceSpec,
    is_real_cloud: bool,
) -> Option<Diagnostic> {
    let kind = config.shard.infra.provider.value;
    let merged = &group.merged;
    let error = |summary: String| {
        Diagnostic::error(summary)
            .at(merged.span, "in this group")
            .about(&merged.name)
    };
    let name = &merged.name;
    if matches!(kind, ProviderKind::Aws | ProviderKind::Gcp)
        && spec.head.value.instance_type.is_empty()
    {
        let finding = error(format!("group `{name}` has no `instance_type`"));
        return Some(finding.hint("Write it in the group, or in its template"));
    }
    let image = match kind {
        ProviderKind::Aws => "ImageId",
        ProviderKind::Gcp => "SourceImage",
        _ => "",
    };
    if spec.args.value.get(image).and_then(|image| image.as_str()) == Some("") {
        let finding = error(format!("the `{image}` of group `{name}` is empty"));
        return Some(finding.hint("Define the image that it reads, under `images`"));
    }
    if is_real_cloud && group.reads_nonce && config.nonce_command.is_empty() {
        let finding = error(format!(
            "group `{name}` reads `.Nonce`, and nothing makes one"
        ));
        let hint = "Set `nonce_command`, or --nonce-command: a program that prints the nonce of a new instance";
        return Some(finding.hint(hint));
    }
    if is_real_cloud && group.reads_ca_cert && config.cluster.ca_cert.is_none() {
        let finding = error(format!(
            "group `{name}` reads `.Cluster.CACert`, which isn't known"
        ));
        return Some(finding.hint("Set `cluster.ca_cert`: a text in PEM, or `file:PATH`"));
    }
    None
}
