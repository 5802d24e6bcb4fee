//! What is counted besides times: what we wrote for a deletion, and what nova-compute complained about.

use unprovision::NodeUuid;
use unprovision::core::guard_consumer;
use unprovision_testkit::proxy::{Exchange, Mark};

use crate::common::{Placed, Stage};

/// A place in nova-compute's log, and in that of the proxies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since {
    pub(crate) mark: Mark,
    lines: usize,
}

impl Since {
    pub(crate) fn now(stage: &Stage) -> Self {
        Self {
            mark: stage.now(),
            lines: stage.lab.log_of_compute().unwrap().lines().count(),
        }
    }
}

/// How many writes the program under test sent since then for this server's node.
pub(crate) fn writes(stage: &Stage, placed: &Placed, since: Since) -> usize {
    let ours = guard_consumer(NodeUuid(placed.node), placed.server).0;
    let names = [placed.node, placed.server, ours].map(|name| name.to_string());
    let counts = |exchange: &&Exchange| {
        let call = &exchange.call;
        let body = call.body.to_string();
        exchange.sent > since.mark
            && exchange.is_write()
            && call.agent.starts_with("unprovision/")
            && names
                .iter()
                .any(|name| call.path.contains(name) || body.contains(name))
    };
    let log = stage.proxies.recorder.exchanges();
    log.iter().filter(counts).count()
}

/// How many errors nova-compute has logged since then that name this server or its node. All lines of a traceback
/// are one error.
pub(crate) fn errors(stage: &Stage, placed: &Placed, since: Since) -> usize {
    let names = [placed.node, placed.server].map(|name| name.to_string());
    let log = stage.lab.log_of_compute().unwrap();
    let mut errors = Vec::<String>::new();
    for line in log.lines().skip(since.lines) {
        let Some((_, said)) = line.split_once(" ERROR ") else {
            continue;
        };
        // A traceback repeats the module, and not whose request it was.
        match errors.last_mut() {
            Some(last) if !said.contains(" [") => last.push_str(said),
            _ => errors.push(said.to_owned()),
        }
    }
    let names_it = |error: &&String| names.iter().any(|name| error.contains(name));
    errors.iter().filter(names_it).count()
}
