//! A call, as AWS' query protocol writes it.
//!
//! In: a form, or the target and body of a JSON call. Out: service, region, action, parameters. May
//! not: know what an action means.

use crate::http::Request;

/// One call of an API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// `ec2`, `elasticloadbalancing`, `ssm`, `sts`, `servicequotas`, as requests are signed for.
    pub service: String,
    pub region: String,
    pub action: String,
    /// By name. A call in JSON has none: nothing here looks into them.
    pub parameters: Vec<(String, String)>,
}

impl Query {
    /// Reads a request; none where it isn't signed as AWS' are.
    pub(crate) fn of(request: &Request) -> Option<Self> {
        // Credential=KEY/DATE/REGION/SERVICE/aws4_request
        let authorization = request.header("authorization")?;
        let scope = authorization.split_once("Credential=")?.1;
        let mut scope = scope.split([',', ' ']).next()?.split('/').skip(2);
        let (region, service) = (scope.next()?.to_owned(), scope.next()?.to_owned());
        if let Some(target) = request.header("x-amz-target") {
            return Some(Self {
                service,
                region,
                action: target.rsplit('.').next()?.to_owned(),
                parameters: Vec::new(),
            });
        }
        let mut parameters = read_form(std::str::from_utf8(&request.body).ok()?);
        let at = parameters.iter().position(|(name, _)| name == "Action")?;
        let (_, action) = parameters.remove(at);
        Some(Self {
            service,
            region,
            action,
            parameters,
        })
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut found = self.parameters.iter().filter(|(key, _)| key == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// The values of a list: `InstanceId.1`, `InstanceId.2`, ….
    pub fn list(&self, name: &str) -> Vec<&str> {
        (1..)
            .map_while(|number| self.get(&format!("{name}.{number}")))
            .collect()
    }

    /// Filters by name.
    pub(crate) fn filters(&self) -> Vec<(&str, Vec<&str>)> {
        (1..)
            .map_while(|number| {
                let name = self.get(&format!("Filter.{number}.Name"))?;
                Some((name, self.list(&format!("Filter.{number}.Value"))))
            })
            .collect()
    }

    /// Whether it only asks if it would be allowed.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.get("DryRun") == Some("true")
    }

    /// What tells this call from others, whatever the order of its parameters: all of them but
    /// those named.
    pub(crate) fn sorted_without(&self, without: &[&str]) -> Vec<(String, String)> {
        let mut parameters = self.parameters.clone();
        parameters.retain(|(name, _)| !without.contains(&name.as_str()));
        parameters.sort();
        parameters
    }

    /// The form that is sent.
    pub(crate) fn form(&self) -> String {
        let mut form = format!("Action={}", encode(&self.action));
        for (name, value) in &self.parameters {
            form.push('&');
            form.push_str(&encode(name));
            form.push('=');
            form.push_str(&encode(value));
        }
        form
    }
}

fn read_form(form: &str) -> Vec<(String, String)> {
    form.split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect()
}

fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten();
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        at += if byte.is_some() { 3 } else { 1 };
        out.push(byte.unwrap_or(match bytes[at - 1] {
            b'+' => b' ',
            byte => byte,
        }));
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{Query, decode, encode};
    use crate::http::Request;

    fn request(headers: &[(&str, &str)], body: &str) -> Request {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Request {
            method: "POST".to_owned(),
            path: "/".to_owned(),
            headers: headers.iter().map(own).collect(),
            body: body.as_bytes().to_vec(),
        }
    }

    const SIGNED: &str = "AWS4-HMAC-SHA256 Credential=AK/20261121/eu-north-1/ec2/aws4_request, \
                          SignedHeaders=host, Signature=00";

    #[test]
    fn a_form_is_read_and_written() {
        let body = "Action=RunInstances&Version=2016-11-15&InstanceId.1=i-1&InstanceId.2=i-2\
                    &UserData=a%2Bb%3D+c&Filter.1.Name=tag%3Ax&Filter.1.Value.1=%C3%A9";
        let query = Query::of(&request(&[("authorization", SIGNED)], body)).unwrap();
        assert_eq!(
            (&*query.service, &*query.region, &*query.action),
            ("ec2", "eu-north-1", "RunInstances")
        );
        assert_eq!(query.list("InstanceId"), ["i-1", "i-2"]);
        assert_eq!(query.get("UserData"), Some("a+b= c"));
        assert_eq!(query.filters(), [("tag:x", vec!["é"])]);
        let again = request(&[("authorization", SIGNED)], &query.form());
        assert_eq!(Query::of(&again).unwrap(), query);
    }

    #[test]
    fn a_call_in_json_is_known_by_its_target() {
        let headers = [
            ("authorization", SIGNED),
            ("x-amz-target", "AmazonSSM.GetParameter"),
        ];
        let query = Query::of(&request(&headers, r#"{"Name": "/a"}"#)).unwrap();
        assert_eq!(query.action, "GetParameter");
        assert_eq!(Query::of(&request(&[], "Action=X")), None);
    }

    #[test]
    fn percent_signs_that_are_none_stay() {
        for text in ["100%", "%zz", "a%2", "ü %"] {
            assert_eq!(decode(&encode(text)), text);
        }
        assert_eq!(decode("100%"), "100%");
    }
}
