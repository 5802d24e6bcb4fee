//! `unprovision guard` from its first moment on: signals, a login that is refused, how it ends.

use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use tokio::process::Child;
use tokio::time::{sleep, timeout};

use crate::support::{Cloud, finish, quick, send};

/// SIGUSR1 and SIGUSR2, as the kernel counts them in a mask.
const BOTH: u64 = (1 << 9) | (1 << 11);

fn hears_both(child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id().unwrap())).unwrap();
    let caught = status
        .lines()
        .find_map(|line| line.strip_prefix("SigCgt:"))
        .unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & BOTH == BOTH
}

/// A guard that is still reading its configuration: it goes on when this is fed.
fn starting(cloud: &Cloud, args: &[&str]) -> (Child, impl FnOnce() + use<>) {
    let file = cloud.home().join("fifo.toml");
    let _ = std::fs::remove_file(&file);
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    let mut command = cloud.command(args);
    command
        .arg("--config")
        .arg(&file)
        .env("UNPROVISION_GUARD__LOOK", "100ms");
    let child = command.spawn().unwrap();
    let feed = move || {
        // As often as it is read; whoever waits for one more reader ends with the process.
        std::thread::spawn(move || {
            while std::fs::write(&file, "").is_ok() {
                std::thread::sleep(Duration::from_millis(50));
            }
        });
    };
    (child, feed)
}

#[tokio::test]
async fn a_signal_counts_from_the_first_moment() {
    let cloud = Cloud::with_nova_traits(quick(1).teardown(Duration::from_secs(3600))).await;
    let one = cloud.only();
    let instance = one.instance.parse().unwrap();
    cloud
        .sandbox()
        .with(|world, now| world.nova_delete(instance, now));
    // A pause that came first keeps the first hold from being taken; a go-on after it does not.
    for (args, signals, held) in [
        (&["guard", "--once"][..], &[Signal::USR1][..], false),
        (&["guard", "stand-down"], &[Signal::USR1], false),
        (&["guard"], &[Signal::USR1], false),
        (&["guard", "--once"], &[Signal::USR1, Signal::USR2], true),
    ] {
        let (guard, feed) = starting(&cloud, args);
        let heard = async {
            while !hears_both(&guard) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(30), heard)
            .await
            .expect("it hears both");
        for signal in signals {
            send(&guard, *signal);
            sleep(Duration::from_millis(300)).await;
        }
        feed();
        if args == ["guard"] {
            sleep(Duration::from_secs(2)).await;
            send(&guard, Signal::TERM);
        }
        let ran = finish(guard).await;
        assert!(matches!(ran.code, Some(0 | 3)), "{args:?} {ran:?}");
        ran.assert_says(&["paused, nothing is written: by SIGUSR1"]);
        let holders = cloud.sandbox().with(|world, _| world.holders(one.node));
        assert_eq!(holders != [instance], held, "{args:?} {ran:?}");
    }
}

#[tokio::test]
async fn a_refused_login_is_told_with_its_cause_also_quietly() {
    let cloud = Cloud::with_nova_traits(quick(1)).await;
    for quiet in [&[][..], &["-q"]] {
        let mut command = cloud.command(&["guard", "--log-format", "json"]);
        command.args(quiet).env("OS_PASSWORD", "wr0ng-s3cr3t");
        let guard = command.spawn().unwrap();
        sleep(Duration::from_secs(3)).await;
        send(&guard, Signal::TERM);
        let ran = finish(guard).await;
        ran.assert_code(0);
        assert!(!ran.stderr.contains("wr0ng-s3cr3t"), "{}", ran.stderr);
        let said = ran
            .stderr
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .collect::<Vec<_>>();
        let causes = said.iter().filter(|line| {
            let said = line["message"].as_str().unwrap();
            said.contains("the last sweep failed")
                && said.contains("no login for ironic")
                && said.contains("401")
        });
        let alarms = causes.filter(|line| line["alarm"] == true);
        assert_eq!(alarms.count(), 1, "{}", ran.stderr);
        let stopped = said.last().unwrap()["message"].as_str().unwrap();
        assert!(stopped.starts_with("guard stopped"), "{}", ran.stderr);
    }
}

/// A node on its way that nothing of ours hides is no reason not to stand down. It is not held, because the pause file was
/// there before the guard was.
#[tokio::test]
async fn standing_down_ends_as_it_says() {
    let cloud = Cloud::with_nova_traits(quick(1).teardown(Duration::from_secs(3600))).await;
    let instance = cloud.only().instance.parse().unwrap();
    cloud
        .sandbox()
        .with(|world, now| world.nova_delete(instance, now));
    let mut command = cloud.command(&["guard", "--once", "-o", "json"]);
    command.env("UNPROVISION_GUARD__PAUSE_FILE", "/dev/null");
    let once = finish(command.spawn().unwrap()).await;
    let row = once
        .assert_code(3)
        .assert_says(&["paused, nothing is written: the file /dev/null is there"])
        .row();
    assert_eq!(row["held"], false, "{row}");
    let ran = cloud.run(&["guard", "stand-down"]).await;
    ran.assert_code(0);
    assert_eq!(ran.stdout, "nothing of ours holds a node any more\n", "{ran:?}");
    let json = cloud.run(&["guard", "stand-down", "-o", "json"]).await;
    assert!(json.assert_code(0).rows().is_empty(), "{json:?}");
}

/// It cannot be said of a cloud that hides its nodes that nothing is held there.
#[tokio::test]
async fn a_guard_that_sees_no_node_says_so_and_does_not_call_it_clean() {
    let cloud = Cloud::with_nova_traits(quick(1)).await;
    for node in cloud.sandbox().nodes() {
        cloud.sandbox().with(|world, _| world.remove_node(node));
    }
    for args in [
        &["guard", "--once"][..],
        &["-q", "guard", "--once"],
        &["guard", "stand-down"],
    ] {
        let ran = cloud.run(args).await;
        ran.assert_code(1)
            .assert_says(&["Ironic shows no node at all", "system scope"]);
    }
}
