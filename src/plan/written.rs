//! How values stand in a plan file that have no form of their own there.

/// What is written as it is shown: addresses, digests.
pub(super) mod text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(in crate::plan) fn serialize<S: Serializer>(
        value: &impl Display,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(in crate::plan) fn deserialize<'de, D, T>(deserializer: D) -> Result<T, D::Error>
    where
        D: Deserializer<'de>,
        T: FromStr<Err: Display>,
    {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A body of a specification, which changes share.
pub(super) mod body {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::spec::SpecBody;

    pub(in crate::plan) fn serialize<S: Serializer>(
        body: &Arc<SpecBody>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        body.as_ref().serialize(serializer)
    }

    pub(in crate::plan) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<SpecBody>, D::Error> {
        SpecBody::deserialize(deserializer).map(Arc::new)
    }
}
