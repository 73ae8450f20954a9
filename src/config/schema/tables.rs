//! Every key of a configuration: where it is allowed, its shape and its description.
//!
//! In: nothing. Out: a [`Table`] for each kind of object. The decoder uses the keys, the JSON
//! Schema everything; tests compare the two. Must not: read anything.

use super::{Key, Shape, Table};

const PROVIDERS: &[&str] = &[
    "aws", "google", "gcp", "sim", "mock", "tmux", "proxmox", "yandex",
];

/// The maximum size of a group; a larger number is most likely a typo.
pub const LARGEST_GROUP: u32 = 1_000_000;

/// The maximum of `max_surge`, as a percentage of the size.
pub const LARGEST_SURGE: u32 = 1_000;

/// The description of keys for the server.
const SERVER: &str = "Read by the Nstance server only; any value.";

/// The whole configuration.
pub static TOP: Table = Table {
    title: "configuration",
    about: "One shard of a cluster: which groups of instances there should be.",
    keys: &[
        Key::new(
            "cluster",
            Shape::Object(&CLUSTER),
            "The cluster that the shard belongs to.",
        )
        .required(),
        Key::new(
            "shard",
            Shape::Object(&SHARD),
            "The shard: where its instances live.",
        )
        .required(),
        Key::new(
            "state",
            Shape::Filled,
            "Where the state is: `sqlite:PATH` or `postgresql://HOST/DATABASE`, without a password; `{cluster}` and `{shard}` are replaced.",
        )
        .ours(),
        Key::new(
            "source",
            Shape::Object(&FOREIGN_SOURCE),
            "A document of another program, whose groups are added to `groups`.",
        )
        .ours(),
        Key::new(
            "load_balancers",
            Shape::Named(&Shape::Object(&LOAD_BALANCER)),
            "Load balancers by name, for groups to be registered with.",
        ),
        Key::new(
            "images",
            Shape::Images(&Shape::Object(&IMAGE)),
            "Images by name, each a look-up; templates reach them as `{{ .Image.NAME }}`.",
        ),
        Key::new(
            "certificates",
            Shape::Named(&Shape::Object(&CERTIFICATE)),
            "Certificates by name, which the Nstance server makes.",
        ),
        Key::new(
            "nat",
            Shape::Named(&Shape::Object(&NAT)),
            "Tenant → its NAT instances, which the Nstance server creates and deletes.",
        ),
        Key::new("tunnels", Shape::Any, SERVER),
        Key::new(
            "server",
            Shape::Object(&SERVER_SECTION),
            "What the Nstance server needs for itself.",
        ),
        Key::new(
            "dns",
            Shape::Object(&DNS),
            "What the DNS names of groups and instances end in.",
        )
        .ours(),
        Key::new(
            "nonce_command",
            Shape::Texts,
            "A program and its arguments that print the `.Nonce` of a new instance.",
        )
        .ours(),
        Key::new(
            "vars",
            Shape::Map,
            "The lowest layer of vars; `--var KEY=VALUE` and `NSTANCE_VAR_KEY` set them.",
        )
        .ours(),
        Key::new(
            "defaults",
            Shape::Object(&DEFAULTS),
            "The layer below all templates and groups.",
        ),
        Key::new(
            "templates",
            Shape::Named(&Shape::Object(&TEMPLATE)),
            "Templates by name, for groups to build on.",
        ),
        Key::new(
            "functions",
            Shape::Choice(&["go", "sprig"]),
            "Which functions Go templates have: Go's own and `default`, or Sprig's and Helm's too.",
        )
        .ours()
        .default("\"go\""),
        Key::new(
            "templates_lib",
            Shape::Snippets,
            "Named snippets that every Go template can call.",
        )
        .ours(),
        Key::new(
            "groups",
            Shape::Groups,
            "Tenant → group → fields; or group → fields, for the tenant `default`.",
        ),
        Key::new(
            "groups_form",
            Shape::Choice(&["nested", "flat"]),
            "How `groups` is meant, where it could be read either way.",
        )
        .ours(),
        Key::new(
            "destroy_budget",
            Shape::Object(&DESTROY_BUDGET),
            "More deletions than both of these, replacements aside, and apply requires `--allow-delete`.",
        )
        .ours(),
        Key::new(
            "accept",
            Shape::List(&Shape::Object(&ACCEPT)),
            "Drift that is known: `drift` shows it and doesn't count it.",
        )
        .ours(),
        Key::new(
            "strict",
            Shape::Flag,
            "Warnings of the configuration, such as a var that isn't set, are errors.",
        )
        .ours()
        .default("false"),
        Key::new(
            "variables",
            Shape::Named(&Shape::Object(&VARIABLE)),
            "What the configuration asks for, by name; texts reach it as `${var.NAME}`.",
        )
        .ours(),
        Key::new(
            "include",
            Shape::Paths,
            "Other files of this configuration, relative to this one; `*` and `?` stand for parts of names.",
        )
        .ours(),
        Key::new(
            "$schema",
            Shape::Any,
            "Where this schema is, for editors; ignored.",
        ),
    ],
};

/// A variable; `config::variables` reads it before everything else.
pub static VARIABLE: Table = Table {
    title: "variable",
    about: "A value that the configuration asks for.",
    keys: &[
        Key::new(
            "type",
            Shape::Filled,
            "Its type, as in HCL: `string`, `number`, `list(string)`, …",
        )
        .default("\"any\""),
        Key::new(
            "default",
            Shape::Any,
            "Its value where none is given; without it, one must be.",
        ),
        Key::new("description", Shape::Text, "What it is for."),
        Key::new("sensitive", Shape::Flag, "Its value isn't shown.").default("false"),
        Key::new("nullable", Shape::Flag, "Whether it may be null.").default("true"),
        Key::new(
            "validation",
            Shape::Any,
            "Conditions on its value: `condition` (an expression of HCL) and `error_message` each.",
        ),
    ],
};

/// `cluster`
pub static CLUSTER: Table = Table {
    title: "cluster",
    about: "The cluster that the shard belongs to.",
    keys: &[
        Key::new("id", Shape::Id, "The cluster's id.").required(),
        Key::new(
            "slug",
            Shape::Text,
            "A short name for it; by default the id.",
        )
        .ours(),
        Key::new("fqdn", Shape::Text, "Its domain name.")
            .ours()
            .default("\"\""),
        Key::new(
            "ca_cert",
            Shape::Filled,
            "Its CA certificate, `.Cluster.CACert`: PEM, or `file:PATH`.",
        )
        .ours(),
        Key::new(
            "storage",
            Shape::Any,
            "Where the Nstance server keeps what belongs to the cluster, such as its CA certificate.",
        ),
        Key::new("secrets", Shape::Any, SERVER),
        Key::new("leader_election", Shape::Any, SERVER),
    ],
};

/// `shard`
pub static SHARD: Table = Table {
    title: "shard",
    about: "The shard: where its instances live.",
    keys: &[
        Key::new("id", Shape::Id, "The shard's id, one of its cluster's.").required(),
        Key::new(
            "infra",
            Shape::Object(&INFRA),
            "The cloud and the place in it.",
        )
        .required(),
        Key::new(
            "subnet_pools",
            Shape::Pools,
            "Pool → ids of subnets, in order of preference.",
        ),
        Key::new("dynamic_subnet_pools", Shape::Texts, "Names of pools."),
        Key::new(
            "advertise",
            Shape::Object(&ADVERTISE),
            "Addresses of the server, for templates.",
        ),
        Key::new(
            "request_timeout",
            Shape::Duration,
            "How long one call to the cloud may take.",
        )
        .default("\"30s\""),
        Key::new(
            "create_rate_limit",
            Shape::Duration,
            "The least time between two creates.",
        )
        .default("\"0\""),
        Key::new(
            "default_drain_timeout",
            Shape::Duration,
            "How long an instance may drain, where its group doesn't say.",
        )
        .default("\"5m\""),
        Key::new(
            "image_refresh_interval",
            Shape::Duration,
            "How long an image's answer is used without asking again.",
        )
        .default("\"6h\""),
        Key::new(
            "expiry",
            Shape::Object(&EXPIRY),
            "The ages from which instances are replaced.",
        ),
        Key::new("bind", Shape::Any, SERVER),
        Key::new("leader_network", Shape::Any, SERVER),
        Key::new("leader_election", Shape::Any, SERVER),
        Key::new("health_check_interval", Shape::Any, SERVER),
        Key::new("shutdown_timeout", Shape::Any, SERVER),
        Key::new("garbage_collection", Shape::Any, SERVER),
        Key::new("error_exit_jitter", Shape::Any, SERVER),
    ],
};

/// `shard.infra`
pub static INFRA: Table = Table {
    title: "infra",
    about: "The cloud and the place in it.",
    keys: &[
        Key::new(
            "provider",
            Shape::Choice(PROVIDERS),
            "The cloud. `sim` (also `mock`, `tmux`) is the embedded one.",
        )
        .required(),
        Key::new("region", Shape::Filled, "The cloud's region.").required(),
        Key::new(
            "zone",
            Shape::Filled,
            "The zone that instances are in, where their group doesn't say.",
        )
        .required(),
        Key::new("options", Shape::Map, "Options of the provider."),
    ],
};

/// `shard.advertise`
pub static ADVERTISE: Table = Table {
    title: "advertise",
    about: "Addresses of the server, for templates.",
    keys: &[
        Key::new("health_addr", Shape::Text, "HOST:PORT of health checks."),
        Key::new(
            "election_addr",
            Shape::Text,
            "HOST:PORT of leader election.",
        ),
        Key::new(
            "registration_addr",
            Shape::Text,
            "HOST:PORT where instances register.",
        ),
        Key::new("operator_addr", Shape::Text, "HOST:PORT of operators."),
        Key::new("agent_addr", Shape::Text, "HOST:PORT of agents."),
    ],
};

/// `shard.expiry`
pub static EXPIRY: Table = Table {
    title: "expiry",
    about: "The ages from which instances are replaced.",
    keys: &[
        Key::new(
            "eligible_age",
            Shape::Duration,
            "A group's oldest instance beyond this age is replaced, if the plan replaces no other instance of the group; less than `forced_age`.",
        ),
        Key::new(
            "forced_age",
            Shape::Duration,
            "Instances older than this are replaced.",
        ),
        Key::new(
            "ondemand_age",
            Shape::Duration,
            "For the server's on-demand instances; plans ignore it.",
        ),
    ],
};

/// One of `load_balancers`
pub static LOAD_BALANCER: Table = Table {
    title: "load_balancer",
    about: "A load balancer; what it needs depends on its provider.",
    keys: &[
        Key::new(
            "provider",
            Shape::Choice(&[
                "aws", "google", "gcp", "tunnel", "yandex", "sim", "mock", "tmux",
            ]),
            "Whose it is; the server fills tunnels itself.",
        )
        .required(),
        Key::new(
            "target_groups",
            Shape::Some(&Shape::Object(&TARGET_GROUP)),
            "`aws`: the target groups that instances are registered with.",
        ),
        Key::new(
            "network_endpoint_groups",
            Shape::SomeTexts,
            "`google`: names of zonal network endpoint groups.",
        ),
        Key::new(
            "frontends",
            Shape::Some(&Shape::Object(&FRONTEND)),
            "`google`: where the load balancer listens.",
        ),
        Key::new(
            "listeners",
            Shape::Some(&Shape::Object(&LISTENER)),
            "`tunnel`: the ports that it leads to.",
        ),
        Key::new(
            "target_group_arns",
            Shape::SomeTexts,
            "`aws`: the ARNs of target groups; an older form of `target_groups`.",
        )
        .ours(),
        Key::new(
            "instance_group_name",
            Shape::Filled,
            "`google`: the name of an instance group; an older form.",
        )
        .ours(),
    ],
};

/// One of a load balancer's `target_groups`
pub static TARGET_GROUP: Table = Table {
    title: "target_group",
    about: "A target group, and the port that instances are registered with.",
    keys: &[
        Key::new("arn", Shape::Filled, "Its ARN.").required(),
        Key::new("listener_port", Shape::Port, "The listener's port."),
        Key::new("target_port", Shape::Port, "The port of the instances.").required(),
        Key::new("proxy_port", Shape::Port, "The server's proxy's port."),
    ],
};

pub static FOREIGN_SOURCE: Table = Table {
    title: "foreign_source",
    about: "A document of another program, whose groups are added to `groups`.",
    keys: &[
        Key::new(
            "yandex",
            Shape::Filled,
            "The file with the specification of an instance group of Yandex Cloud.",
        ),
        Key::new(
            "bosh",
            Shape::Filled,
            "The file with a deployment manifest of BOSH.",
        ),
        Key::new(
            "group",
            Shape::Id,
            "`yandex`: the name of its group, by default that of the file.",
        ),
        Key::new(
            "subnet_pool",
            Shape::Filled,
            "`yandex`: the pool with the subnets of its instances.",
        ),
        Key::new(
            "releases",
            Shape::Filled,
            "`bosh`: the folder with `RELEASE/jobs/JOB`.",
        ),
        Key::new(
            "ops_files",
            Shape::Texts,
            "`bosh`: ops files, in the order in which they are applied.",
        ),
        Key::new(
            "vars_files",
            Shape::Texts,
            "`bosh`: files with variables; later ones win.",
        ),
        Key::new(
            "linked_manifests",
            Shape::Texts,
            "`bosh`: manifests of other deployments, which links may come from.",
        ),
        Key::new(
            "vars",
            Shape::Map,
            "`bosh`: variables, which win over those in `vars_files`.",
        ),
        Key::new(
            "profile",
            Shape::Choice(&["quarks", "bosh"]),
            "`bosh`: whether `instances` is the number in each zone (`quarks`) or in all zones (`bosh`).",
        ),
        Key::new(
            "map",
            Shape::Object(&SOURCE_MAP),
            "What the names in it are here; required on other clouds.",
        ),
    ],
};

/// `source.map`
pub static SOURCE_MAP: Table = Table {
    title: "source_map",
    about: "What the names in the document are here.",
    keys: &[
        Key::new(
            "platform",
            Shape::Named(&Shape::Filled),
            "`yandex`: platform → instance type.",
        ),
        Key::new(
            "image",
            Shape::Named(&Shape::Filled),
            "`yandex`: image id → the name of an image in `images`, or an image's id.",
        ),
        Key::new(
            "zone",
            Shape::Named(&Shape::Filled),
            "`yandex`: zone → zone.",
        ),
        Key::new(
            "stemcell",
            Shape::Named(&Shape::Filled),
            "`bosh`: alias of a stemcell → the name of an image in `images`, or an image's id.",
        ),
        Key::new(
            "vm_type",
            Shape::Named(&Shape::Filled),
            "`bosh`: VM type → instance type.",
        ),
        Key::new(
            "network",
            Shape::Named(&Shape::Filled),
            "`bosh`: network → subnet pool.",
        ),
        Key::new(
            "az",
            Shape::Named(&Shape::Filled),
            "`bosh`: availability zone → zone.",
        ),
    ],
};

/// One of a group's `zones`
pub static ZONE: Table = Table {
    title: "group_zone",
    about: "A zone, and the tags of the slots in it.",
    keys: &[
        Key::new("zone", Shape::Filled, "Its name.").required(),
        Key::new(
            "tags",
            Shape::Names,
            "`.Instance.Tag` of its slots; each slot takes the first free one.",
        ),
    ],
};

/// One of a load balancer's `frontends`
pub static FRONTEND: Table = Table {
    title: "frontend",
    about: "An address and a port that a load balancer listens on.",
    keys: &[
        Key::new("ip", Shape::Any, "The address."),
        Key::new("port", Shape::Port, "The port."),
    ],
};

/// One of a load balancer's `listeners`
pub static LISTENER: Table = Table {
    title: "listener",
    about: "A port that a tunnel leads to.",
    keys: &[
        Key::new("target_port", Shape::Port, "The instances' port."),
        Key::new("proxy_port", Shape::Port, "The server's proxy's port."),
    ],
};

/// One of `certificates`
pub static CERTIFICATE: Table = Table {
    title: "certificate",
    about: "A certificate that the server makes for an instance.",
    keys: &[
        Key::new("kind", Shape::Any, "`client` or `server`."),
        Key::new("cn", Shape::Any, "Its common name; a Go template."),
        Key::new("organization", Shape::Any, "Its organizations."),
        Key::new("dns", Shape::Any, "Its DNS names; Go templates."),
        Key::new("ip", Shape::Any, "Its IP addresses; Go templates."),
        Key::new("uri", Shape::Any, "Its URIs; Go templates."),
        Key::new("country", Shape::Any, "Its countries."),
        Key::new("province", Shape::Any, "Its provinces."),
        Key::new("locality", Shape::Any, "Its localities."),
        Key::new("street", Shape::Any, "Its street addresses."),
        Key::new("postal_code", Shape::Any, "Its postal codes."),
        Key::new("ttl", Shape::Any, "How long it is valid, in hours."),
    ],
};

/// `server`
pub static SERVER_SECTION: Table = Table {
    title: "server",
    about: "What the Nstance server needs for itself.",
    keys: &[Key::new(
        "files",
        Shape::Files(&Shape::Object(&FILE)),
        "The server's own files: checked, never delivered.",
    )],
};

/// One of `nat`
pub static NAT: Table = Table {
    title: "nat",
    about: "A tenant's NAT instances, which the server creates and deletes.",
    keys: &[
        Key::new("group", Shape::Filled, "The group of the NAT instances.").required(),
        Key::new("mode", Shape::Any, SERVER),
        Key::new("public_addresses", Shape::Any, SERVER),
        Key::new("last_instance_grace_period", Shape::Any, SERVER),
        Key::new(
            "instance_type_ladder",
            Shape::Texts,
            "The instance types that the server moves between; the group's is one of them.",
        ),
        Key::new("scale_up_thresholds", Shape::Any, SERVER),
        Key::new("scale_down_thresholds", Shape::Any, SERVER),
        Key::new("scale_up_window", Shape::Any, SERVER),
        Key::new("scale_down_window", Shape::Any, SERVER),
        Key::new("cooldown", Shape::Any, SERVER),
        Key::new("replacement_timeout", Shape::Any, SERVER),
    ],
};

/// One of `images`
pub static IMAGE: Table = Table {
    title: "image",
    about: "A look-up of an image: all matches are sorted, the first wins.",
    keys: &[
        Key::new(
            "provider",
            Shape::Choice(PROVIDERS),
            "The cloud that has it.",
        )
        .required(),
        Key::new(
            "filters",
            Shape::List(&Shape::Object(&FILTER)),
            "What an image must match: all of these.",
        ),
        Key::new(
            "owners",
            Shape::Texts,
            "Accounts or projects whose images are taken.",
        ),
        Key::new(
            "family",
            Shape::Text,
            "Google Cloud: an image family, in place of filters.",
        )
        .ours(),
        Key::new(
            "project",
            Shape::Text,
            "Google Cloud: the family's project.",
        )
        .ours(),
        Key::new(
            "ssm",
            Shape::Text,
            "AWS: a public parameter that holds the image's id, in place of filters.",
        )
        .ours(),
        Key::new(
            "include_deprecated",
            Shape::Flag,
            "AWS: whether deprecated images count too.",
        )
        .ours()
        .default("false"),
        Key::new(
            "sort",
            Shape::Choice(&["creation-date", "name"]),
            "What matches are sorted by.",
        )
        .default("\"creation-date\""),
        Key::new(
            "order",
            Shape::Choice(&["asc", "desc"]),
            "Which end comes first.",
        )
        .default("\"desc\""),
        Key::new(
            "fallback",
            Shape::Text,
            "The image's id where the look-up fails and no answer is kept.",
        ),
        Key::new(
            "on_newer",
            Shape::Choice(&["replace", "new_only"]),
            "What a newer image does: instances are replaced, or keep theirs.",
        )
        .ours()
        .default("\"replace\""),
    ],
};

/// One of an image's `filters`
pub static FILTER: Table = Table {
    title: "filter",
    about: "A property and the values that it may have.",
    keys: &[
        Key::new(
            "name",
            Shape::Filled,
            "The property, as the cloud calls it.",
        )
        .required(),
        Key::new(
            "values",
            Shape::Some(&Shape::Text),
            "One of them must match; `*` and `?` stand for any.",
        )
        .required(),
    ],
};

/// `defaults`
pub static DEFAULTS: Table = Table {
    title: "defaults",
    about: "The layer below all templates and groups.",
    keys: &[
        Key::new("args", Shape::Map, ARGS),
        Key::new("vars", Shape::Map, VARS),
        Key::new("userdata", Shape::TextOr(&USERDATA_TABLE), USERDATA),
        UPDATE_KEY,
    ],
};

const ARGS: &str = "What goes to the cloud, by the API's own names; every string is a Go template.";
const VARS: &str = "Any JSON; templates read `.Vars`.";
const USERDATA: &str =
    "What an instance is given when it starts: a text, or where it is; a Go template.";

const KIND: Key = Key::new(
    "kind",
    Shape::Kind,
    "Three lower-case letters that instance ids start with.",
);
const ARCH: Key = Key::new(
    "arch",
    Shape::Choice(&["amd64", "arm64"]),
    "The processors' architecture.",
);
const INSTANCE_TYPE: Key = Key::new(
    "instance_type",
    Shape::Text,
    "The cloud's name for the machine's size.",
);
const SUBNET_POOL: Key = Key::new(
    "subnet_pool",
    Shape::Text,
    "A name in `shard.subnet_pools`.",
);
const SIZE: Key = Key::new(
    "size",
    Shape::Whole(LARGEST_GROUP),
    "How many instances, by default none.",
);
const MERGED_ARGS: Key = Key::new("args", Shape::Map, ARGS);
const MERGED_VARS: Key = Key::new("vars", Shape::Map, VARS);
const FILE_SHAPE: &Shape = &Shape::Object(&FILE);
const FILES: Key = Key::new(
    "files",
    Shape::Files(FILE_SHAPE),
    "Files for the instances, by name.",
);
const OWN_USERDATA: Key = Key::new("userdata", Shape::TextOr(&USERDATA_TABLE), USERDATA);
const UPDATE_KEY: Key = Key::new("update", Shape::Object(&UPDATE), UPDATE_ABOUT).ours();
const UPDATE_ABOUT: &str = "How the instances of a group are replaced.";
const LIFECYCLE_KEY: Key = Key::new(
    "lifecycle",
    Shape::Object(&LIFECYCLE),
    "What changes may and may not do.",
)
.ours();
const LABELS: Key = Key::new(
    "labels",
    Shape::Named(&Shape::Text),
    "Tags of the instances; `.Group.Labels`.",
)
.ours();
const PROTECT: Key = Key::new(
    "protect",
    Shape::Flag,
    "Deleting an instance requires `--allow-delete`, replacing it `--allow-replace`.",
)
.ours();
const PROVIDED_SHAPE: &Shape = &Shape::Object(&PROVIDED);
const PROVIDES: Key = Key::new(
    "provides",
    Shape::Named(PROVIDED_SHAPE),
    "What other groups can read of this one, by name.",
)
.ours();
const CONSUMED_SHAPE: &Shape = &Shape::Object(&CONSUMED);
const CONSUMES: Key = Key::new(
    "consumes",
    Shape::Named(CONSUMED_SHAPE),
    "What this group reads of others, by name: templates reach it as `{{ .Link.NAME }}`.",
)
.ours();
const MOVED_FROM: Key = Key::new(
    "moved_from",
    Shape::GroupName,
    "The group's former name, `tenant/group`; its instances are kept.",
)
.ours();

/// One of `templates`
pub static TEMPLATE: Table = Table {
    title: "template",
    about: "What groups have in common.",
    keys: &[
        KIND,
        ARCH,
        INSTANCE_TYPE,
        SUBNET_POOL,
        MERGED_ARGS,
        MERGED_VARS,
        FILES,
        OWN_USERDATA,
        UPDATE_KEY,
        LIFECYCLE_KEY,
        LABELS,
        PROTECT,
        PROVIDES,
        CONSUMES,
        MOVED_FROM,
    ],
};

/// One of `groups`
pub static GROUP: Table = Table {
    title: "group",
    about: "Instances of one kind, in numbered slots.",
    keys: &[
        Key::new(
            "template",
            Shape::Text,
            "A name in `templates`; without one, the group says all itself.",
        ),
        Key::new(
            "depends_on",
            Shape::Texts,
            "Groups that come first: `group` of the same tenant, or `tenant/group`.",
        )
        .ours(),
        SIZE,
        Key::new(
            "replicas",
            Shape::Whole(LARGEST_GROUP),
            "How many instances each zone has, in place of `size`.",
        )
        .ours(),
        INSTANCE_TYPE,
        SUBNET_POOL,
        MERGED_ARGS,
        MERGED_VARS,
        Key::new(
            "drain_timeout",
            Shape::SignedDuration,
            "How long an instance may drain before it is deleted.",
        ),
        Key::new("load_balancers", Shape::Names, "Names in `load_balancers`."),
        KIND.ours(),
        ARCH.ours(),
        Key::new(
            "zones",
            Shape::Distinct(&Shape::TextOr(&ZONE)),
            "Slots go round them in this order; without it all are in `shard.infra.zone`.",
        )
        .ours(),
        Key::new(
            "rebalance",
            Shape::Flag,
            "Whether slots move when zones or tags change, so that zones stay even.",
        )
        .default("false")
        .ours(),
        Key::new(
            "texts",
            Shape::Choice(&["templates", "placeholders"]),
            "What strings in its args, labels and userdata are: Go templates, or texts with names in braces.",
        )
        .default("\"templates\"")
        .ours(),
        Key::new(
            "group_labels",
            Shape::Named(&Shape::Text),
            "`.Group.Labels`, by default `labels`.",
        )
        .ours(),
        Key::new(
            "overrides",
            Shape::Slots(&Shape::Object(&OVERRIDE)),
            "Slot → what differs there.",
        )
        .ours(),
        FILES.ours(),
        OWN_USERDATA.ours(),
        UPDATE_KEY,
        LIFECYCLE_KEY,
        LABELS,
        PROTECT,
        PROVIDES,
        CONSUMES,
        MOVED_FROM,
    ],
};

/// `dns`
pub static DNS: Table = Table {
    title: "dns",
    about: "What DNS names end in: `CLUSTER-GROUP-INDEX.NAMESPACE.DOMAIN`.",
    keys: &[
        Key::new(
            "namespace",
            Shape::Filled,
            "The part before the domain, by default `TENANT.SHARD`.",
        ),
        Key::new(
            "domain",
            Shape::Filled,
            "By default `cluster.fqdn`, or `internal` without one.",
        ),
    ],
};

/// One of `provides`
pub static PROVIDED: Table = Table {
    title: "provided",
    about: "Values that other groups read beside the group's instances.",
    keys: &[
        Key::new(
            "type",
            Shape::Filled,
            "What consumers match, by default the name.",
        ),
        Key::new(
            "properties",
            Shape::Map,
            "Values for consumers; every string is a Go template over the group's vars.",
        ),
    ],
};

/// One of `consumes`
pub static CONSUMED: Table = Table {
    title: "consumed",
    about: "Which group provides it: by default the only one of the tenant with the same type.",
    keys: &[
        Key::new(
            "type",
            Shape::Filled,
            "The type of the provider's link, by default the name.",
        ),
        Key::new(
            "from",
            Shape::Filled,
            "The providing group: `group` of the same tenant, or `tenant/group`.",
        ),
        Key::new(
            "link",
            Shape::Filled,
            "The provider's name for the link, if it provides several of the type.",
        ),
        Key::new(
            "optional",
            Shape::Flag,
            "Whether the provider may be missing; `.Link.NAME` is empty then.",
        )
        .default("false"),
    ],
};

/// One of a group's `overrides`
pub static OVERRIDE: Table = Table {
    title: "override",
    about: "What differs in one slot.",
    keys: &[INSTANCE_TYPE, SUBNET_POOL, MERGED_ARGS, MERGED_VARS],
};

/// `lifecycle`
pub static LIFECYCLE: Table = Table {
    title: "lifecycle",
    about: "What changes may and may not do.",
    keys: &[
        Key::new(
            "prevent_destroy",
            Shape::Flag,
            "Terraform's name for `protect`.",
        ),
        Key::new(
            "ignore_changes",
            Shape::Texts,
            "Paths whose changes are left alone, such as `tags.patched`, or `size`.",
        ),
        Key::new(
            "replace_on",
            Shape::Texts,
            "Paths whose changes want a new instance.",
        ),
        Key::new(
            "restart_on",
            Shape::Texts,
            "Paths whose changes stop and start the instance, in place of a new one: `userdata`.",
        ),
    ],
};

/// `update`
pub static UPDATE: Table = Table {
    title: "update",
    about: UPDATE_ABOUT,
    keys: &[
        Key::new(
            "order",
            Shape::Choice(&["create_first", "delete_first", "create_before_delete"]),
            "What comes first: the new instance or the old one's deletion. `create_before_delete` is an older name of `create_first`.",
        ),
        Key::new(
            "max_surge",
            Shape::Amount(LARGEST_SURGE),
            "How many instances may exist beyond the size: a number, or a percentage of the size.",
        ),
        Key::new(
            "max_unavailable",
            Shape::Amount(100),
            "How many instances may be unavailable: a number, or a percentage of the size.",
        ),
        Key::new(
            "max_creating",
            Shape::Whole(LARGEST_GROUP),
            "How many instances are created at once; 0 means no limit.",
        ),
        Key::new(
            "max_deleting",
            Shape::Whole(LARGEST_GROUP),
            "How many instances are deleted at once; 0 means no limit.",
        ),
        Key::new(
            "canaries",
            Shape::Amount(100),
            "How many instances change first: a number, or a percentage of the size.",
        ),
        Key::new(
            "canary_pause",
            Shape::DurationOr("manual"),
            "How long to wait after the canaries; `manual` waits for `nstance rollout promote`.",
        ),
        Key::new(
            "health",
            Shape::WordOr("running", &HEALTH),
            "When a new instance counts as available.",
        ),
        Key::new(
            "drain",
            Shape::Object(&DRAIN),
            "What runs before an instance is deleted.",
        ),
        Key::new(
            "on_failure",
            Shape::Choice(&["stop", "rollback", "continue"]),
            "What follows if an instance fails; by default the group's other instances stay as they are.",
        ),
        Key::new(
            "max_failures",
            Shape::Whole(LARGEST_GROUP),
            "How many instances may fail before `on_failure` applies, by default 0.",
        ),
        Key::new(
            "zone_order",
            Shape::Choice(&["interleaved", "one_at_a_time"]),
            "Whether the zones take turns, which is the default, or each starts when the one before is done.",
        ),
        Key::new(
            "opportunistic",
            Shape::Flag,
            "Replace no instance for its new configuration; an instance gets it when it is replaced for another reason.",
        ),
        Key::new(
            "minimal_action",
            Shape::Choice(&["update", "restart", "replace"]),
            "The least that is done to an instance whose args, labels, userdata or type change.",
        )
        .default("\"update\""),
    ],
};

/// `update.health`
pub static HEALTH: Table = Table {
    title: "health",
    about: "When a new instance counts as available.",
    keys: &[
        Key::new(
            "check",
            Shape::Choice(&["running", "tcp", "http", "https", "command"]),
            "What a healthy instance passes, in addition to running; `command` if only that key is set.",
        )
        .default("\"running\""),
        Key::new(
            "port",
            Shape::Port,
            "The port for `tcp`, `http` (default 80) or `https` (default 443).",
        ),
        Key::new(
            "path",
            Shape::Path,
            "`http`, `https`: the path of the GET request, by default `/`.",
        ),
        Key::new(
            "status",
            Shape::Between(100, 599),
            "`http`, `https`: the status of a healthy instance's response, by default 200.",
        ),
        Key::new(
            "command",
            Shape::SomeTexts,
            "`command`: a program and its arguments; exit code 0 means healthy.",
        ),
        Key::new(
            "min_healthy_time",
            Shape::Duration,
            "How long the check must succeed before the instance counts as available.",
        )
        .default("\"0\""),
        Key::new(
            "interval",
            Shape::PositiveDuration,
            "The time between two checks.",
        )
        .default("\"5s\""),
        Key::new(
            "timeout",
            Shape::PositiveDuration,
            "How long one check may take.",
        )
        .default("\"5s\""),
        Key::new(
            "retries",
            Shape::Whole(u32::MAX),
            "How many checks in a row may fail before `min_healthy_time` starts again.",
        )
        .default("2"),
        Key::new(
            "deadline",
            Shape::PositiveDuration,
            "How long a new instance may take to become available; by default the cloud's `wait_timeout`.",
        ),
    ],
};

/// `update.drain`
pub static DRAIN: Table = Table {
    title: "drain",
    about: "What runs before an instance is deleted.",
    keys: &[Key::new("command", Shape::SomeTexts, "A program and its arguments.").required()],
};

/// `userdata`, where it isn't just a text
pub static USERDATA_TABLE: Table = Table {
    title: "userdata",
    about: USERDATA,
    keys: &[
        SOURCE,
        ENCODING,
        // Alternatively to `parts`.
        Key {
            required: false,
            ..CONTENT
        },
        Key::new(
            "parts",
            Shape::Some(&Shape::TextOr(&USERDATA_PART)),
            "Several texts, in place of `content`.",
        )
        .ours(),
        Key::new(
            "merge",
            Shape::Choice(&["replace", "append", "cloud-init", "nstance"]),
            "How it joins the userdata of the layers below.",
        )
        .ours()
        .default("\"replace\""),
        Key::new(
            "includes",
            Shape::Choice(&["keep", "fetch"]),
            "What becomes of `#include`: the machine fetches it, or the plan does.",
        )
        .ours()
        .default("\"keep\""),
        Key::new(
            "compress",
            Shape::Choice(&["auto", "always", "never"]),
            "Whether what is sent is gzipped; `auto`: where it wouldn't fit.",
        )
        .ours()
        .default("\"auto\""),
    ],
};

/// One of `userdata.parts`, where it isn't just a text
pub static USERDATA_PART: Table = Table {
    title: "userdata_part",
    about: "One part of userdata.",
    keys: &[
        SOURCE,
        ENCODING,
        CONTENT,
        Key::new(
            "type",
            Shape::Filled,
            "Its MIME type, such as `text/cloud-config`; by default what its first line says.",
        ),
        Key::new("filename", Shape::Filled, "What cloud-init calls it."),
        Key::new(
            "merge",
            Shape::Filled,
            "Its `Merge-Type`, such as `list(append)+dict(recurse_list)+str()`.",
        ),
    ],
};

/// One of `templates_lib`, where it isn't just a text
pub static SNIPPET: Table = Table {
    title: "snippet",
    about: "A snippet that every Go template can call.",
    keys: &[SOURCE, ENCODING, CONTENT],
};

const SOURCE: Key = Key::new(
    "source",
    Shape::Choice(&["inline", "url", ""]),
    "Where the text is.",
)
.default("\"inline\"");
const ENCODING: Key = Key::new(
    "encoding",
    Shape::Choice(&["plain", "base64", "gzip", "base64+gzip", ""]),
    "How the source is encoded; `gzip` with a URL only.",
)
.default("\"plain\"");
const CONTENT: Key = Key::new(
    "content",
    Shape::Filled,
    "The text, or the URL: `https://`, `http://`, `file:`.",
)
.required();

/// One of `files`
pub static FILE: Table = Table {
    title: "file",
    about: "A file; what it needs depends on its kind.",
    keys: &[
        Key::new(
            "kind",
            Shape::Choice(&[
                "env",
                "json",
                "string",
                "erb",
                "secret",
                "storage",
                "certificate",
            ]),
            "What it is made of.",
        )
        .required(),
        Key::new(
            "template",
            Shape::Any,
            "`env`: an object of strings; `json`: an object; `string`: a text; `erb`: ERB; `certificate`: a name in `certificates`.",
        ),
        Key::new(
            "properties",
            Shape::Map,
            "`erb`: what `p` finds; the vars if absent. Strings are templates.",
        )
        .ours(),
        Key::new(
            "context",
            Shape::Map,
            "`erb`: replaces members of the context by name, such as `links`. Strings are taken as they are.",
        )
        .ours(),
        Key::new(
            "instances",
            Shape::Any,
            "`erb`: a list of objects; that at the instance's index replaces members of the context.",
        )
        .ours(),
        Key::new(
            "source",
            Shape::Filled,
            "`secret`, `storage`: where the server finds it.",
        ),
        Key::new(
            "key",
            Shape::TextOr(&CERTIFICATE_KEY),
            "`certificate`: its key, `{source: agent, name}`.",
        ),
        Key::new(
            "deliver",
            Shape::Choice(&["export", "userdata", "auto"]),
            "How it gets to its instance; `auto` is `userdata`, or `export` if the userdata is too large.",
        )
        .ours()
        .default("\"export\""),
        Key::new(
            "path",
            Shape::Path,
            "With `\"deliver\": \"userdata\"`: where it is written.",
        )
        .ours(),
        Key::new(
            "permissions",
            Shape::Permissions,
            "With `\"deliver\": \"userdata\"`: octal, such as `0644`.",
        )
        .ours(),
        Key::new(
            "owner",
            Shape::Text,
            "With `\"deliver\": \"userdata\"`: `user:group`.",
        )
        .ours(),
    ],
};

/// The key of a file of kind `certificate`
pub static CERTIFICATE_KEY: Table = Table {
    title: "certificate_key",
    about: "Who makes the key, and what the file with its public part is called.",
    keys: &[
        Key::new("source", Shape::Text, "Who makes it: `agent`."),
        Key::new("name", Shape::Text, "The name of the file."),
    ],
};

/// An item of `accept`
pub static ACCEPT: Table = Table {
    title: "accept",
    about: "Drift that is known.",
    keys: &[
        Key::new(
            "address",
            Shape::Filled,
            "A group (`tenant/group`) or slot (`tenant/group/0`).",
        )
        .required(),
        Key::new(
            "path",
            Shape::Text,
            "The attribute, such as `tags.Owner`, with all below it; by default any drift, missing instances included.",
        ),
        Key::new("reason", Shape::Filled, "Why it is accepted.").required(),
        Key::new(
            "until",
            Shape::Filled,
            "The last day (`2027-01-31`, in UTC) or the time (RFC 3339) until which it is accepted.",
        ),
    ],
};

/// `destroy_budget`
pub static DESTROY_BUDGET: Table = Table {
    title: "destroy_budget",
    about: "How many deletions a plan may hold before apply requires `--allow-delete`.",
    keys: &[
        Key::new("count", Shape::Whole(u32::MAX), "A number of instances.").default("10"),
        Key::new(
            "percent",
            Shape::Whole(100),
            "A part of the recorded instances.",
        )
        .default("10"),
    ],
};
