"""Nova with its ironic driver: its start, and its rule for `reserved`."""

import datetime

from . import config, identity, install, mariadb, nova_config, rabbitmq, services
from .api import Api
from .processes import Processes
from .say import say

# One of them for all nodes.
COMPUTE = 'nova-compute'
# A second one, which takes its share of those without a server.
SECOND = 'nova-compute-2'
BEHIND_THE_API = ('nova-conductor', 'nova-scheduler')
NAMES = ('mariadb', 'stub', 'nova-api', *BEHIND_THE_API, COMPUTE, SECOND)
# How nova-compute is started, by its rule for `reserved`.
RULES = {
    'current': ['bin/nova-compute'],
    'old': ['bin/python', '-m', 'unprovision_lab_nova'],
}
INTERVAL = 60


def begin(conf, processes):
    """Start what Nova needs besides the other services. They start meanwhile."""
    nova_config.write(conf)
    mariadb.provide(conf)
    mariadb.configure(conf)
    mariadb.start(conf, processes)
    processes.start('stub', [conf.install.bin / 'python', install.SOURCE / 'lablib' / 'stub.py',
                             conf.ports['stub']], conf.install.environment())


def start(conf, processes, facts):
    """Start Nova's API; return facts for lab.json."""
    mariadb.wait(conf, processes)
    rabbitmq.wait(conf, processes)
    say('MariaDB and RabbitMQ answer')
    start_api(conf, processes)
    identity.point_to_nova(conf)
    services.wait_for_answer('nova-api', conf, processes)
    return {**facts, 'nova_url': conf.url('nova-api'), 'nova': {
        'host': conf.nova_host, 'versions': mariadb.Daemons(conf.install).versions(),
        'proxied': conf.proxied and {
            'ironic': conf.ports['ironic-proxy'], 'placement': conf.ports['placement-proxy']}}}


def start_api(conf, processes, reclaim=0):
    """Start Nova's API."""
    processes.start('nova-api', [conf.install.bin / 'gunicorn'], conf.install.environment(
        GUNICORN_CMD_ARGS=f'-c {conf.gunicorn_conf("nova-api")}',
        OS_NOVA_CONFIG_DIR=str(conf.nova_conf.parent),
        OS_DEFAULT__RECLAIM_INSTANCE_INTERVAL=str(reclaim)))


def compute(lab, rule, interval=INTERVAL, reclaim=0, second=False):
    """Start nova-compute, or start it anew, with this rule and so many seconds between passes.

    What it needs of Nova is started too. All of it looks for Placement when it starts. With
    `reclaim`, deletes are deferred by so many seconds.
    """
    conf = config.Configuration(lab['dir'], install.Install(), {})
    processes = Processes(lab['dir'])
    for name in BEHIND_THE_API:
        processes.start(name, [conf.install.bin / name, '--config-file', conf.nova_conf,
                               '--log-file', conf.log(name)], conf.install.environment())
    defer(lab, conf, processes, reclaim)
    # in good order it takes half a minute, and it has nothing to lose
    processes.stop([COMPUTE, SECOND], grace=1)
    began = datetime.datetime.now(datetime.UTC).isoformat()
    hosts = {COMPUTE: conf.nova_host, **({SECOND: f'{conf.nova_host}-2'} if second else {})}
    for name, host in hosts.items():
        start_compute(conf, processes, name, f'''\
[DEFAULT]
host = {host}
update_resources_interval = {interval}
# the first pass at once, not up to a minute later
periodic_fuzzy_delay = 0
reclaim_instance_interval = {reclaim}
''', rule)
    api = Api.of(lab)
    services.wait_for(COMPUTE, conf, processes, 'Nova has not heard of it', lambda: set(
        hosts.values()) <= {service['host'] for service in api.nova(
            'GET', f'/os-services?binary={COMPUTE}')['services']
            if service['state'] == 'up' and (service['updated_at'] or '') > began})
    say(f'{" and ".join(hosts)} run, with the {rule} rule and {interval} s between passes')


def start_compute(conf, processes, name, settings, rule):
    """Start a nova-compute with settings of its own."""
    own = conf.nova_conf.parent / f'{name}.conf'
    own.write_text(settings)
    program, *arguments = RULES[rule]
    processes.start(name, [
        conf.install.venv / program, *arguments, '--config-file', conf.nova_conf,
        '--config-file', own, '--log-file', conf.log(name)], conf.install.environment())


def defer(lab, conf, processes, reclaim):
    """Let Nova's API defer deletes, or not: it is started anew where that changes."""
    said = conf.nova_conf.parent / 'reclaim'
    if reclaim == int(said.read_text() if said.exists() else 0):
        return
    processes.stop(['nova-api'])
    start_api(conf, processes, reclaim)
    services.wait_for('nova-api', conf, processes, 'no answer', lambda: Api.of(lab).nova('GET', '/flavors'))
    said.write_text(str(reclaim))
