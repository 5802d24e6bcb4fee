"""PostgreSQL and MariaDB for the tests of the journals: private, on loopback, safe rather than quick."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from . import config, databases, debian, install, mariadb, services
from .debian import Daemons
from .processes import Processes

USER, PASSWORD, DATABASE = 'unprovision', 'journal-secret', 'journal'


def up(directory, while_pid=None):
    """Start both servers; return the path of journals.json, which holds the URLs of an administrator."""
    made = install.Install()
    made.base.mkdir(parents=True, exist_ok=True)
    with install.locked(made.base / 'lock'):
        debian.ensure(made)
    directory = Path(directory).absolute()
    for name in ('log', 'run', 'db'):
        (directory / name).mkdir(parents=True, exist_ok=True)
    ports = services.free_ports(('postgres', 'mariadb'))
    conf, processes = config.Configuration(directory, made, ports), Processes(directory)
    try:
        urls = {'postgres': start_postgres(conf, processes), 'mariadb': start_mariadb(conf, processes)}
        if while_pid is not None:
            processes.start('watch', services.watch_command(directory, while_pid), dict(os.environ))
    except BaseException:
        processes.stop(grace=0)
        raise
    path = directory / 'journals.json'
    path.write_text(json.dumps({**urls, 'processes': processes.read()}, indent=1) + '\n')
    return path


def start_postgres(conf, processes):
    """Start PostgreSQL and return its URL."""
    daemons, port = Daemons(conf.install), conf.ports['postgres']
    data, binaries = conf.directory / 'db' / 'postgres', daemons.postgres
    env = daemons.environment(HOME=str(conf.directory), PGPASSWORD=PASSWORD)
    secret = conf.directory / 'run' / 'postgres-password'
    secret.write_text(PASSWORD)
    databases.run(conf, [not_root([
        binaries / 'initdb', '-D', data, '-U', USER, '--auth=scram-sha-256', f'--pwfile={secret}',
        '--no-sync', '--encoding=UTF8', '--locale=C.UTF-8'])], env)
    processes.start('postgres', not_root([
        binaries / 'postgres', '-D', data, '-p', port, '-c', f'listen_addresses={config.HOST}',
        '-c', f'unix_socket_directories={conf.directory}/run', '-c', 'shared_buffers=32MB',
        '-c', 'max_connections=200']), env)
    psql = [str(word) for word in (
        binaries / 'psql', '-h', config.HOST, '-p', port, '-U', USER, '-d', 'postgres', '-Atc')]
    services.wait_for('postgres', conf, processes, 'no answer', lambda: subprocess.run(
        [*psql, 'SELECT 1'], env=env, capture_output=True).returncode == 0)
    databases.run(conf, [[Path(psql[0]), *psql[1:], f'CREATE DATABASE {DATABASE}']], env)
    return f'postgres://{USER}:{PASSWORD}@{config.HOST}:{port}/{DATABASE}'


def start_mariadb(conf, processes):
    """Start MariaDB and return its URL."""
    port = conf.ports['mariadb']
    mariadb.configure(conf, f'''\
bind-address = {config.HOST}
port = {port}
max-connections = 200
innodb-buffer-pool-size = 64M
innodb-log-file-size = 32M
''')
    mariadb.make_data(conf)
    mariadb.start(conf, processes)
    mariadb.wait(conf, processes)
    made = mariadb.query(conf, f"CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON *.* TO {USER}@'%' "
                               f'WITH GRANT OPTION; CREATE DATABASE {DATABASE}')
    if made.returncode:
        raise SystemExit(f'lab: MariaDB: {made.stderr}')
    return f'mysql://{USER}:{PASSWORD}@{config.HOST}:{port}/{DATABASE}'


def not_root(command):
    """Return a command that does not see itself as root, which PostgreSQL refuses to be."""
    if os.geteuid():
        return command
    unshare = shutil.which('unshare')
    if not unshare:
        raise SystemExit('lab: PostgreSQL does not run as root, and there is no `unshare` (util-linux) here')
    return [Path(unshare), '--user', '--map-user=1000', *command]
