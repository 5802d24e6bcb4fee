//! C22 `available` and yet not free; nodes in use; what is nobody's business.

use unprovision::guard::Settings;
use unprovision_testkit::sandbox::config::NovaRule;
use unprovision_testkit::sandbox::ironic::{Node, State};
use unprovision_testkit::sandbox::{Sandbox, judge};

use crate::common::{Scene, assert_ironic_untouched, cloud, edit, secs, strategies, writes};

/// Maintenance, lost power and retirement hide a node within a sweep, beside any Nova; then both sides come to rest.
#[tokio::test(start_paused = true)]
async fn c22_an_available_node_that_is_not_free_is_held_until_it_is() {
    type Change = fn(&mut Node);
    let spoil: [(&str, Change, Change); 4] = [
        (
            "maintenance",
            |node| node.maintenance = true,
            |node| node.maintenance = false,
        ),
        (
            "power",
            |node| node.power_state = None,
            |node| node.power_state = Some("power off".into()),
        ),
        ("retired", |node| node.retired = true, |node| node.retired = false),
        (
            "manageable",
            |node| node.provision_state = State::Manageable,
            |node| node.provision_state = State::Available,
        ),
    ];
    for strategy in strategies() {
        for rule in [NovaRule::Off, NovaRule::Current] {
            for (what, spoil, cure) in spoil {
                let sandbox = Sandbox::builder().nodes(2).nova(rule).build();
                let (node, other) = (sandbox.nodes()[0], sandbox.nodes()[1]);
                let what = format!("{strategy}, {rule:?}, {what}");
                let settings = Settings {
                    strategy: strategy.to_owned(),
                    look: secs(3),
                    ..Settings::default()
                };
                Scene::with(&sandbox, settings)
                    .while_guarding(async {
                        tokio::time::sleep(secs(70)).await;
                        assert_eq!(writes(&sandbox), Vec::<String>::new(), "{what}: nothing is wrong");
                        edit(&sandbox, node, spoil);
                        tokio::time::sleep(secs(130)).await;
                        assert!(!sandbox.is_offered(node), "{what}");
                        let before = writes(&sandbox).len();
                        tokio::time::sleep(secs(600)).await;
                        assert!(!sandbox.is_offered(node), "{what}");
                        assert_eq!(writes(&sandbox).len(), before, "{what}: it flaps");
                        edit(&sandbox, node, cure);
                        tokio::time::sleep(secs(200)).await;
                        assert!(sandbox.is_offered(node), "{what}: not offered again");
                    })
                    .await;
                let exposed = judge::exposure(&sandbox.log(), node).total;
                assert!(exposed <= secs(62), "{what}: {exposed:?}");
                assert!(sandbox.is_offered(other), "{what}: the neighbour");
                assert_ironic_untouched(&sandbox);
            }
        }
    }
}

/// Rule 2: a node in use whose allocation is missing is a finding, and no reason to write.
#[tokio::test(start_paused = true)]
async fn a_node_in_use_without_its_allocation_is_told_and_left_alone() {
    let sandbox = cloud(2, NovaRule::Off).build();
    let (node, instance) = sandbox.deployed().remove(0);
    sandbox.with(|world, now| world.nova_release(instance, now));
    assert!(sandbox.is_offered(node));
    let scene = Scene::new(&sandbox);
    scene.while_guarding(tokio::time::sleep(secs(1000))).await;
    assert_eq!(writes(&sandbox), Vec::<String>::new());
    assert_eq!(scene.ear.heard("finding"), 1, "told once");
}

/// Rule 6: a reservation on a provider that is not Nova's is an operator's.
#[tokio::test(start_paused = true)]
async fn an_operators_reservation_is_not_touched() {
    let sandbox = Sandbox::builder().nodes(1).build();
    let node = sandbox.nodes()[0];
    sandbox.with(|world, _| {
        world.edit_provider(node, |provider| {
            provider.traits.clear();
            let all = provider.inventories.values_mut();
            all.for_each(|inventory| inventory.reserved = inventory.total);
        })
    });
    Scene::new(&sandbox)
        .while_guarding(tokio::time::sleep(secs(700)))
        .await;
    assert_eq!(writes(&sandbox), Vec::<String>::new());
}

/// Servers come and go for an hour while the guard runs: whoever deploys is never disturbed.
#[tokio::test(start_paused = true)]
async fn servers_that_are_created_are_left_alone() {
    for rule in [NovaRule::Old, NovaRule::Current] {
        let sandbox = cloud(3, rule).nodes(6).build();
        let scene = Scene::new(&sandbox);
        let created = scene
            .while_guarding(async {
                let mut created = Vec::new();
                for round in 0..10_u32 {
                    let instance = uuid::Uuid::from_u128(0x1000 + u128::from(round));
                    sandbox.with(|world, now| world.nova_create(instance, "baremetal", None, now));
                    created.push(instance);
                    tokio::time::sleep(secs(37)).await;
                    if let Some((_, instance)) = sandbox.deployed().first() {
                        sandbox.with(|world, now| world.nova_delete(*instance, now));
                    }
                    tokio::time::sleep(secs(23)).await;
                }
                tokio::time::sleep(secs(60)).await;
                created
            })
            .await;
        for instance in created {
            let stage = crate::common::stage(&sandbox, instance);
            let failed = stage == Some(unprovision_testkit::sandbox::nova::Stage::Error);
            assert!(!failed, "{rule:?}: {instance} could not be built");
        }
        for node in sandbox.nodes() {
            crate::common::assert_unexposed(&sandbox, node, &format!("{rule:?}"));
        }
        assert_ironic_untouched(&sandbox);
    }
}
