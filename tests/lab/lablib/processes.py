"""Starting, recognising and stopping the lab's processes."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path


def stat_fields(pid):
    """Return the fields of /proc/PID/stat from the state (field 3) on, or None."""
    try:
        text = Path(f'/proc/{pid}/stat').read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # the name, in parentheses, may hold spaces
    return text.rpartition(')')[2].split()


def start_time(pid):
    """Return when a process started (clock ticks since boot), None if it is gone or a zombie."""
    fields = stat_fields(pid)
    return int(fields[19]) if fields and fields[0] != 'Z' else None


def alive(entry):
    """Tell whether a recorded process still runs; a recycled pid has another start time."""
    return start_time(entry['pid']) == entry['start']


def members(entry):
    """Return the pids that are left of a recorded process and its children.

    Each process leads a session of its own. Its number is not given to another process as long
    as one member of the session is left; so if somebody else has it, no member is left.
    """
    leader = start_time(entry['pid'])
    if leader is not None and leader != entry['start']:
        return []
    return [int(p.name) for p in Path('/proc').iterdir() if p.name.isdigit()
            and (fields := stat_fields(p.name)) and fields[0] != 'Z'
            and int(fields[3]) == entry['pid']]


class Processes:
    """The record of what a lab has started, in run/processes.json."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.path = self.directory / 'run' / 'processes.json'

    def read(self):
        """Return the recorded processes: {name: {pid, start}}."""
        try:
            return json.loads(self.path.read_text())
        except FileNotFoundError:
            return {}

    def write(self, entries):
        """Store the record in one step, so that nobody reads half of it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix('.new')
        new.write_text(json.dumps(entries, indent=1))
        new.rename(self.path)

    def start(self, name, command, env):
        """Start a process in a session of its own and record it; nothing if it runs."""
        entries = self.read()
        if name in entries and alive(entries[name]):
            return
        with open(self.directory / 'log' / f'{name}.out', 'a') as out:
            process = subprocess.Popen([str(word) for word in command], env=env, stdout=out,
                                       stderr=out, stdin=subprocess.DEVNULL, cwd=self.directory,
                                       start_new_session=True)
        entries[name] = {'pid': process.pid, 'start': start_time(process.pid)}
        self.write(entries)

    def stop(self, names=None, grace=10):
        """Stop the recorded processes (or those named): TERM, after `grace` seconds KILL."""
        entries = self.read()
        chosen = {name: entry for name, entry in entries.items()
                  if (names is None or name in names) and entry['pid'] != os.getpid()}
        deadline = time.monotonic() + grace
        for entry in chosen.values():
            if alive(entry) and grace:
                send(entry['pid'], signal.SIGTERM)
        while time.monotonic() < deadline and any(members(e) for e in chosen.values()):
            time.sleep(0.05)
        while left := [pid for entry in chosen.values() for pid in members(entry)]:
            for pid in left:
                send(pid, signal.SIGKILL)
            time.sleep(0.02)
        if entries:
            self.write({name: e for name, e in entries.items() if name not in chosen})


def send(pid, number):
    """Send a signal; a process that has just ended is fine."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
