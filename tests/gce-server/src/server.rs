//! The server: connections, faults, validation, dispatch.
//!
//! In: connections on loopback. Out: replies. Must not: know what a method does.

use std::collections::HashMap;
use std::io::{self, BufReader};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value, json};

use crate::calls::{Call, Outcome};
use crate::chance::{self, Chance};
use crate::discovery::{Document, Invalid, Method, Problem};
use crate::error::{OperationError, Refusal};
use crate::fault::{Fault, Rule};
use crate::http::{self, Reply, Request};
use crate::world::World;
use crate::{balancing, images, instances};

/// The name of each server's project.
pub const PROJECT: &str = "test-project";

/// A server that listens until it is dropped. Each has a project of its own.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    document: Arc<Document>,
    ended: AtomicBool,
    world: Mutex<World>,
    rules: Mutex<Vec<Rule>>,
    /// How often each call was made, by its key.
    chance: Mutex<(Option<Chance>, HashMap<u64, u64>)>,
    calls: Mutex<Vec<Call>>,
    violations: Mutex<Vec<String>>,
    /// By number, so that they can be closed.
    connections: Mutex<HashMap<u64, TcpStream>>,
}

/// A valid call, as methods take it.
pub(crate) struct Ask<'a> {
    pub(crate) document: &'a Document,
    pub(crate) call: &'a Call,
    /// What ends the operation, by a fault.
    pub(crate) end: Option<OperationError>,
}

impl Ask<'_> {
    pub(crate) fn project(&self) -> &str {
        self.call.get("project").unwrap_or_default()
    }

    /// What makes two calls the same, for their request ids.
    pub(crate) fn identity(&self) -> String {
        let parameters = self.call.parameters.iter();
        let mut fixed: Vec<_> = parameters
            .filter(|(name, _)| name != "requestId" && !name.starts_with('$'))
            .collect();
        fixed.sort();
        let mut identity = json!([self.call.method, fixed, self.call.body]);
        // Clients write the members of maps in any order.
        identity.sort_all_objects();
        identity.to_string()
    }
}

impl Server {
    /// Listens on loopback, on a free port. Calls and answers are checked against the document.
    pub fn start(document: &Arc<Document>) -> io::Result<Self> {
        Self::start_at(document, 0)
    }

    /// Listens on loopback, on this port.
    pub fn start_at(document: &Arc<Document>, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            document: Arc::clone(document),
            ended: AtomicBool::new(false),
            world: Mutex::new(World::new(PROJECT)),
            rules: Mutex::default(),
            chance: Mutex::default(),
            calls: Mutex::default(),
            violations: Mutex::default(),
            connections: Mutex::default(),
        });
        let listening = Arc::clone(&shared);
        thread::spawn(move || listening.listen(&listener));
        Ok(Self { address, shared })
    }

    /// What a client takes as its endpoint.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds a rule. The first that applies to a call decides; chance decides where none does.
    pub fn add(&self, rule: Rule) {
        lock(&self.shared.rules).push(rule);
    }

    /// Ends all rules.
    pub fn clear(&self) {
        lock(&self.shared.rules).clear();
    }

    /// Lets chance decide about calls, or nothing.
    pub fn set_chance(&self, chance: Option<Chance>) {
        *lock(&self.shared.chance) = (chance, HashMap::new());
    }

    /// The calls that ended so far; the log begins anew.
    pub fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut *lock(&self.shared.calls))
    }

    /// How many calls of a method have ended since the log began, as in `instances.insert`.
    pub fn count(&self, method: &str) -> usize {
        let calls = lock(&self.shared.calls);
        calls.iter().filter(|call| call.method == method).count()
    }

    /// Where a request or an answer didn't fit the document. Answers that don't are errors of this
    /// server; requests that don't are refused.
    pub fn violations(&self) -> Vec<String> {
        lock(&self.shared.violations).clone()
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        lock(&self.shared.world)
    }

    pub(crate) fn document(&self) -> &Document {
        &self.shared.document
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        // Wakes the thread that listens.
        drop(TcpStream::connect(self.address));
        for stream in lock(&self.shared.connections).values() {
            // It may be closed by now.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// The outcome of a call whose effect was tried.
type Answer = Result<Value, Refusal>;

impl Shared {
    fn listen(self: Arc<Self>, listener: &TcpListener) {
        for (number, stream) in (0..).zip(listener.incoming()) {
            if self.ended.load(Ordering::SeqCst) {
                return;
            }
            let (Ok(stream), shared) = (stream, Arc::clone(&self)) else {
                continue;
            };
            thread::spawn(move || {
                if let Ok(twin) = stream.try_clone() {
                    lock(&shared.connections).insert(number, twin);
                }
                // A client may go away at any time.
                let _ = shared.serve(&stream);
                let _ = stream.shutdown(Shutdown::Both);
                lock(&shared.connections).remove(&number);
            });
        }
    }

    /// Answers the calls of one connection, until one side ends it.
    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut writer = stream;
        while let Some(request) = http::read_request(&mut reader)? {
            let (reply, call) = self.treat(&request);
            lock(&self.calls).push(call);
            match reply {
                Some(reply) => http::write_reply(&mut writer, &reply)?,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Answers a call; no reply where the connection is to be closed.
    fn treat(&self, request: &Request) -> (Option<Reply>, Call) {
        let (mut call, valid) = self.read(request);
        let fault = self.fault(&call);
        let refused = |call: &mut Call, refusal: &Refusal| {
            call.outcome = Outcome::Refused(refusal.reason.clone());
            Some(refusal.reply())
        };
        let mut end = None;
        match fault.clone() {
            Some(Fault::Refuse(refusal)) => {
                return (refused(&mut call, &refusal), call);
            }
            Some(Fault::LoseRequest) => {
                call.outcome = Outcome::Lost { effect: false };
                return (None, call);
            }
            Some(Fault::Delay(delay)) => thread::sleep(delay),
            Some(Fault::EndOperation(error)) => end = Some(error),
            Some(Fault::RefuseAfter(_) | Fault::LoseAnswer | Fault::DelayAnswer(_)) | None => {}
        }
        let answer = valid.and_then(|target| self.answer(&target, &call, end));
        let reply = match &answer {
            Ok(answer) => Some(Reply {
                status: 200,
                body: answer.to_string().into_bytes(),
            }),
            Err(refusal) => refused(&mut call, refusal),
        };
        match fault {
            Some(Fault::RefuseAfter(refusal)) => (refused(&mut call, &refusal), call),
            Some(Fault::LoseAnswer) => {
                let effect = answer.is_ok();
                call.outcome = Outcome::Lost { effect };
                (None, call)
            }
            Some(Fault::DelayAnswer(delay)) => {
                thread::sleep(delay);
                (reply, call)
            }
            _ => (reply, call),
        }
    }

    /// The call of a request, and its target if it is valid.
    fn read(&self, request: &Request) -> (Call, Result<Target<'_>, Refusal>) {
        let mut call = Call {
            method: format!("{} {}", request.method, request.path),
            parameters: Vec::new(),
            body: Value::Null,
            authorized: request.header("authorization").is_some(),
            outcome: Outcome::Answered,
        };
        let bad = |message: &str| Refusal::new(400, "badRequest", message);
        if !request.body.is_empty() {
            match serde_json::from_slice(&request.body) {
                Ok(body) => call.body = body,
                Err(_) => return (call, Err(bad("Parse Error"))),
            }
        }
        let Some(query) = http::decode_query(&request.query) else {
            return (call, Err(bad("Invalid query")));
        };
        call.parameters = query;
        if let Some(project) = permissions_project(request) {
            "projects.testIamPermissions".clone_into(&mut call.method);
            call.parameters.push(("project".to_owned(), project));
            return (call, Ok(Target::Permissions));
        }
        let Some((method, in_path)) = self.document.find(&request.method, &request.path) else {
            self.violation(format!("{}: the document has no such method", call.method));
            return (call, Err(Refusal::new(404, "notFound", "Not Found")));
        };
        call.method.clone_from(&method.name);
        let mut invalid = self
            .document
            .check_parameters(method, &in_path, &call.parameters);
        invalid.extend(self.document.check_request(method, &call.body));
        call.parameters.splice(0..0, in_path);
        if let Some(first) = invalid.first() {
            let refusal = refusal(first, &call);
            for one in &invalid {
                self.violation(format!("request {}: {one}", call.method));
            }
            return (call, Err(refusal));
        }
        (call, Ok(Target::Method(method)))
    }

    /// Carries a call out.
    fn answer(&self, target: &Target, call: &Call, end: Option<OperationError>) -> Answer {
        let ask = Ask {
            document: &self.document,
            call,
            end,
        };
        let mut world = lock(&self.world);
        let method = match target {
            Target::Permissions => return Ok(test_permissions(&world, call)),
            Target::Method(method) => method,
        };
        let answer = dispatch(&mut world, &ask, method)?;
        let invalid = self.document.check_response(method, &answer);
        if invalid.is_empty() {
            return Ok(answer);
        }
        for one in &invalid {
            self.violation(format!("answer of {}: {one}", call.method));
        }
        Err(Refusal::new(
            500,
            "violation",
            format!("the fake's answer is invalid: {}", invalid[0]),
        ))
    }

    fn fault(&self, call: &Call) -> Option<Fault> {
        let by_rule = lock(&self.rules)
            .iter_mut()
            .find_map(|rule| rule.take(call));
        if by_rule.is_some() {
            return by_rule;
        }
        let mut chance = lock(&self.chance);
        let (given, counts) = &mut *chance;
        let given = (*given)?;
        let count = counts.entry(chance::key(call)).or_default();
        *count += 1;
        given.fault(call, *count - 1)
    }

    fn violation(&self, text: String) {
        lock(&self.violations).push(text);
    }
}

/// What a request is for.
enum Target<'a> {
    Method(&'a Method),
    /// Resource Manager's.
    Permissions,
}

fn dispatch(world: &mut World, ask: &Ask, method: &Method) -> Answer {
    let name = &*method.name;
    if ask.project() != world.project && !name.starts_with("images.") && name != "subnetworks.get" {
        return Err(Refusal::not_found(&format!("projects/{}", ask.project())));
    }
    if !method.reads()
        && let Some(operation) = world.repeated(ask)?
    {
        return Ok(operation);
    }
    match name {
        "backendServices.getHealth" | "regionBackendServices.getHealth" => {
            balancing::get_health(world, ask)
        }
        "backendServices.list" | "regionBackendServices.list" => {
            balancing::list_services(world, ask)
        }
        "disks.get" => images::disk(world, ask),
        "images.get" => images::get(world, ask),
        "images.getFromFamily" => images::get_from_family(world, ask),
        "images.list" => images::list(world, ask),
        "instanceGroups.addInstances" => balancing::add_instances(world, ask),
        "instanceGroups.listInstances" => balancing::list_instances(world, ask),
        "instanceGroups.removeInstances" => balancing::remove_instances(world, ask),
        "instances.aggregatedList" => instances::aggregated_list(world, ask),
        "instances.delete" => instances::delete(world, ask),
        "instances.get" => instances::get(world, ask),
        "instances.insert" => instances::insert(world, ask),
        "instances.list" => instances::list(world, ask),
        "instances.setDeletionProtection" => instances::set_deletion_protection(world, ask),
        "instances.setLabels" => instances::set_labels(world, ask),
        "instances.setMachineType" => instances::set_machine_type(world, ask),
        "instances.setMetadata" => instances::set_metadata(world, ask),
        "instances.setMinCpuPlatform" => instances::set_min_cpu_platform(world, ask),
        "instances.setScheduling" => instances::set_scheduling(world, ask),
        "instances.setServiceAccount" => instances::set_service_account(world, ask),
        "instances.setTags" => instances::set_tags(world, ask),
        "instances.start" => instances::start(world, ask),
        "instances.stop" => instances::stop(world, ask),
        "instances.updateShieldedInstanceConfig" => instances::update_shielded(world, ask),
        "networkEndpointGroups.attachNetworkEndpoints" => balancing::attach(world, ask),
        "networkEndpointGroups.detachNetworkEndpoints" => balancing::detach(world, ask),
        "networkEndpointGroups.listNetworkEndpoints" => balancing::list_endpoints(world, ask),
        "regions.get" => images::region(world, ask),
        "subnetworks.get" => images::subnetwork(world, ask),
        "zoneOperations.get" | "zoneOperations.wait" => operation(world, ask),
        _ => {
            let message = format!("the fake doesn't have {name}");
            Err(Refusal::new(501, "notImplemented", message))
        }
    }
}

/// `zoneOperations.get` and `zoneOperations.wait`
fn operation(world: &mut World, ask: &Ask) -> Answer {
    let zone = instances::zone(ask)?.to_owned();
    let name = ask.call.get("operation").unwrap_or_default().to_owned();
    let path = world.path(&format!("zones/{zone}/operations/{name}"));
    let key = (zone, name);
    if ask.call.method == "zoneOperations.wait" {
        world.wait(&key);
    } else {
        world.look_at_operation(&key);
    }
    let operation = world.operations.get(&key);
    let operation = operation.ok_or_else(|| Refusal::not_found(&path))?;
    Ok(operation.resource.clone())
}

/// The project of a call of `testIamPermissions`, in either version of Resource Manager.
fn permissions_project(request: &Request) -> Option<String> {
    let path = request.path.strip_suffix(":testIamPermissions")?;
    let rest = path
        .strip_prefix("/v1/")
        .or_else(|| path.strip_prefix("/v3/"))?;
    let project = rest.strip_prefix("projects/")?;
    (request.method == "POST" && !project.contains('/')).then(|| project.to_owned())
}

fn test_permissions(world: &World, call: &Call) -> Value {
    let asked = crate::world::items(&call.body["permissions"]).iter();
    let has = |permission: &&Value| {
        let name = permission.as_str().unwrap_or_default();
        call.get("project") == Some(&world.project) && !world.denied.contains(name)
    };
    let granted: Vec<&Value> = asked.filter(has).collect();
    // Google leaves an empty list out.
    if granted.is_empty() {
        json!({})
    } else {
        json!({"permissions": granted})
    }
}

/// The answer to an invalid request, as Google words it.
fn refusal(invalid: &Invalid, call: &Call) -> Refusal {
    let place = &invalid.place;
    match &invalid.problem {
        Problem::Unknown => {
            let (parent, name) = place.rsplit_once('.').unwrap_or(("", place));
            let message = format!(
                "Invalid JSON payload received. Unknown name \"{name}\" at '{parent}': Cannot find \
                 field."
            );
            Refusal::new(400, "badRequest", message)
        }
        Problem::Missing => {
            let message = format!("Required field '{place}' not specified");
            Refusal::new(400, "required", message)
        }
        Problem::Repeated => {
            let message = format!("Parameter '{place}' is repeated");
            Refusal::new(400, "badRequest", message)
        }
        Problem::Type(expected) => {
            let message = format!("Invalid value at '{place}' ({expected})");
            Refusal::new(400, "badRequest", message)
        }
        Problem::Pattern(pattern) => {
            let pointer = place.replace(['.', '['], "/").replace(']', "");
            let pointer = pointer.strip_prefix("resource").unwrap_or_default();
            let value = call.body.pointer(pointer).and_then(Value::as_str);
            let value = value.or_else(|| call.get(place)).unwrap_or_default();
            let why = format!("Must be a match of regex '{pattern}'");
            Refusal::invalid(place, value, &why)
        }
        Problem::Enum(value) => {
            let message = format!("Invalid value at '{place}' (enum), \"{value}\"");
            Refusal::new(400, "badRequest", message)
        }
    }
}

/// A test that failed while it held the lock has reported that already.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
