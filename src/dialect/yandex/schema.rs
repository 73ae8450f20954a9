//! The keys of an instance group's specification, with their shapes and limits.
//!
//! In: nothing. Out: a [`Table`] for each object. Must not: read anything.
//!
//! The names and limits are those of Yandex' `CreateInstanceGroupRequest`.

/// An object's keys.
pub(super) struct Table {
    /// All of its keys.
    pub(super) keys: &'static [Key],
    /// Keys that exclude each other, and whether one of them is required.
    pub(super) alternatives: &'static [(&'static [&'static str], bool)],
}

/// A key of an object.
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) is_required: bool,
    /// The assumed value of a key that the API requires and public specifications omit.
    pub(super) default: Option<&'static str>,
}

/// The shape of a value.
pub(super) enum Shape {
    Text(Text),
    /// A 64-bit integer, with bounds.
    Whole(u64, u64),
    /// One of these integers.
    Numbers(&'static [u64]),
    /// A number, with bounds.
    Real(f64, f64),
    /// A duration, with bounds in seconds.
    Duration(u64, u64),
    /// A duration that may be 0; otherwise with bounds in seconds.
    DurationOrZero(u64, u64),
    Flag,
    Choice(&'static [&'static str]),
    Object(&'static Table),
    /// A list, with bounds of its length.
    List(&'static Shape, usize, usize),
    /// An object with any keys of a pattern: how many at most, and their values.
    Map(usize, &'static Pattern, Text),
}

/// A text: the maximum length in characters, its pattern, and its role.
#[derive(Clone, Copy)]
pub(super) struct Text {
    pub(super) most: usize,
    pub(super) pattern: &'static Pattern,
    pub(super) role: Role,
}

/// What becomes of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Role {
    /// It stays outside of args; placeholders in it aren't replaced.
    Plain,
    /// The value of a variable: like `Plain`, with a warning of its own.
    Value,
    /// It goes into args, but placeholders in it aren't replaced.
    Literal,
    /// `name`: unique, with the pattern of VM names. Placeholders are replaced in this and all
    /// further roles.
    Name,
    /// `hostname`: likewise.
    Hostname,
    /// An id, a type or a domain name: every placeholder must have a value.
    Id,
    /// An internal address, version 4 or 6.
    Address(u8),
    /// A public address.
    PublicAddress,
    /// A label's value.
    Label,
    /// Metadata and descriptions: placeholders without a value may stay.
    Free,
}

/// A set of texts.
pub(super) struct Pattern {
    pub(super) fits: fn(&str) -> bool,
    pub(super) wanted: &'static str,
}

/// Whether a text consists of these characters and lower-case letters and digits.
fn has_only(text: &str, more: &str) -> bool {
    text.chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || more.contains(c))
}

fn starts_with_letter(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
}

fn is_name(text: &str, more: &str) -> bool {
    starts_with_letter(text)
        && text.len() <= 63
        && has_only(text, more)
        && !text.ends_with(['-', '_'])
}

const LABEL_SYMBOLS: &str = "-_./\\@";

static ANY: Pattern = Pattern {
    fits: |_| true,
    wanted: "any text",
};
static GROUP_NAME: Pattern = Pattern {
    fits: |text| text.is_empty() || is_name(text, "-"),
    wanted: "up to 63 lower-case letters, digits and hyphens, starting with a letter and ending with a letter or digit",
};
/// Names and hostnames of VMs.
pub(super) static VM_NAME: Pattern = Pattern {
    fits: |text| is_name(text, "-_"),
    wanted: "up to 63 lower-case letters, digits, `-` and `_`, starting with a letter and ending with a letter or digit",
};
static LABEL_KEY: Pattern = Pattern {
    fits: |text| text.len() <= 63 && starts_with_letter(text) && has_only(text, LABEL_SYMBOLS),
    wanted: "up to 63 lower-case letters, digits and `-_./\\@`, starting with a letter",
};
/// Values of labels.
pub(super) static LABEL_VALUE: Pattern = Pattern {
    fits: |text| text.len() <= 63 && has_only(text, LABEL_SYMBOLS),
    wanted: "up to 63 lower-case letters, digits and `-_./\\@`",
};
static METADATA_KEY: Pattern = Pattern {
    fits: |text| starts_with_letter(text) && has_only(text, "-_"),
    wanted: "lower-case letters, digits, `-` and `_`, starting with a letter",
};
static VARIABLE_KEY: Pattern = Pattern {
    fits: |text| {
        (1..=128).contains(&text.len())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    },
    wanted: "1 to 128 letters, digits, `.`, `_` and `-`",
};
static TAG: Pattern = Pattern {
    fits: |text| (3..=50).contains(&text.len()) && has_only(text, "_-"),
    wanted: "3 to 50 lower-case letters, digits, `_` and `-`",
};

const fn key(name: &'static str, shape: Shape) -> Key {
    Key {
        name,
        shape,
        is_required: false,
        default: None,
    }
}

impl Key {
    const fn required(self) -> Self {
        Self {
            is_required: true,
            ..self
        }
    }
}

const fn object(name: &'static str, table: &'static Table) -> Key {
    key(name, Shape::Object(table))
}

const fn text(most: usize, role: Role) -> Shape {
    Shape::Text(Text {
        most,
        pattern: &ANY,
        role,
    })
}

const fn matching(pattern: &'static Pattern) -> Shape {
    Shape::Text(Text {
        most: usize::MAX,
        pattern,
        role: Role::Plain,
    })
}

const fn labels(most: usize, pattern: &'static Pattern, role: Role) -> Shape {
    let value = Text {
        most,
        pattern,
        role,
    };
    Shape::Map(64, &LABEL_KEY, value)
}

const fn table(keys: &'static [Key]) -> Table {
    Table {
        keys,
        alternatives: &[],
    }
}

const LONG: usize = usize::MAX;
const PLAIN: Shape = text(LONG, Role::Plain);
const LITERAL: Shape = text(LONG, Role::Literal);
const ID: Shape = text(LONG, Role::Id);
const GROUP_LABELS: Shape = labels(63, &LABEL_VALUE, Role::Plain);
const FOREVER: u64 = u64::MAX;
const UP_TO_100: Shape = Shape::Whole(0, 100);
const THRESHOLD: Shape = Shape::Numbers(&[0, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
const SWITCH: Shape = Shape::Choice(&["ENABLED", "DISABLED"]);
const PORT: Key = key("port", Shape::Whole(1, 65_535)).required();

/// The whole specification.
pub(super) static ROOT: Table = Table {
    keys: &[
        key("folder_id", PLAIN),
        key("name", matching(&GROUP_NAME)),
        key("description", text(256, Role::Plain)),
        key("labels", GROUP_LABELS),
        key("service_account_id", PLAIN).required(),
        key("variables", Shape::List(&Shape::Object(&VARIABLE), 0, LONG)),
        key("deletion_protection", Shape::Flag),
        object("instance_template", &INSTANCE_TEMPLATE).required(),
        object("scale_policy", &SCALE_POLICY).required(),
        object("deploy_policy", &DEPLOY_POLICY).required(),
        object("allocation_policy", &ALLOCATION_POLICY).required(),
        object("load_balancer_spec", &BALANCER),
        object("application_load_balancer_spec", &BALANCER),
        object("health_checks_spec", &HEALTH_CHECKS),
        object("auto_healing_policy", &AUTO_HEALING),
    ],
    alternatives: &[(
        &["load_balancer_spec", "application_load_balancer_spec"],
        false,
    )],
};

static VARIABLE: Table = table(&[
    key("key", matching(&VARIABLE_KEY)).required(),
    key("value", text(128, Role::Value)),
]);

static INSTANCE_TEMPLATE: Table = table(&[
    key("name", text(128, Role::Name)),
    key("hostname", text(128, Role::Hostname)),
    key("fqdn", ID),
    key("description", text(256, Role::Literal)),
    key("labels", labels(128, &ANY, Role::Label)),
    key("platform_id", PLAIN).required(),
    object("resources_spec", &RESOURCES).required(),
    key(
        "metadata",
        Shape::Map(
            128,
            &METADATA_KEY,
            Text {
                most: 262_144,
                pattern: &ANY,
                role: Role::Free,
            },
        ),
    ),
    object("boot_disk_spec", &DISK).required(),
    key(
        "secondary_disk_specs",
        Shape::List(&Shape::Object(&DISK), 0, 3),
    ),
    key(
        "network_interface_specs",
        Shape::List(&Shape::Object(&INTERFACE), 1, LONG),
    )
    .required(),
    object("scheduling_policy", &SCHEDULING),
    key("service_account_id", LITERAL),
    object("network_settings", &NETWORK_SETTINGS),
    object("placement_policy", &PLACEMENT),
    key(
        "filesystem_specs",
        Shape::List(&Shape::Object(&FILESYSTEM), 0, LONG),
    ),
    key("reserved_instance_pool_id", ID),
    object("metadata_options", &METADATA_OPTIONS),
]);

static RESOURCES: Table = table(&[
    key("memory", Shape::Whole(1, 824_633_720_832)).required(),
    key(
        "cores",
        Shape::Numbers(&[
            2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 40, 44, 48, 52, 56,
            60, 64, 68, 72, 76, 80,
        ]),
    )
    .required(),
    key("core_fraction", Shape::Numbers(&[0, 5, 20, 50, 100])),
    key("gpus", Shape::Numbers(&[0, 1, 2, 4])),
]);

const MODE: Key = Key {
    default: Some("READ_WRITE"),
    ..key("mode", Shape::Choice(&["READ_ONLY", "READ_WRITE"]))
};

static DISK: Table = Table {
    keys: &[
        MODE,
        key("device_name", LITERAL),
        key("name", LITERAL),
        key("disk_id", ID),
        object("disk_spec", &DISK_SPEC),
    ],
    alternatives: &[(&["disk_id", "disk_spec"], true)],
};

static DISK_SPEC: Table = Table {
    keys: &[
        key("description", text(256, Role::Free)),
        key("type_id", ID).required(),
        key("size", Shape::Whole(4 << 20, 28_587_302_322_176)),
        key("image_id", ID),
        key("snapshot_id", ID),
        key("preserve_after_instance_delete", Shape::Flag),
    ],
    alternatives: &[(&["image_id", "snapshot_id"], false)],
};

const TEXTS: Shape = Shape::List(&LITERAL, 0, LONG);

static INTERFACE: Table = table(&[
    key("network_id", LITERAL),
    key("subnet_ids", TEXTS),
    object("primary_v4_address_spec", &ADDRESS_4),
    object("primary_v6_address_spec", &ADDRESS_6),
    key("security_group_ids", TEXTS),
]);

static ADDRESS_4: Table = table(&[
    key("address", text(LONG, Role::Address(4))),
    object("one_to_one_nat_spec", &NAT),
    key("dns_record_specs", DNS_RECORDS),
]);

static ADDRESS_6: Table = table(&[
    key("address", text(LONG, Role::Address(6))),
    object("one_to_one_nat_spec", &NAT),
    key("dns_record_specs", DNS_RECORDS),
]);

static NAT: Table = table(&[
    key("ip_version", Shape::Choice(&["IPV4", "IPV6"])),
    key("address", text(LONG, Role::PublicAddress)),
    key("dns_record_specs", DNS_RECORDS),
]);

const DNS_RECORDS: Shape = Shape::List(&Shape::Object(&DNS_RECORD), 0, LONG);

static DNS_RECORD: Table = table(&[
    key("fqdn", ID).required(),
    key("dns_zone_id", LITERAL),
    key("ttl", Shape::Whole(0, 86_400)),
    key("ptr", Shape::Flag),
]);

static SCHEDULING: Table = table(&[key("preemptible", Shape::Flag)]);

static NETWORK_SETTINGS: Table = table(&[key(
    "type",
    Shape::Choice(&["STANDARD", "SOFTWARE_ACCELERATED", "HARDWARE_ACCELERATED"]),
)]);

static PLACEMENT: Table = table(&[
    key("placement_group_id", ID),
    key(
        "host_affinity_rules",
        Shape::List(&Shape::Object(&AFFINITY), 0, LONG),
    ),
]);

static AFFINITY: Table = table(&[
    key("key", LITERAL),
    key("op", Shape::Choice(&["IN", "NOT_IN"])),
    key("values", TEXTS),
]);

static FILESYSTEM: Table = table(&[
    key("mode", Shape::Choice(&["READ_ONLY", "READ_WRITE"])),
    key("device_name", LITERAL),
    key("filesystem_id", ID),
]);

static METADATA_OPTIONS: Table = table(&[
    key("gce_http_endpoint", SWITCH),
    key("gce_http_token", SWITCH),
    key("aws_v1_http_endpoint", SWITCH),
    key("aws_v1_http_token", SWITCH),
    key("aws_v2_http_endpoint", SWITCH),
    key("aws_v2_http_token", SWITCH),
]);

static SCALE_POLICY: Table = Table {
    keys: &[
        object("fixed_scale", &FIXED_SCALE),
        object("auto_scale", &AUTO_SCALE),
        object("test_auto_scale", &AUTO_SCALE),
    ],
    alternatives: &[(&["fixed_scale", "auto_scale"], true)],
};

static FIXED_SCALE: Table = table(&[key("size", UP_TO_100).required()]);

static AUTO_SCALE: Table = table(&[
    key("initial_size", UP_TO_100).required(),
    key("min_zone_size", UP_TO_100),
    key("max_size", UP_TO_100),
    key("measurement_duration", Shape::Duration(60, 600)).required(),
    key("warmup_duration", Shape::Duration(0, 600)),
    key("stabilization_duration", Shape::Duration(60, 1_800)),
    key("auto_scale_type", Shape::Choice(&["ZONAL", "REGIONAL"])),
    object("cpu_utilization_rule", &CPU_RULE),
    key(
        "custom_rules",
        Shape::List(&Shape::Object(&CUSTOM_RULE), 0, 3),
    ),
]);

static CPU_RULE: Table = table(&[key("utilization_target", Shape::Real(10.0, 100.0)).required()]);

static CUSTOM_RULE: Table = table(&[
    key("rule_type", Shape::Choice(&["UTILIZATION", "WORKLOAD"])).required(),
    key("metric_type", Shape::Choice(&["GAUGE", "COUNTER"])).required(),
    key("metric_name", PLAIN).required(),
    key("labels", Shape::Map(LONG, &ANY, PLAIN_TEXT)),
    key("target", Shape::Real(f64::MIN_POSITIVE, f64::MAX)),
    key("folder_id", PLAIN),
    key("service", PLAIN),
]);

const PLAIN_TEXT: Text = Text {
    most: LONG,
    pattern: &ANY,
    role: Role::Plain,
};

static DEPLOY_POLICY: Table = table(&[
    key("max_unavailable", UP_TO_100),
    key("max_expansion", UP_TO_100),
    key("max_creating", UP_TO_100),
    key("max_deleting", UP_TO_100),
    key("startup_duration", Shape::Duration(0, 3_600)),
    key("strategy", Shape::Choice(&["PROACTIVE", "OPPORTUNISTIC"])),
    key(
        "minimal_action",
        Shape::Choice(&["LIVE_UPDATE", "RESTART", "RECREATE"]),
    ),
]);

static ALLOCATION_POLICY: Table =
    table(&[key("zones", Shape::List(&Shape::Object(&ZONE), 1, LONG)).required()]);

static ZONE: Table = table(&[
    key("zone_id", PLAIN).required(),
    key("instance_tags_pool", Shape::List(&TAG_TEXT, 0, LONG)),
]);

const TAG_TEXT: Shape = matching(&TAG);

static BALANCER: Table = table(&[
    object("target_group_spec", &TARGET_GROUP).required(),
    key(
        "max_opening_traffic_duration",
        Shape::DurationOrZero(1, FOREVER),
    ),
    key("ignore_health_checks", Shape::Flag),
]);

static TARGET_GROUP: Table = table(&[
    key("name", matching(&GROUP_NAME)),
    key("description", text(256, Role::Plain)),
    key("labels", GROUP_LABELS),
]);

static HEALTH_CHECKS: Table = table(&[
    key(
        "health_check_specs",
        Shape::List(&Shape::Object(&HEALTH_CHECK), 1, LONG),
    )
    .required(),
    key("max_checking_health_duration", Shape::Duration(1, FOREVER)),
]);

static HEALTH_CHECK: Table = Table {
    keys: &[
        key("interval", Shape::Duration(1, 300)),
        key("timeout", Shape::Duration(1, 60)),
        key("unhealthy_threshold", THRESHOLD),
        key("healthy_threshold", THRESHOLD),
        object("tcp_options", &TCP_OPTIONS),
        object("http_options", &HTTP_OPTIONS),
    ],
    alternatives: &[(&["tcp_options", "http_options"], true)],
};

static TCP_OPTIONS: Table = table(&[PORT]);
static HTTP_OPTIONS: Table = table(&[PORT, key("path", PLAIN)]);

static AUTO_HEALING: Table = table(&[key(
    "auto_healing_action",
    Shape::Choice(&["NONE", "RESTART", "RECREATE"]),
)]);
