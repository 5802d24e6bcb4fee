"""RabbitMQ for Nova and for Ironic's notifications: a node of its own, with its own name server, cookie and ports."""

import json
import os
import socket
import tempfile
import textwrap
from pathlib import Path

from . import config, debian, install, services
from .debian import Daemons
from .processes import Processes


NAMES = ('epmd', 'rabbitmq')


def alone(directory=None, while_pid=None):
    """Start a broker and nothing else; return the path of broker.json. No virtualenv is needed."""
    made = install.Install()
    made.base.mkdir(parents=True, exist_ok=True)
    with install.locked(made.base / 'lock'):
        debian.ensure(made)
    directory = Path(directory or tempfile.mkdtemp(prefix='unprovision-broker-')).absolute()
    for name in ('db', 'log', 'run'):
        (directory / name).mkdir(parents=True, exist_ok=True)
    with install.locked(directory / 'lock'):
        ports = services.choose_ports(directory, broker=True)
        conf, processes = config.Configuration(directory, made, ports), Processes(directory)
        try:
            start(conf, processes)
            if while_pid is not None:
                processes.start('watch', services.watch_command(directory, while_pid), dict(os.environ))
            wait(conf, processes)
        except BaseException:
            processes.stop(grace=0)
            raise
    path = directory / 'broker.json'
    path.write_text(json.dumps({'dir': str(directory), 'amqp_url': conf.amqp(vhost='%2f')}) + '\n')
    return path


def configure(conf):
    """Write the configuration files."""
    etc = conf.rabbitmq_etc
    conf.write(etc / 'rabbitmq.conf', textwrap.dedent('''\
        log.file.level = warning
        vm_memory_high_watermark.absolute = 512MB
        disk_free_limit.absolute = 50MB
        collect_statistics_interval = 60000
        '''))
    conf.write(etc / 'enabled_plugins', '[].\n')
    # Empty, so that the system's is not read.
    conf.write(etc / 'rabbitmq-env.conf', '')


def environment(conf):
    """Return the environment in which both programs run. The home directory keeps the cookie."""
    etc, home = conf.rabbitmq_etc, conf.directory / 'run' / 'rabbitmq'
    home.mkdir(parents=True, exist_ok=True)
    return Daemons(conf.install).environment(
        HOME=str(home),
        ERL_EPMD_PORT=str(conf.ports['epmd']), ERL_EPMD_ADDRESS=config.HOST,
        ERL_CRASH_DUMP_SECONDS='0',
        RABBITMQ_NODENAME='unprovision@localhost', RABBITMQ_NODE_IP_ADDRESS=config.HOST,
        RABBITMQ_NODE_PORT=str(conf.ports['rabbitmq']),
        RABBITMQ_DIST_PORT=str(conf.ports['rabbitmq-cluster']),
        RABBITMQ_MNESIA_BASE=str(conf.directory / 'db' / 'rabbitmq'),
        RABBITMQ_LOG_BASE=str(conf.directory / 'log'),
        RABBITMQ_CONFIG_FILE=str(etc / 'rabbitmq'),
        RABBITMQ_CONF_ENV_FILE=str(etc / 'rabbitmq-env.conf'),
        RABBITMQ_ENABLED_PLUGINS_FILE=str(etc / 'enabled_plugins'),
        # one scheduler that sleeps when it has nothing to do: the processors are for the tests
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none '
                                            '-kernel inet_dist_use_interface {127,0,0,1}')


def start(conf, processes):
    """Start the name server, then the broker, unless they run."""
    configure(conf)
    daemons, env = Daemons(conf.install), environment(conf)
    # Started by the broker, it would stay when the lab goes.
    processes.start('epmd', [daemons.epmd], env)
    services.wait_for('epmd', conf, processes, 'no answer', lambda: connects(conf.ports['epmd']))
    processes.start('rabbitmq', [daemons.rabbitmq_server], env)


def wait(conf, processes):
    """Wait until the broker takes connections."""
    services.wait_for('rabbitmq', conf, processes, 'no answer',
                      lambda: connects(conf.ports['rabbitmq']))


def connects(port):
    """Tell whether somebody listens on the port."""
    with socket.socket() as probe:
        return probe.connect_ex((config.HOST, port)) == 0
