//! The proxy: connections, faults, and which action goes where.
//!
//! In: connections on loopback. Out: replies. May not: know what an action does.

use std::collections::HashMap;
use std::io::{self, BufReader};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::calls::{Call, Outcome};
use crate::chance::{self, Chance};
use crate::describe::{self, Pages};
use crate::error::Refusal;
use crate::fault::{Fault, Rule};
use crate::http::{self, Reply, Request};
use crate::launch::{self, Tokens};
use crate::moto::{Moto, Refused};
use crate::query::Query;
use crate::quotas::{self, Quotas};
use crate::states;
use crate::targets::{self, Health, Targets};
use crate::world::{Habits, World};
use crate::xml::Element;

/// What a call comes to.
pub(crate) type Answer = Result<Element, Refusal>;

/// A proxy that listens until it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    moto: Moto,
    ended: AtomicBool,
    requests: AtomicU64,
    world: Mutex<World>,
    targets: Mutex<Targets>,
    tokens: Mutex<Tokens>,
    pages: Mutex<Pages>,
    quotas: Mutex<Quotas>,
    rules: Mutex<Vec<Rule>>,
    chance: Mutex<(Option<Chance>, HashMap<u64, u64>)>,
    calls: Mutex<Vec<Call>>,
    /// By number, so that they can be closed.
    connections: Mutex<HashMap<u64, TcpStream>>,
}

impl Proxy {
    /// Listens on loopback, on a port that is free.
    pub fn start(moto: Moto) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            moto,
            ended: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            world: Mutex::default(),
            targets: Mutex::default(),
            tokens: Mutex::default(),
            pages: Mutex::default(),
            quotas: Mutex::default(),
            rules: Mutex::default(),
            chance: Mutex::default(),
            calls: Mutex::default(),
            connections: Mutex::default(),
        });
        let listening = Arc::clone(&shared);
        thread::spawn(move || listening.listen(&listener));
        Ok(Self { address, shared })
    }

    /// What an SDK takes as its endpoint.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// moto itself, in the same account: no fault, no log.
    pub fn moto(&self) -> &Moto {
        &self.shared.moto
    }

    /// Sets how long things stay unseen or between states, for what happens from now on.
    pub fn set_habits(&self, habits: Habits) {
        self.shared.world().habits = habits;
    }

    /// Sets how much Service Quotas says that the account may have of what a code stands for.
    pub fn set_quota(&self, code: &str, value: f64) {
        lock(&self.shared.quotas).insert(code.to_owned(), value);
    }

    /// Says how healthy targets are. The first that is for a target decides; moto has the others.
    pub fn set_health(&self, health: Vec<Health>) {
        self.shared.targets().health = health;
    }

    /// Adds a rule. The first that is for a call decides; chance has what no rule is for.
    pub fn add(&self, rule: Rule) {
        lock(&self.shared.rules).push(rule);
    }

    /// Ends all rules.
    pub fn clear(&self) {
        lock(&self.shared.rules).clear();
    }

    /// Lets chance decide about calls, or nobody.
    pub fn set_chance(&self, chance: Option<Chance>) {
        *lock(&self.shared.chance) = (chance, HashMap::new());
    }

    /// The calls that ended so far; the log begins anew.
    pub fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut *lock(&self.shared.calls))
    }

    /// How many calls of an action have ended since the log began.
    pub fn count(&self, action: &str) -> usize {
        let calls = lock(&self.shared.calls);
        calls
            .iter()
            .filter(|call| call.query.action == action)
            .count()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        // Wakes the one who listens.
        drop(TcpStream::connect(self.address));
        for stream in lock(&self.shared.connections).values() {
            // It may be closed by now.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    pub(crate) fn moto(&self) -> &Moto {
        &self.moto
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        lock(&self.world)
    }

    pub(crate) fn targets(&self) -> MutexGuard<'_, Targets> {
        lock(&self.targets)
    }

    pub(crate) fn tokens(&self) -> MutexGuard<'_, Tokens> {
        lock(&self.tokens)
    }

    pub(crate) fn pages(&self) -> MutexGuard<'_, Pages> {
        lock(&self.pages)
    }

    /// A request id: of the form of AWS', and counted.
    pub(crate) fn request_id(&self) -> String {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        format!("00000000-0000-4000-8000-{number:012x}")
    }

    /// What moto says, with a request id of ours.
    pub(crate) fn forward(&self, request: &Request) -> Answer {
        let reply = self.moto.forward(request);
        let reply = reply.map_err(|error| Refusal::new(500, "NoMoto", error.to_string()))?;
        crate::moto::read(&reply).map_err(|refused| Refusal {
            status: reply.status,
            code: refused.code,
            message: refused.message,
        })
    }

    /// An instance, as moto describes it.
    pub(crate) fn instance(&self, region: &str, id: &str) -> Answer {
        let parameters = [("InstanceId.1", id)];
        let answer = self
            .moto
            .call("ec2", region, "DescribeInstances", &parameters)?;
        let found = answer.at("reservationSet/item/instancesSet/item");
        found.cloned().ok_or_else(|| Refusal::no_such_instance(id))
    }

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
                // A client that goes away in the middle is what this is for.
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
            let Some(query) = Query::of(&request) else {
                let refusal = Refusal::new(400, "MissingAction", "No action was requested");
                http::write_reply(&mut writer, &refusal.reply("ec2", &self.request_id()))?;
                continue;
            };
            let (reply, outcome) = self.treat(&query, &request);
            lock(&self.calls).push(Call { query, outcome });
            match reply {
                Some(reply) => http::write_reply(&mut writer, &reply)?,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// What becomes of a call; no reply where the connection is to be closed.
    fn treat(&self, query: &Query, request: &Request) -> (Option<Reply>, Outcome) {
        let refused = |refusal: &Refusal| {
            let reply = refusal.reply(&query.service, &self.request_id());
            (Some(reply), Outcome::Refused(refusal.code.clone()))
        };
        let fault = self.fault(query);
        match &fault {
            Some(Fault::Refuse(refusal)) => return refused(refusal),
            Some(Fault::LoseRequest) => return (None, Outcome::Lost { effect: false }),
            Some(Fault::Delay(delay)) => thread::sleep(*delay),
            _ => {}
        }
        let (reply, outcome) = self.reply(query, request);
        match fault {
            Some(Fault::RefuseAfter(refusal)) => refused(&refusal),
            Some(Fault::LoseAnswer) => {
                let effect = outcome == Outcome::Answered;
                (None, Outcome::Lost { effect })
            }
            Some(Fault::DelayAnswer(delay)) => {
                thread::sleep(delay);
                (Some(reply), outcome)
            }
            _ => (Some(reply), outcome),
        }
    }

    fn fault(&self, query: &Query) -> Option<Fault> {
        let by_rule = lock(&self.rules)
            .iter_mut()
            .find_map(|rule| rule.take(query));
        if by_rule.is_some() {
            return by_rule;
        }
        let mut chance = lock(&self.chance);
        let (given, counts) = &mut *chance;
        let given = (*given)?;
        let key = chance::key(query);
        let count = counts.entry(key).or_default();
        *count += 1;
        given.fault(query, key, *count - 1)
    }

    fn reply(&self, query: &Query, request: &Request) -> (Reply, Outcome) {
        if request.header("x-amz-target").is_some() {
            if let Some(reply) = quotas::answer(&lock(&self.quotas), &query.action, request) {
                return (reply, Outcome::Answered);
            }
            // Nothing to change in what is JSON otherwise.
            return match self.moto.forward(request) {
                Ok(reply) if reply.status == 200 => (reply, Outcome::Answered),
                Ok(reply) => {
                    let status = reply.status.to_string();
                    (reply, Outcome::Refused(status))
                }
                Err(error) => {
                    let refusal = Refusal::new(500, "NoMoto", error.to_string());
                    let reply = refusal.reply(&query.service, &self.request_id());
                    (reply, Outcome::Refused(refusal.code))
                }
            };
        }
        let answer = match (&*query.service, &*query.action) {
            ("ec2", "RunInstances") => launch::run(self, query, request),
            ("ec2", "DescribeInstances") => describe::instances(self, query),
            (_, "RegisterTargets" | "DeregisterTargets") => targets::change(self, query, request),
            (_, "DescribeTargetHealth") => targets::describe(self, query, request),
            _ => states::pass(self, query, request),
        };
        match answer {
            Ok(mut document) => {
                if document.at("requestId").is_some() {
                    document.put(Element::leaf("requestId", self.request_id()));
                }
                let reply = Reply {
                    status: 200,
                    content_type: "text/xml;charset=UTF-8".to_owned(),
                    body: document.write().into_bytes(),
                };
                (reply, Outcome::Answered)
            }
            Err(refusal) => {
                let reply = refusal.reply(&query.service, &self.request_id());
                (reply, Outcome::Refused(refusal.code))
            }
        }
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self::new(400, &refused.code, refused.message)
    }
}

/// A test that failed while it held the lock has been told already.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
