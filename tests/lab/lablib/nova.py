"""Nova with its ironic driver: its start, and its rule for `reserved`."""

import datetime

from . import config, identity, install, mariadb, nova_config, rabbitmq, services
from .api import Api
from .processes import Processes
from .say import say

# One of them for all nodes.
COMPUTE = 'nova-compute'
BEHIND_THE_API = ('nova-conductor', 'nova-scheduler')
NAMES = ('mariadb', 'stub', 'nova-api', *BEHIND_THE_API, COMPUTE)
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
    processes.start('nova-api', [conf.install.bin / 'gunicorn'], conf.install.environment(
        GUNICORN_CMD_ARGS=f'-c {conf.gunicorn_conf("nova-api")}',
        OS_NOVA_CONFIG_DIR=str(conf.nova_conf.parent)))
    identity.point_to_nova(conf)
    services.wait_for_answer('nova-api', conf, processes)
    return {**facts, 'nova_url': conf.url('nova-api'), 'nova': {
        'host': conf.nova_host, 'versions': mariadb.Daemons(conf.install).versions(),
        'proxied': conf.proxied and {
            'ironic': conf.ports['ironic-proxy'], 'placement': conf.ports['placement-proxy']}}}


def compute(lab, rule, interval=INTERVAL):
    """Start nova-compute, or start it anew, with this rule and so many seconds between passes.

    What it needs of Nova is started too. All of it looks for Placement when it starts.
    """
    conf = config.Configuration(lab['dir'], install.Install(), {})
    settings = conf.nova_conf.parent / 'compute.conf'
    # the first pass at once, not up to a minute later
    settings.write_text(f'[DEFAULT]\nupdate_resources_interval = {interval}\n'
                        'periodic_fuzzy_delay = 0\n')
    processes = Processes(lab['dir'])
    for name in BEHIND_THE_API:
        processes.start(name, [conf.install.bin / name, '--config-file', conf.nova_conf,
                               '--log-file', conf.log(name)], conf.install.environment())
    # in good order it takes half a minute, and it has nothing to lose
    processes.stop([COMPUTE], grace=1)
    began = datetime.datetime.now(datetime.UTC).isoformat()
    program, *arguments = RULES[rule]
    processes.start(COMPUTE, [
        conf.install.venv / program, *arguments, '--config-file', conf.nova_conf,
        '--config-file', settings, '--log-file', conf.log(COMPUTE)], conf.install.environment())
    api = Api.of(lab)
    services.wait_for(COMPUTE, conf, processes, 'Nova has not heard of it', lambda: any(
        service['state'] == 'up' and (service['updated_at'] or '') > began
        for service in api.nova('GET', f'/os-services?binary={COMPUTE}')['services']))
    say(f'{COMPUTE} runs, with the {rule} rule and {interval} s between passes')
