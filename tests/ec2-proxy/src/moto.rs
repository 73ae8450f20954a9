//! moto, as one account sees it.
//!
//! In: calls. Out: its answers, unchanged. May not: start or end it.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher as _;
use std::io;
use std::net::SocketAddr;

use crate::http::{self, Reply, Request};
use crate::query::Query;
use crate::xml::Element;

/// The variable that says where moto listens.
const ADDRESS: &str = "NSTANCE_TEST_MOTO";

/// An account at moto, with nothing in it but what every account has.
#[derive(Clone, Debug)]
pub struct Moto {
    address: SocketAddr,
    account: String,
}

/// moto refused a call, or gave no answer.
#[derive(Clone, Debug)]
pub struct Refused {
    pub code: String,
    pub message: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Refused {}

impl Moto {
    /// A new account at the moto that listens there.
    pub fn at(address: SocketAddr) -> Self {
        // Twelve digits that no other test has, whichever process it runs in.
        let number = RandomState::new().hash_one(address) % 900_000_000_000;
        Self {
            address,
            account: (100_000_000_000 + number).to_string(),
        }
    }

    /// A new account at the moto that `cargo xtask test` has started. Without one there is none,
    /// and the test that asks is to end; in CI that is a failure.
    pub fn for_test() -> Option<Self> {
        let given = std::env::var(ADDRESS)
            .ok()
            .filter(|given| !given.is_empty());
        let Some(given) = given else {
            let in_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
            assert!(!in_ci, "{ADDRESS} isn't set: moto has to run in CI");
            return None;
        };
        let address = given.parse();
        Some(Self::at(
            address.expect("NSTANCE_TEST_MOTO is ADDRESS:PORT"),
        ))
    }

    /// The account's number.
    pub fn account(&self) -> &str {
        &self.account
    }

    /// Calls an action of a service that speaks the query protocol, past every fault.
    pub fn call(
        &self,
        service: &str,
        region: &str,
        action: &str,
        parameters: &[(&str, &str)],
    ) -> Result<Element, Refused> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut query = Query {
            service: service.to_owned(),
            region: region.to_owned(),
            action: action.to_owned(),
            parameters: parameters.iter().map(own).collect(),
        };
        if query.get("Version").is_none() {
            let version = match service {
                "elasticloadbalancing" => "2015-12-01",
                "iam" => "2010-05-08",
                "sts" => "2011-06-15",
                _ => "2016-11-15",
            };
            query
                .parameters
                .push(("Version".to_owned(), version.to_owned()));
        }
        self.ask(&query)
    }

    /// Calls an action of a service that speaks JSON; the answer is its text.
    pub fn call_json(&self, target: &str, region: &str, body: &str) -> Result<String, Refused> {
        let service = match target.split('.').next() {
            Some("AmazonSSM") => "ssm",
            _ => "servicequotas",
        };
        let mut request = signed(service, region, body.as_bytes().to_vec());
        let headers = [
            ("x-amz-target", target),
            ("content-type", "application/x-amz-json-1.1"),
        ];
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        request.headers.extend(headers.map(own));
        let reply = self.forward(&request).map_err(|error| lost(&error))?;
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        if reply.status == 200 {
            return Ok(text);
        }
        Err(Refused {
            code: reply.status.to_string(),
            message: text,
        })
    }

    pub(crate) fn ask(&self, query: &Query) -> Result<Element, Refused> {
        let mut request = signed(&query.service, &query.region, query.form().into_bytes());
        let form = "application/x-www-form-urlencoded; charset=utf-8";
        request
            .headers
            .push(("content-type".to_owned(), form.to_owned()));
        let reply = self.forward(&request).map_err(|error| lost(&error))?;
        read(&reply)
    }

    /// Sends a request on, as this account's.
    pub(crate) fn forward(&self, request: &Request) -> io::Result<Reply> {
        let mut request = request.clone();
        request
            .headers
            .retain(|(name, _)| name != "x-moto-account-id");
        let account = ("x-moto-account-id".to_owned(), self.account.clone());
        request.headers.push(account);
        http::send(self.address, &request)
    }
}

/// The document of a reply, or its error.
pub(crate) fn read(reply: &Reply) -> Result<Element, Refused> {
    let text = String::from_utf8_lossy(&reply.body);
    let document = Element::parse(&text).map_err(|error| Refused {
        code: reply.status.to_string(),
        message: format!("{error}\n{text}"),
    })?;
    if reply.status == 200 {
        return Ok(document);
    }
    let error = ["Errors/Error", "Error"];
    let error = error.into_iter().find_map(|path| document.at(path));
    Err(Refused {
        code: error.map_or("", |error| error.text_at("Code")).to_owned(),
        message: error
            .map_or("", |error| error.text_at("Message"))
            .to_owned(),
    })
}

/// A request that moto knows service and region of. Signatures are nothing to it.
fn signed(service: &str, region: &str, body: Vec<u8>) -> Request {
    let credential = format!(
        "AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/20260101/{region}/{service}/aws4_request, \
         SignedHeaders=host, Signature=0"
    );
    Request {
        method: "POST".to_owned(),
        path: "/".to_owned(),
        headers: vec![("authorization".to_owned(), credential)],
        body,
    }
}

fn lost(error: &io::Error) -> Refused {
    Refused {
        code: "NoAnswer".to_owned(),
        message: error.to_string(),
    }
}
