"""PostgreSQL and MariaDB for the tests of the journals: private, on loopback, safe rather than quick."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from . import config, debian, install, services
from .processes import Processes, alive, start_time
from .say import say

USER, PASSWORD, DATABASE = 'unprovision', 'journal-secret', 'journal'
START_TIMEOUT = 120


def up(directory, while_pid=None):
    """Start both servers; return the path of journals.json, which holds the URLs of an administrator."""
    made = install.Install()
    made.base.mkdir(parents=True, exist_ok=True)
    with install.locked(made.base / 'lock'):
        daemons = debian.ensure(made)
    directory = Path(directory).absolute()
    for name in ('log', 'run', 'db'):
        (directory / name).mkdir(parents=True, exist_ok=True)
    processes = Processes(directory)
    try:
        ports = services.free_ports(('postgres', 'mariadb'))
        urls = {'postgres': start_postgres(directory, daemons, processes, ports['postgres']),
                'mariadb': start_mariadb(directory, daemons, processes, ports['mariadb'])}
        if while_pid is not None:
            watch = [sys.executable, install.SOURCE / 'lab', 'watch', directory, while_pid,
                     start_time(while_pid)]
            processes.start('watch', watch, dict(os.environ))
    except BaseException:
        processes.stop(grace=0)
        raise
    path = directory / 'journals.json'
    path.write_text(json.dumps({**urls, 'processes': processes.read()}, indent=1) + '\n')
    return path


def start_postgres(directory, daemons, processes, port):
    """Start PostgreSQL and return its URL."""
    data, binaries = directory / 'db' / 'postgres', daemons.postgres
    env = daemons.environment(HOME=str(directory), PGPASSWORD=PASSWORD)
    secret = directory / 'run' / 'postgres-password'
    secret.write_text(PASSWORD)
    run(not_root([binaries / 'initdb', '-D', data, '-U', USER, '--auth=scram-sha-256', f'--pwfile={secret}',
                  '--no-sync', '--encoding=UTF8', '--locale=C.UTF-8']), env, directory / 'log' / 'initdb.out')
    processes.start('postgres', not_root([
        binaries / 'postgres', '-D', data, '-p', port, '-c', f'listen_addresses={config.HOST}',
        '-c', f'unix_socket_directories={directory}/run', '-c', 'shared_buffers=32MB',
        '-c', 'max_connections=200']), env)
    psql = [binaries / 'psql', '-h', config.HOST, '-p', port, '-U', USER, '-d', 'postgres', '-Atc']
    wait('postgres', processes, directory, [*psql, 'SELECT 1'], env)
    run([*psql, f'CREATE DATABASE {DATABASE}'], env, directory / 'log' / 'psql.out')
    return f'postgres://{USER}:{PASSWORD}@{config.HOST}:{port}/{DATABASE}'


def start_mariadb(directory, daemons, processes, port):
    """Start MariaDB and return its URL."""
    data, socket = directory / 'db' / 'mariadb', directory / 'run' / 'mariadb.sock'
    env, conf = daemons.environment(HOME=str(directory)), directory / 'mariadb.cnf'
    as_root = 'user = root\n' if os.geteuid() == 0 else ''
    conf.write_text(f'''[mariadbd]
{as_root}basedir = {daemons.usr}
datadir = {data}
plugin-dir = {daemons.usr}/lib/mysql/plugin
lc-messages-dir = {daemons.usr}/share/mysql
socket = {socket}
pid-file = {directory}/run/mariadb.pid
tmpdir = {directory}/run
bind-address = {config.HOST}
port = {port}
skip-name-resolve
skip-log-bin
performance-schema = OFF
max-connections = 200
innodb-buffer-pool-size = 64M
innodb-log-file-size = 32M
''')
    run([daemons.mariadb_install_db, f'--defaults-file={conf}', f'--basedir={daemons.usr}',
         '--auth-root-authentication-method=normal', '--skip-test-db', '--force'],
        env, directory / 'log' / 'mariadb-install-db.out')
    processes.start('mariadb', [daemons.mariadbd, f'--defaults-file={conf}'], env)
    query = [daemons.mariadb, '--no-defaults', '-uroot', f'--socket={socket}', '-Nse']
    wait('mariadb', processes, directory, [*query, 'SELECT 1'], env)
    run([*query, f"CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON *.* TO {USER}@'%' "
                 f'WITH GRANT OPTION; CREATE DATABASE {DATABASE}'], env, directory / 'log' / 'mariadb-client.out')
    return f'mysql://{USER}:{PASSWORD}@{config.HOST}:{port}/{DATABASE}'


def not_root(command):
    """Return a command that does not see itself as root, which PostgreSQL refuses to be."""
    if os.geteuid():
        return command
    if not shutil.which('unshare'):
        raise SystemExit('lab: PostgreSQL does not run as root, and there is no `unshare` (util-linux) here')
    return ['unshare', '--user', '--map-user=1000', *command]


def run(command, env, log):
    """Run a command that must succeed."""
    with open(log, 'a') as out:
        done = subprocess.run([str(word) for word in command], env=env, stdout=out, stderr=out)
    if done.returncode:
        raise SystemExit(f'lab: {Path(log).stem} failed, see {log}:\n{Path(log).read_text()[-1000:]}')


def wait(name, processes, directory, command, env):
    """Wait until a statement is answered."""
    deadline = time.monotonic() + START_TIMEOUT
    while subprocess.run([str(word) for word in command], env=env, capture_output=True).returncode:
        log = directory / 'log' / f'{name}.out'
        if not alive(processes.read()[name]) or time.monotonic() > deadline:
            raise SystemExit(f'lab: {name} does not answer, see {log}:\n{log.read_text()[-1000:]}')
        time.sleep(0.1)
    say(f'{name} answers')
