"""The services: their ports, how they are started, and when they are ready."""

import json
import random
import socket
import sys
import time
import urllib.error

from . import config, install
from .api import Api, Refused, send
from .processes import Processes, alive, start_time
from .say import say

# The slowest to start come first.
NAMES = ('ironic-conductor', 'ironic-api', 'keystone', 'placement')
# What is asked of each for a sign of life; the conductor is seen through the API.
SIGN_OF_LIFE = {'ironic-api': '/v1', 'keystone': '', 'placement': '/', 'nova-api': '/'}
CORE_SIGNS = ('ironic-api', 'keystone', 'placement')
# The ports of a lab with a broker, of one with Nova besides, and the process that listens there.
BROKER_PORTS = {'rabbitmq': 'rabbitmq', 'rabbitmq-cluster': 'rabbitmq', 'epmd': 'epmd'}
NOVA_PORTS = {'stub': 'stub', 'nova-api': 'nova-api',
              **{proxy: None for proxy in config.PROXIES.values()}}
START_TIMEOUT = 180
# Below the range from which Linux gives ports to outgoing connections, so that none of those
# takes a port between our look and the service's start.
PORT_RANGE = range(20000, 32000)


def choose_ports(directory, nova=False, broker=False):
    """Return the ports of the services: those used before, unless somebody else has them now."""
    owners = dict(zip(NAMES, NAMES)) | (NOVA_PORTS if nova else {}) | (BROKER_PORTS if broker else {})
    known = directory / 'ports.json'
    running = {name for name, entry in Processes(directory).read().items() if alive(entry)}
    ports = json.loads(known.read_text()) if known.exists() else {}
    for name, owner in owners.items():
        # what listens on a proxy's port is the user's, who knows it by its number
        ours = owner in running or owner is None
        if name not in ports or not (ours or is_free(ports[name])):
            ports[name] = next(port for port in random.sample(PORT_RANGE, len(PORT_RANGE))
                               if port not in ports.values() and is_free(port))
    known.write_text(json.dumps(ports))
    return ports


def free_ports(names):
    """Return a free port for each name."""
    chosen = random.sample([port for port in random.sample(PORT_RANGE, 200) if is_free(port)], len(names))
    return dict(zip(names, chosen))


def is_free(port):
    """Tell whether a service could listen on the port."""
    with socket.socket() as probe:
        # as the services do: a connection of before that lingers is no obstacle
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((config.HOST, port))
        except OSError:
            return False
    return True


def start(name, conf, processes):
    """Start a service unless it runs."""
    made = conf.install
    if name.startswith('ironic'):
        processes.start(name, [made.bin / name, '--config-file', conf.ironic_conf,
                               '--log-file', conf.log(name)], made.environment())
    else:
        processes.start(name, [made.bin / 'gunicorn'], made.environment(
            GUNICORN_CMD_ARGS=f'-c {conf.gunicorn_conf(name)}',
            OS_KEYSTONE_CONFIG_FILES=str(conf.keystone_conf),
            OS_PLACEMENT_CONFIG_DIR=str(conf.placement_conf.parent)))


def wait_for_answer(name, conf, processes):
    """Wait until a service answers a request without a token."""
    wait_for(name, conf, processes, 'no answer',
             lambda: send('GET', conf.url(name) + SIGN_OF_LIFE[name], {}, timeout=5))
    say(f'{name} answers')


def wait_until_usable(conf, processes):
    """Wait until tokens are accepted and a conductor serves the lab's hardware type."""
    api = Api(conf.url('keystone'), conf.url('ironic-api'), conf.url('placement'),
              config.ADMIN, config.ADMIN_PASSWORD)
    wait_for('placement', conf, processes, 'our token is not taken',
             lambda: api.placement('GET', '/resource_classes'))
    wait_for('ironic-conductor', conf, processes, 'no conductor for fake-hardware',
             lambda: api.ironic('GET', '/drivers')['drivers'])
    say('ready')


def wait_for(name, conf, processes, complaint, probe):
    """Call `probe` until it neither raises nor returns a false value."""
    deadline = time.monotonic() + START_TIMEOUT
    while True:
        try:
            if probe():
                return
            problem = 'not ready'
        except (OSError, Refused, urllib.error.URLError) as error:
            problem = str(error)
        if not alive(processes.read()[name]):
            raise SystemExit(f'lab: {name} has ended, see {conf.log(name)}, {name}.out beside it')
        if time.monotonic() > deadline:
            raise SystemExit(f'lab: {name}: {complaint} after {START_TIMEOUT} s: {problem}')
        time.sleep(0.1)


def watch_command(directory, pid):
    """Return the command of the process that ends the lab with its user."""
    started = start_time(pid)
    if started is None:
        raise SystemExit(f'lab: no process {pid} to live as long as')
    return [sys.executable, install.SOURCE / 'lab', 'watch', directory, pid, started]
