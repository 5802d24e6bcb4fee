//! This process among others, as Linux tells.

use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::core::Process;

/// This process.
pub fn this() -> Process {
    let read = |path: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.trim().to_owned()
    };
    let namespace = fs::read_link("/proc/self/ns/pid").map(|link| link.display().to_string());
    let pid = std::process::id();
    Process {
        host: read("/proc/sys/kernel/hostname"),
        boot: read("/proc/sys/kernel/random/boot_id"),
        namespace: namespace.unwrap_or_default(),
        pid,
        started: started(pid).unwrap_or_default(),
    }
}

/// Whether another process has ended. That can only be told of those that count with us, on the same start of the same machine;
/// all others may be at work as long as their leases run.
pub(crate) fn is_surely_gone(other: &Process, us: &Process) -> bool {
    let counts_with_us = !us.boot.is_empty()
        && !us.namespace.is_empty()
        && (&us.host, &us.boot, &us.namespace) == (&other.host, &other.boot, &other.namespace);
    let Some(pid) = i32::try_from(other.pid).ok().and_then(Pid::from_raw) else {
        return false;
    };
    if !counts_with_us || other == us {
        return false;
    }
    match test_kill_process(pid) {
        Err(Errno::SRCH) => true,
        // It has ended, and its parent has not asked for that yet; or its number was given to another one since.
        _ => is_zombie(other.pid) || started(other.pid).is_some_and(|started| started != other.started),
    }
}

/// When a process started, in ticks since the machine's start: the 22nd field.
fn started(pid: u32) -> Option<u64> {
    fields(pid)?.split_whitespace().nth(19)?.parse().ok()
}

/// Whether a process has ended, by its state: the third field.
fn is_zombie(pid: u32) -> bool {
    fields(pid).is_some_and(|fields| fields.trim_start().starts_with(['Z', 'X']))
}

/// What Linux tells of a process, from the third field on: after a name that may hold anything.
fn fields(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    Some(fields.to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{Process, is_surely_gone, is_zombie, started, this};

    #[test]
    fn this_process_is_known_and_not_gone() {
        let us = this();
        assert_eq!(us.pid, std::process::id());
        assert!(
            us.started > 0 && !us.boot.is_empty() && us.namespace.starts_with("pid:"),
            "{us:?}"
        );
        assert_eq!(us, this());
        assert!(!is_surely_gone(&us, &us));
    }

    #[test]
    fn only_what_counts_with_us_can_be_gone() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let us = this();
        let at_work = Process {
            pid: child.id(),
            started: started(child.id()).unwrap(),
            ..us.clone()
        };
        assert!(!is_surely_gone(&at_work, &us), "it runs");
        let before = Process {
            started: at_work.started - 1,
            ..at_work.clone()
        };
        assert!(is_surely_gone(&before, &us), "its number was given again");
        child.kill().unwrap();
        while !is_zombie(at_work.pid) {
            std::thread::yield_now();
        }
        assert!(
            is_surely_gone(&at_work, &us),
            "it has ended, and nobody has asked for that"
        );
        child.wait().unwrap();
        assert!(is_surely_gone(&at_work, &us), "it has ended");
        for elsewhere in [
            Process {
                boot: "other".to_owned(),
                ..at_work.clone()
            },
            Process {
                host: "other".to_owned(),
                ..at_work.clone()
            },
            Process {
                namespace: "pid:[1]".to_owned(),
                ..at_work.clone()
            },
            Process {
                pid: u32::MAX,
                ..at_work.clone()
            },
        ] {
            assert!(!is_surely_gone(&elsewhere, &us), "{elsewhere:?}");
        }
    }
}
