//! The official clients against the sandbox: what they can do with a real cloud they can do with ours.

use std::process::Output;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;
use unprovision_testkit::lab::Lab;
use unprovision_testkit::sandbox::Sandbox;
use unprovision_testkit::sandbox::serve::{Served, real_clock, serve};

async fn served() -> Served {
    let builder = Sandbox::builder()
        .nodes(4)
        .deployed(2)
        .teardown(Duration::from_secs(1))
        .cleaning(Duration::from_secs(2))
        .clock(real_clock());
    serve(builder.build()).await.unwrap()
}

async fn output(served: &Served, program: &str, args: &[&str]) -> Output {
    let lab = Lab::from_env().unwrap_or_else(|error| panic!("{error}"));
    let mut command = Command::new(lab.program(program));
    command.env_clear().envs(served.environment()).args(args);
    command.output().await.unwrap()
}

async fn run(served: &Served, program: &str, args: &[&str]) -> String {
    let output = output(served, program, args).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

async fn openstack(served: &Served, words: &str) -> Value {
    let words = words.split(' ').chain(["-f", "json"]).collect::<Vec<_>>();
    serde_json::from_str(&run(served, "openstack", &words).await).unwrap()
}

#[tokio::test]
async fn the_command_line_of_openstack_works_on_the_sandbox() {
    let served = served().await;
    let nodes = openstack(&served, "baremetal node list").await;
    let states = nodes
        .as_array()
        .unwrap()
        .iter()
        .map(|node| &node["provision_state"]);
    assert_eq!(
        states.collect::<Vec<_>>(),
        ["active", "active", "available", "available"]
    );
    let node = nodes[0]["uuid"].as_str().unwrap();
    let offered = "allocation candidate list --resource CUSTOM_BAREMETAL=1";
    let before = openstack(&served, offered).await;
    assert_eq!(before.as_array().unwrap().len(), 2);
    assert_eq!(before[0]["resource provider"], nodes[2]["uuid"]);

    let inventory = openstack(&served, &format!("resource provider inventory list {node}")).await;
    assert_eq!(
        (&inventory[0]["total"], &inventory[0]["used"]),
        (&1.into(), &1.into())
    );
    let set =
        format!("resource provider inventory set {node} --amend --resource CUSTOM_BAREMETAL:reserved=1");
    let set = openstack(&served, &set).await;
    assert_eq!(set[0]["reserved"], 1, "{set}");

    let unknown = run_wrong(&served, &["baremetal", "node", "show", "nobody"]).await;
    assert!(
        unknown.contains("HTTP 404") && unknown.contains("req-"),
        "{unknown}"
    );
}

async fn run_wrong(served: &Served, args: &[&str]) -> String {
    let output = output(served, "openstack", args).await;
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

/// Lists, tears down and waits, as an operator's script does.
const SCRIPT: &str = r#"
import openstack
conn = openstack.connect()
nodes = {node.name: node for node in conn.baremetal.nodes(details=True)}
assert {provider.id for provider in conn.placement.resource_providers()} == {node.id for node in nodes.values()}
node = nodes['node-0001']
assert node.provision_state == 'active' and node.instance_id
inventories = conn.placement.resource_provider_inventories(node.id)
assert [(one.resource_class, one.total) for one in inventories] == [('CUSTOM_BAREMETAL', 1)]
conn.baremetal.set_node_provision_state(node, 'deleted')
node = conn.baremetal.wait_for_nodes_provision_state([node], 'available', timeout=60)[0]
print(node.provision_state, node.instance_id)
"#;

#[tokio::test]
async fn openstacksdk_works_on_the_sandbox() {
    let served = served().await;
    assert_eq!(
        run(&served, "python", &["-c", SCRIPT]).await.trim(),
        "available None"
    );
}
