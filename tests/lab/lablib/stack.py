"""Bringing a lab up and down."""

import json
import os
import shutil
import tempfile
import time
from pathlib import Path

from . import config, databases, debian, identity, install, mariadb, nova, rabbitmq, services
from .processes import Processes, start_time
from .say import say


def up(directory=None, cleaning=4, clean_limit=None, while_pid=None, rule=None, interval=nova.INTERVAL,
       proxied=False, notify=False):
    """Start a lab, or what is missing of it; return the path of lab.json.

    With a rule for `reserved` there is a Nova in it.
    """
    made = prepare(rule is not None, notify)
    directory = Path(directory or tempfile.mkdtemp(prefix='unprovision-lab-')).absolute()
    directory.mkdir(parents=True, exist_ok=True)
    # Tests that share a lab may all ask for it; the first one starts it.
    with install.locked(directory / 'lock'):
        broker = notify or rule is not None
        ports = services.choose_ports(directory, nova=rule is not None, broker=broker)
        conf = config.Configuration(directory, made, ports, cleaning, clean_limit,
                                    nova=rule is not None, proxied=proxied, notify=notify)
        processes = Processes(directory)
        try:
            facts = start(conf, processes)
            if while_pid is not None:
                processes.start('watch', services.watch_command(directory, while_pid), dict(os.environ))
            path = write_description(conf, processes, facts)
            if rule is not None and not proxied:
                nova.compute(load(directory), rule, interval)
            return path
        except BaseException:
            processes.stop(grace=0)
            raise


def prepare(with_nova, with_broker=False):
    """Make all that is made once per installation; return the installation."""
    made = install.ensure()
    databases.prepare(made)
    if with_nova or with_broker:
        with install.locked(made.base / 'lock'):
            debian.ensure(made)
    if with_nova:
        mariadb.prepare(made)
    return made


def start(conf, processes):
    """Start the services and wait until they work; return facts for lab.json."""
    conf.write_service_files()
    facts = databases.provide(conf)
    say(f'starting in {conf.directory}')
    if conf.nova or conf.notify:
        rabbitmq.start(conf, processes)
        facts = {**facts, 'amqp_url': conf.amqp(vhost='%2f')}
    if conf.nova:
        nova.begin(conf, processes)
    for name in services.NAMES:
        services.start(name, conf, processes)
    for name in services.CORE_SIGNS:
        services.wait_for_answer(name, conf, processes)
    services.wait_until_usable(conf, processes)
    if conf.notify:
        rabbitmq.wait(conf, processes)
    return nova.start(conf, processes, facts) if conf.nova else facts


def down(directory, wipe=False, only=None):
    """Stop what the lab has started; nothing to stop is fine."""
    directory = Path(directory).absolute()
    # What is wiped need not end in good order.
    Processes(directory).stop(names=only, grace=0 if wipe else 10)
    if wipe:
        shutil.rmtree(directory, ignore_errors=True)


def load(directory):
    """Return what lab.json says."""
    try:
        return json.loads((Path(directory) / 'lab.json').read_text())
    except FileNotFoundError:
        raise SystemExit(f'lab: no lab.json in {directory}: not started?') from None


def write_description(conf, processes, facts):
    """Write clouds.yaml and lab.json."""
    clouds = conf.directory / 'clouds.yaml'
    clouds.write_text(identity.clouds(conf, facts))
    path = conf.directory / 'lab.json'
    new = path.with_suffix('.new')
    new.write_text(json.dumps({
        'dir': str(conf.directory),
        'keystone_url': conf.url('keystone'),
        'ironic_url': conf.url('ironic-api'),
        'placement_url': conf.url('placement'),
        'region': config.REGION,
        'clouds_yaml': str(clouds),
        'cloud': 'lab', 'system_cloud': 'lab-system',
        **facts,
        'venv': str(conf.install.venv),
        'cleaning_seconds': conf.cleaning,
        'processes': processes.read(),
    }, indent=1) + '\n')
    new.rename(path)
    return path


def watch(directory, pid, started):
    """Wait for the end of a process, then stop and wipe the lab."""
    while start_time(pid) == started:
        time.sleep(0.5)
    down(directory, wipe=True)
