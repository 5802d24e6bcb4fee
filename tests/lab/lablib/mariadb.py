"""MariaDB for Nova: its tables are made once per installation, and copied by each lab."""

import os
import shutil
import subprocess
import textwrap
import time

from . import config, databases, install, nova_config, services
from .debian import Daemons
from .processes import Processes
from .say import say

# Part of the name of the stored data. Raise it when the way they are made changes.
VERSION = 1
DATABASES = ('nova_api', 'nova', 'nova_cell0')


# Nova's data are made anew with each lab: quick rather than safe.
QUICK = '''\
skip-networking
max-connections = 300
innodb-buffer-pool-size = 96M
innodb-log-file-size = 16M
innodb-flush-log-at-trx-commit = 0
innodb-doublewrite = OFF
'''


def configure(conf, own=QUICK):
    """Write the configuration file: private and small, and the rest as its user wants it."""
    if len(str(conf.mariadb_socket)) > 100:
        raise SystemExit(f'lab: {conf.mariadb_socket} is too long a path for a socket')
    daemons = Daemons(conf.install)
    as_root = 'user = root' if os.geteuid() == 0 else ''
    conf.write(conf.mariadb_conf, textwrap.dedent(f'''\
        [mariadbd]
        {as_root}
        basedir = {daemons.usr}
        datadir = {conf.mariadb_data}
        plugin-dir = {daemons.usr}/lib/mysql/plugin
        lc-messages-dir = {daemons.usr}/share/mysql
        socket = {conf.mariadb_socket}
        pid-file = {conf.directory}/run/mariadb.pid
        tmpdir = {conf.directory}/run
        skip-name-resolve
        skip-log-bin
        performance-schema = OFF
        ''') + own)


def make_data(conf):
    """Make the data of an empty server that is configured."""
    daemons = Daemons(conf.install)
    databases.run(conf, [[
        daemons.mariadb_install_db, f'--defaults-file={conf.mariadb_conf}',
        f'--basedir={daemons.usr}', '--auth-root-authentication-method=normal',
        # whether the host knows its own name does not matter
        '--skip-test-db', '--force']], daemons.environment())


def start(conf, processes):
    """Start the daemon, which is configured, unless it runs."""
    daemons = Daemons(conf.install)
    processes.start('mariadb', [daemons.mariadbd, f'--defaults-file={conf.mariadb_conf}'],
                    daemons.environment(HOME=str(conf.directory)))


def query(conf, statements):
    """Run statements as root."""
    daemons = Daemons(conf.install)
    return subprocess.run(
        [daemons.mariadb, '--no-defaults', '-uroot', f'--socket={conf.mariadb_socket}', '-Nse',
         statements], env=daemons.environment(), text=True, capture_output=True)


def wait(conf, processes):
    """Wait until statements are answered."""
    services.wait_for('mariadb', conf, processes, 'no answer',
                      lambda: query(conf, 'SELECT 1').returncode == 0)


def prepare(made):
    """Make the data of an installation unless they are there; return their directory."""
    stored = made.base / f'mariadb-{VERSION}'
    with install.locked(made.base / 'lock'):
        if not stored.exists():
            make(made, stored)
    return stored


def provide(conf):
    """Give a lab its data."""
    stored = prepare(conf.install)
    if not conf.mariadb_data.exists():
        new = conf.mariadb_data.with_suffix('.new')
        shutil.rmtree(new, ignore_errors=True)
        shutil.copytree(stored, new)
        new.rename(conf.mariadb_data)


def make(made, stored):
    """Make Nova's databases, with their tables and cells."""
    started = time.monotonic()
    work = made.base / 'mariadb.new'
    Processes(work).stop(grace=0)  # left over from an attempt that was killed
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    conf = config.Configuration(work, made, services.choose_ports(work, nova=True, broker=True), nova=True)
    conf.write_service_files()
    nova_config.write(conf)
    configure(conf)
    make_data(conf)
    processes = Processes(work)
    try:
        start(conf, processes)
        wait(conf, processes)
        created = query(conf, ''.join(f'CREATE DATABASE {name} CHARACTER SET utf8mb3;'
                                      for name in DATABASES))
        if created.returncode:
            raise SystemExit(f'lab: MariaDB: {created.stderr}')
        manage = [made.bin / 'nova-manage', '--config-file', conf.nova_conf]
        # In templates: each lab has a socket and ports of its own.
        base = '{scheme}://{username}@{hostname}/'
        databases.run(conf, [
            [*manage, 'api_db', 'sync'],
            [*manage, 'cell_v2', 'map_cell0', '--database_connection',
             base + 'nova_cell0?{query}'],
            [*manage, 'db', 'sync'],
            [*manage, 'cell_v2', 'create_cell', '--name', 'cell1', '--database_connection',
             base + 'nova?{query}', '--transport-url',
             '{scheme}://{username}:{password}@{hostname}:{port}/']])
    finally:
        processes.stop(grace=60)
    conf.mariadb_data.rename(stored)
    shutil.rmtree(work)
    say(f"Nova's databases made in {time.monotonic() - started:.0f} s")
