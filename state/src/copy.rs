//! Copies a whole state from one database to another: records, history, caches, all as it is stored.
//!
//! In: two databases, each in a transaction. Out: the same state in both. What is sealed stays
//! sealed, with the same key, so none is needed. Must not: change the source, or keep numbers of
//! rows that a database assigns.

use sha2::{Digest, Sha256};

use crate::sql::{Error, Next, Result, Sql, Value};

/// A table: how its rows are read, in an order that both databases agree on, and how one is written.
/// Groups and specs are named, since their numbers differ.
struct Table {
    read: &'static str,
    write: &'static str,
}

const TABLES: &[Table] = &[
    Table {
        read: "SELECT serial, created_at, key_id, derivation, unscrubbed, fence FROM meta",
        write: "UPDATE meta SET serial = ?1, created_at = ?2, key_id = ?3, derivation = ?4,
                    unscrubbed = ?5, fence = ?6",
    },
    Table {
        read: "SELECT name FROM groups ORDER BY name",
        write: "INSERT INTO groups (name) VALUES (?1)",
    },
    Table {
        read: "SELECT digest, size, body FROM specs ORDER BY digest",
        write: "INSERT INTO specs (digest, size, body) VALUES (?1, ?2, ?3)",
    },
    Table {
        read: "SELECT instance_id, provider_id, name, slot, deposed, generation, kind, digest,
                   observed, zone, subnet, ip4, ip6, created_at, updated_at, attributes, version
               FROM instances JOIN groups ON groups.id = group_id JOIN specs ON specs.id = spec_id
               ORDER BY instance_id",
        write: "INSERT INTO instances (instance_id, provider_id, group_id, slot, deposed,
                    generation, kind, spec_id, observed, zone, subnet, ip4, ip6, created_at,
                    updated_at, attributes, version)
                VALUES (?1, ?2, (SELECT id FROM groups WHERE name = ?3), ?4, ?5, ?6, ?7,
                    (SELECT id FROM specs WHERE digest = ?8), ?9, ?10, ?11, ?12, ?13, ?14, ?15,
                    ?16, ?17)",
    },
    Table {
        read: "SELECT name, slot, generation FROM generations JOIN groups ON groups.id = group_id
               ORDER BY name, slot",
        write: "INSERT INTO generations (group_id, slot, generation)
                VALUES ((SELECT id FROM groups WHERE name = ?1), ?2, ?3)",
    },
    Table {
        read: "SELECT id, started_at, finished_at, who, host, pid, operation, serial_before,
                   serial_after, status, summary, plan_digest
               FROM applies ORDER BY id",
        write: "INSERT INTO applies (id, started_at, finished_at, who, host, pid, operation,
                    serial_before, serial_after, status, summary, plan_digest)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    },
    Table {
        read: "SELECT apply_id, address, action, before_instance_id, before_provider_id,
                   after_instance_id, after_provider_id, result, detail, at, sealed
               FROM history ORDER BY id",
        write: "INSERT INTO history (apply_id, address, action, before_instance_id,
                    before_provider_id, after_instance_id, after_provider_id, result, detail, at,
                    sealed)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    },
    Table {
        read: "SELECT journal.id, apply_id, address, group_name, slot, operation, instance_id,
                   provider_id, generation, attempt, token, digest, journal.size, request,
                   opened_at, closed_at, outcome, message, sealed_message
               FROM journal LEFT JOIN specs ON specs.id = spec_id ORDER BY journal.id",
        write: "INSERT INTO journal (id, apply_id, address, group_name, slot, operation,
                    instance_id, provider_id, generation, attempt, token, spec_id, size, request,
                    opened_at, closed_at, outcome, message, sealed_message)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,
                    (SELECT id FROM specs WHERE digest = ?12), ?13, ?14, ?15, ?16, ?17, ?18, ?19)",
    },
    Table {
        read: "SELECT apply_id, digest FROM kept JOIN specs ON specs.id = spec_id
               ORDER BY apply_id, digest",
        write: "INSERT INTO kept (apply_id, spec_id)
                VALUES (?1, (SELECT id FROM specs WHERE digest = ?2))",
    },
    Table {
        read: "SELECT name, query_digest, image_id, source, resolved_at, detail
               FROM images ORDER BY name",
        write: "INSERT INTO images (name, query_digest, image_id, source, resolved_at, detail)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    },
    Table {
        read: "SELECT url, digest, size, body, fetched_at FROM fetched ORDER BY url",
        write: "INSERT INTO fetched (url, digest, size, body, fetched_at)
                VALUES (?1, ?2, ?3, ?4, ?5)",
    },
    Table {
        read: "SELECT id, size, body, updated_at FROM observation_cache",
        write: "INSERT INTO observation_cache (id, size, body, updated_at)
                VALUES (?1, ?2, ?3, ?4)",
    },
    Table {
        read: "SELECT id, plan_digest, status, started_at, changed_at, planned_at, size, plan
               FROM rollouts ORDER BY id",
        write: "INSERT INTO rollouts (id, plan_digest, status, started_at, changed_at, planned_at,
                    size, plan)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    },
    Table {
        read: "SELECT rollout_id, group_name, stage, since, detail FROM rollout_groups
               ORDER BY rollout_id, group_name",
        write: "INSERT INTO rollout_groups (rollout_id, group_name, stage, since, detail)
                VALUES (?1, ?2, ?3, ?4, ?5)",
    },
    Table {
        read: "SELECT rollout_id, address, instance_id, stage, since, detail FROM rollout_slots
               ORDER BY rollout_id, address, instance_id",
        write: "INSERT INTO rollout_slots (rollout_id, address, instance_id, stage, since, detail)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    },
    Table {
        read: "SELECT id, group_name, kind, who, at FROM rollout_requests ORDER BY id",
        write: "INSERT INTO rollout_requests (id, group_name, kind, who, at)
                VALUES (?1, ?2, ?3, ?4, ?5)",
    },
    Table {
        read: "SELECT group_name, size, body, at FROM last_good ORDER BY group_name",
        write: "INSERT INTO last_good (group_name, size, body, at) VALUES (?1, ?2, ?3, ?4)",
    },
];

/// The tables whose ids are never used again.
const NUMBERED: [&str; 4] = ["applies", "journal", "rollouts", "rollout_requests"];

/// Copies everything into a state that was just created, and compares digests of both.
///
/// Fails with an error of either database, or if the copy differs.
pub(crate) fn copy(from: &dyn Sql, to: &dyn Sql) -> Result<()> {
    for table in TABLES {
        let columns = table.columns();
        from.query(table.read, &[], &mut |row| {
            let values: Vec<Value<'_>> = (0..columns)
                .map(|column| row.value(column))
                .collect::<Result<_>>()?;
            to.execute(table.write, &values)?;
            Ok(Next::Row)
        })?;
    }
    for table in NUMBERED {
        to.raise_id(table, from.newest_id(table)?)?;
    }
    if digest(from)? == digest(to)? {
        return Ok(());
    }
    Err(Error::Content {
        column: 0,
        why: "the copy differs from its source".to_owned(),
    })
}

impl Table {
    /// The number of columns.
    fn columns(&self) -> usize {
        (1..100)
            .take_while(|number| self.write.contains(&format!("?{number}")))
            .count()
    }
}

/// A digest of everything.
///
/// Fails with the database's error.
fn digest(sql: &dyn Sql) -> Result<[u8; 32]> {
    let mut hasher = Sha256::new();
    for table in TABLES {
        let columns = table.columns();
        sql.query(table.read, &[], &mut |row| {
            for column in 0..columns {
                let integer;
                let (kind, bytes): (u8, &[u8]) = match row.value(column)? {
                    Value::Null => (0, &[]),
                    Value::Integer(value) => {
                        integer = value.to_le_bytes();
                        (1, &integer)
                    }
                    Value::Text(text) => (2, text.as_bytes()),
                    Value::Blob(bytes) => (3, bytes),
                };
                hasher.update([kind]);
                hasher.update((bytes.len() as u64).to_le_bytes());
                hasher.update(bytes);
            }
            Ok(Next::Row)
        })?;
        hasher.update([4]);
    }
    for table in NUMBERED {
        hasher.update(sql.newest_id(table)?.to_le_bytes());
    }
    Ok(hasher.finalize().into())
}
