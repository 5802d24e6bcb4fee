//! The sandbox: a world with a clock, faults and transports, shared by handles.

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use jiff::Timestamp;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use unprovision_session::{Transport, TransportError};
use uuid::Uuid;

use super::Service;
use super::build::Builder;
use super::call::{Caller, later};
use super::faults::{Effect, Fault, Plan, Stale, stamp};
use super::log::Log;
use super::world::World;

/// A clock: what time it is for the sandbox.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How many earlier worlds are kept for stale answers.
const HISTORY: usize = 4096;

/// A world that several parties may talk to. Cloning gives another handle to the same world.
#[derive(Clone)]
pub struct Sandbox {
    shared: Arc<Mutex<Shared>>,
    clock: Clock,
}

#[derive(Debug)]
struct Shared {
    world: World,
    plan: Plan,
    history: VecDeque<(Timestamp, World)>,
}

/// What the sender of a request gets to see.
#[derive(Debug)]
pub(super) enum Outcome {
    Answer(Response<Bytes>),
    /// It never arrived.
    LostBefore,
    /// It arrived, or will; nobody knows.
    LostAfter,
}

impl Sandbox {
    /// Says step by step what the world shall be like.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A sandbox around a world and a clock.
    pub fn new(world: World, clock: Clock) -> Self {
        let shared = Shared {
            world,
            plan: Plan::default(),
            history: VecDeque::new(),
        };
        Self {
            shared: Arc::new(Mutex::new(shared)),
            clock,
        }
    }

    /// What time it is here.
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Works on the world, brought up to the present.
    pub fn with<T>(&self, work: impl FnOnce(&mut World, Timestamp) -> T) -> T {
        let now = self.now();
        let mut shared = self.lock();
        shared.world.advance(now);
        let result = work(&mut shared.world, now);
        shared.remember(now);
        result
    }

    /// A copy of the world, brought up to the present.
    pub fn world(&self) -> World {
        self.with(|world, _| world.clone())
    }

    /// A copy of the log, brought up to the present.
    pub fn log(&self) -> Log {
        self.with(|world, _| world.log.clone())
    }

    /// Adds a fault; those added first come first.
    pub fn fault(&self, fault: Fault) {
        let now = self.now();
        let mut shared = self.lock();
        shared.plan.add(fault);
        shared.world.advance(now);
        shared.remember(now);
    }

    /// Takes all faults away.
    pub fn clear_faults(&self) {
        self.lock().plan.clear();
    }

    /// A way to Ironic from inside the process, without authentication.
    pub fn ironic(&self) -> Arc<dyn Transport> {
        self.transport(Service::Ironic, "client")
    }

    /// A way to Placement from inside the process, without authentication.
    pub fn placement(&self) -> Arc<dyn Transport> {
        self.transport(Service::Placement, "client")
    }

    /// A way to a service for a caller whom the log shall tell from others.
    pub fn transport(&self, service: Service, who: &str) -> Arc<dyn Transport> {
        Arc::new(InProcess {
            sandbox: self.clone(),
            service,
            who: who.to_owned(),
        })
    }

    /// The nodes that carry an instance, with it, in the order of their creation.
    pub fn deployed(&self) -> Vec<(Uuid, Uuid)> {
        self.with(|world, _| world.deployed())
    }

    /// All nodes in the order of their creation.
    pub fn nodes(&self) -> Vec<Uuid> {
        self.with(|world, _| world.nodes().iter().map(|node| node.uuid).collect())
    }

    /// Whether a node is offered right now.
    pub fn is_offered(&self, node: Uuid) -> bool {
        self.with(|world, _| world.is_offered(node))
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What happens to a request, by the plan.
    pub(super) fn meet(&self, service: Service, request: &Request<Bytes>) -> Vec<Effect> {
        self.lock().plan.meet(service, request)
    }

    /// Carries a request to the world and its answer back, under the effects given.
    pub(super) fn exchange(&self, service: Service, request: Request<Bytes>, effects: &[Effect]) -> Outcome {
        let now = self.now();
        let mut shared = self.lock();
        shared.world.advance(now);
        for effect in effects {
            if let Effect::Before(hook) = effect {
                hook(&mut shared.world, now);
            }
        }
        let outcome = shared.apply(service, request, effects, now);
        for effect in effects {
            if let Effect::After(hook) = effect {
                hook(&mut shared.world, now);
            }
        }
        shared.remember(now);
        outcome
    }
}

impl Shared {
    fn apply(
        &mut self,
        service: Service,
        request: Request<Bytes>,
        effects: &[Effect],
        now: Timestamp,
    ) -> Outcome {
        for effect in effects {
            match effect {
                Effect::LoseRequest => return Outcome::LostBefore,
                Effect::Answer(response) => return Outcome::Answer(stamp(response.clone())),
                Effect::Late(by) => {
                    self.world.arrives_later(service, request, later(now, *by));
                    return Outcome::LostAfter;
                }
                Effect::LoseReply => {
                    self.world.answer(service, &request);
                    return Outcome::LostAfter;
                }
                Effect::Stale(stale) => {
                    if let Some(mut past) = self.past(*stale, now) {
                        return Outcome::Answer(past.answer(service, &request));
                    }
                }
                _ => {}
            }
        }
        Outcome::Answer(self.world.answer(service, &request))
    }

    /// The world as it was.
    fn past(&self, stale: Stale, now: Timestamp) -> Option<World> {
        match stale {
            Stale::Exchanges(back) => self
                .history
                .iter()
                .rev()
                .nth(back)
                .map(|(_, world)| world.clone()),
            Stale::Age(age) => {
                let then = now.checked_sub(age).ok()?;
                let (_, world) = self.history.iter().rev().find(|(at, _)| *at <= then)?;
                // Nothing was asked of it since, so time alone tells how it was then.
                let mut world = world.clone();
                world.advance(then);
                Some(world)
            }
        }
    }

    fn remember(&mut self, now: Timestamp) {
        if self.plan.looks_back() {
            self.history.push_back((now, self.world.clone()));
            if self.history.len() > HISTORY {
                self.history.pop_front();
            }
        }
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox")
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}

/// The time that passes for tokio, paused or not, from a fixed beginning.
pub fn tokio_clock() -> Clock {
    let start = tokio::time::Instant::now();
    Arc::new(move || later(beginning(), start.elapsed()))
}

/// When sandboxes begin: the first of January 2026, UTC.
pub fn beginning() -> Timestamp {
    Timestamp::from_second(1_767_225_600).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// A transport that hands requests to the world directly.
#[derive(Debug)]
struct InProcess {
    sandbox: Sandbox,
    service: Service,
    who: String,
}

/// A request or answer that got lost on purpose.
#[derive(Debug, thiserror::Error)]
#[error("the sandbox lost the {0}")]
struct Lost(&'static str);

#[async_trait]
impl Transport for InProcess {
    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        request.extensions_mut().insert(Caller(self.who.clone()));
        // Lets other tasks go first, as a real network does.
        tokio::task::yield_now().await;
        let effects = self.sandbox.meet(self.service, &request);
        wait(effects.iter().filter_map(Effect::delay)).await;
        let outcome = self.sandbox.exchange(self.service, request, &effects);
        wait(effects.iter().filter_map(Effect::reply_delay)).await;
        let service = self.service.name().to_owned();
        match outcome {
            Outcome::Answer(response) => Ok(response),
            Outcome::LostBefore => Err(TransportError::NotSent {
                service,
                source: Box::new(Lost("request")),
            }),
            Outcome::LostAfter => Err(TransportError::MaybeApplied {
                service,
                waited: None,
                source: Box::new(Lost("answer")),
            }),
        }
    }
}

/// Waits for all delays, one after the other.
pub(super) async fn wait(delays: impl Iterator<Item = Duration>) {
    let total: Duration = delays.sum();
    if !total.is_zero() {
        tokio::time::sleep(total).await;
    }
}
