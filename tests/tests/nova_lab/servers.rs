//! What real Novas say of a server is what the library reads.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::time::sleep;
use unprovision::NodeUuid;
use unprovision::servers::NovaServers;
use unprovision_session::{Auth, Clouds, HttpTransport, Service};
use unprovision_testkit::conformance::servers::{Hand, PAUSE, run_all, run_all_without_right};
use unprovision_testkit::lab::nova::Rule;
use uuid::Uuid;

use crate::common::{Group, Placed, Stage, secs};

struct InLab<'a> {
    stage: &'a Stage,
    group: &'a Group,
}

impl std::fmt::Debug for InLab<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the lab")
    }
}

#[async_trait]
impl Hand for InLab<'_> {
    async fn server(&self) -> (Uuid, NodeUuid) {
        let Placed { server, node } = self.stage.server(&self.group.flavor, None).await;
        (server, NodeUuid(node))
    }

    async fn delete(&self, server: Uuid) {
        self.stage.nova.delete(server).await.unwrap();
    }

    async fn wait(&self) {
        sleep(PAUSE).await;
    }
}

fn by(stage: &Stage, cloud: &str) -> Clouds<'static> {
    let file = stage.lab.clouds_yaml().display().to_string();
    Clouds::new(move |name| (name == "OS_CLIENT_CONFIG_FILE").then(|| file.clone())).cloud(cloud)
}

async fn servers(stage: &Stage, cloud: &str) -> NovaServers {
    let auth = Auth::new(by(stage, cloud).load().unwrap()).unwrap();
    let transport = HttpTransport::builder(Service::Nova, auth).build().await.unwrap();
    NovaServers::new(Arc::new(transport))
}

/// One for each server that is made: Nova keeps a node reserved from its deletion to the pass after its cleaning.
const NODES: usize = 4;

/// An administrator sees all servers with their nodes. A reader of the very project does not see nodes, a service does not see
/// other projects, and a system's token is not taken: none of them is told that a server is not there.
#[tokio::test]
async fn a_real_nova_says_of_a_server_what_is_read() {
    let (stage, groups) = Stage::new(Rule::Current, secs(60), &[("asked", NODES, &[])]).await;
    let hand = InLab {
        stage: &stage,
        group: &groups[0],
    };
    run_all(&servers(&stage, "lab").await, &hand).await;
    stage.say("as the administrator");
    for cloud in ["lab-reader", "lab-service", "lab-system"] {
        run_all_without_right(&servers(&stage, cloud).await, &hand).await;
        stage.say(cloud);
    }
}
