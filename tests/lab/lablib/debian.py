"""MariaDB, PostgreSQL and RabbitMQ from Debian's packages: unpacked into the cache, not installed.

Nothing outside the cache directory changes, no package's scripts run, and no daemon starts by itself.
"""

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from .say import say

WANTED = ('mariadb-server-core', 'mariadb-client-core', 'postgresql', 'rabbitmq-server')
# Unpacked also where the system has them: our own copies run, in the versions that belong together.
OURS = re.compile(r'(lib)?(mariadb|mysql|postgresql|pq|rabbitmq|erlang)')
STATUS = Path('/var/lib/dpkg/status')
TRIES = 5


class Daemons:
    """Paths of the unpacked programs."""

    def __init__(self, install):
        self.base = install.base / 'debian'
        self.root = self.base / 'root'
        self.marker = self.base / 'versions.json'
        self.usr = self.root / 'usr'
        self.mariadbd = self.usr / 'sbin' / 'mariadbd'
        self.mariadb = self.usr / 'bin' / 'mariadb'
        self.mariadb_install_db = self.usr / 'bin' / 'mariadb-install-db'
        self.erlang = self.usr / 'lib' / 'erlang'
        self.epmd = self.usr / 'bin' / 'epmd'
        self.rabbitmq_server = self.usr / 'lib' / 'rabbitmq' / 'bin' / 'rabbitmq-server'

    @property
    def postgres(self):
        """Where PostgreSQL's programs are: its version is part of the path."""
        return next((self.usr / 'lib' / 'postgresql').glob('*/bin'))

    def environment(self, **extra):
        """Return the environment of the programs: they find each other and their libraries."""
        libraries = [str(path) for lib in (self.usr / 'lib', self.root / 'lib')
                     for path in (lib, *lib.glob('*-linux-gnu*'))]
        env = {
            'PATH': f'{self.usr}/bin:{self.usr}/sbin:/usr/bin:/bin:/usr/sbin:/sbin',
            'LD_LIBRARY_PATH': ':'.join(libraries),
            'LANG': 'C.UTF-8',
        }
        return env | extra

    def versions(self):
        """Return the versions that were unpacked."""
        return json.loads(self.marker.read_text())


def ensure(install):
    """Fetch and unpack the packages unless they are there. The caller holds the install's lock."""
    daemons = Daemons(install)
    if daemons.marker.exists() and daemons.versions().keys() >= set(WANTED):
        return daemons
    if not shutil.which('apt-get'):
        raise SystemExit('lab: MariaDB, PostgreSQL and RabbitMQ are taken from Debian '
                         '(12 or newer) with apt-get, and there is none here')
    started = time.monotonic()
    shutil.rmtree(daemons.base, ignore_errors=True)
    packages = fetch(daemons.base / 'apt')
    daemons.root.mkdir()
    for package in packages:
        run(['dpkg-deb', '-x', package, daemons.root])
    relocate_erlang(daemons)
    versions = dict(run(['dpkg-deb', '-f', package, 'Package', 'Version'], fields=True)
                    for package in packages)
    shutil.rmtree(daemons.base / 'apt')
    daemons.marker.write_text(json.dumps({
        name: versions[name] for name in (*WANTED, 'erlang-base')}, indent=1))
    say(f'MariaDB, PostgreSQL and RabbitMQ unpacked in {time.monotonic() - started:.0f} s')
    return daemons


def fetch(work):
    """Download the packages and what they need beyond the system's; return the files."""
    for directory in ('lists/partial', 'archives/partial', 'log'):
        (work / directory).mkdir(parents=True)
    # apt leaves out what it believes to be installed.
    stanzas = STATUS.read_text(errors='replace').split('\n\n') if STATUS.exists() else []
    kept = [text for text in stanzas if not OURS.match(text.partition('Package: ')[2])]
    (work / 'status').write_text('\n\n'.join(kept))
    # State, cache and locks of our own: no rights needed, and nobody's apt is in the way.
    own = [word for key, value in {
        'Dir::State': work, 'Dir::State::lists': work / 'lists',
        'Dir::State::status': work / 'status', 'Dir::State::extended_states': work / 'extended',
        'Dir::Cache': work, 'Dir::Cache::archives': work / 'archives', 'Dir::Log': work / 'log',
        'Debug::NoLocking': 1, 'APT::Sandbox::User': 'root', 'Acquire::Retries': 3,
        'Acquire::Languages': 'none'}.items() for word in ('-o', f'{key}={value}')]
    attempt(['apt-get', *own, '-q', 'update'])
    attempt(['apt-get', *own, '-q', '-y', '--no-install-recommends', '--download-only',
             'install', *WANTED])
    return sorted((work / 'archives').glob('*.deb'))


def attempt(command):
    """Run a command, several times if need be: mirrors fail now and then."""
    for number in range(1, TRIES + 1):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={**os.environ, 'DEBIAN_FRONTEND': 'noninteractive',
                                   'LC_ALL': 'C.UTF-8'})
        if done.returncode == 0:
            return
        if number < TRIES:
            pause = 3 * 2 ** number
            say(f'apt-get failed ({number} of {TRIES}), again in {pause} s')
            time.sleep(pause)
    raise SystemExit(f'lab: {command[0]} failed:\n{done.stdout[-2000:]}')


def run(command, fields=False):
    """Run a command that must succeed; return its output, or the values of its `Key: value` lines."""
    out = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE,
                         text=True).stdout
    return [line.partition(': ')[2] for line in out.splitlines()] if fields else out


def relocate_erlang(daemons):
    """Tell Erlang's starter where it is now: its root directory is written into it."""
    starter = daemons.erlang / 'bin' / 'erl'
    text = starter.read_text()
    moved = text.replace('ROOTDIR=/usr/lib/erlang', f'ROOTDIR={daemons.erlang}')
    if moved == text:
        raise SystemExit(f'lab: {starter} is not the starter that was expected')
    starter.write_text(moved)
