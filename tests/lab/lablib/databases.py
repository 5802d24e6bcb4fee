"""The services' databases, filled once per installation and copied by each lab.

The tools that make them take most of a cold start's time, and their result is always the same.
"""

import contextlib
import json
import shutil
import sqlite3
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from . import config, identity, install, services
from .processes import Processes
from .say import say

# Part of the name of the stored databases. Raise it when the way they are made changes.
VERSION = 2
NAMES = ('keystone', 'placement', 'ironic')


def prepare(made):
    """Make the databases of an installation unless they are there; return their directory."""
    stored = made.base / f'databases-{VERSION}'
    with install.locked(made.base / 'lock'):
        if not stored.exists():
            make(made, stored)
    return stored


def provide(conf):
    """Give a lab its databases; return the facts about users that belong into lab.json."""
    stored = prepare(conf.install)
    for name in NAMES:
        if not conf.database(name).exists():
            new = conf.database(name).with_suffix('.new')
            shutil.copy(stored / f'{name}.sqlite', new)
            new.rename(conf.database(name))
    point_catalogue(conf)
    return json.loads((stored / 'facts.json').read_text())


def make(made, stored):
    """Make databases with their tables, and Keystone's users and catalogue."""
    started = time.monotonic()
    work = made.base / 'databases.new'
    Processes(work).stop(grace=0)  # left over from an attempt that was killed
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    conf = config.Configuration(work, made, services.choose_ports(work))
    conf.write_service_files()

    keystone = [made.bin / 'keystone-manage', '--config-file', conf.keystone_conf]
    with ThreadPoolExecutor() as pool:
        others = pool.submit(run, conf, [
            [made.bin / 'ironic-dbsync', '--config-file', conf.ironic_conf, 'create_schema'],
            [made.bin / 'placement-manage', '--config-dir', conf.placement_conf.parent,
             'db', 'sync']])
        run(conf, [
            [*keystone, 'db_sync'],
            [*keystone, 'bootstrap', '--bootstrap-username', config.ADMIN,
             '--bootstrap-password', config.ADMIN_PASSWORD]])
        others.result()

    processes = Processes(work)
    try:
        services.start('keystone', conf, processes)
        services.wait_for_answer('keystone', conf, processes)
        facts = identity.create(conf)
    finally:
        processes.stop()
    for name in NAMES:
        # The mode is stored in the file: with a write-ahead log readers do not wait for a writer.
        # Closing the last connection empties the log, so that the file alone is the database.
        with contextlib.closing(sqlite3.connect(conf.database(name))) as db:
            db.execute('PRAGMA journal_mode = WAL')
    (work / 'db' / 'facts.json').write_text(json.dumps(facts))
    (work / 'db').rename(stored)
    shutil.rmtree(work)
    say(f'databases made in {time.monotonic() - started:.0f} s')


def run(conf, steps, env=None):
    """Run commands one after the other."""
    for step in steps:
        log = conf.log(step[0].name)
        with open(log, 'a') as out:
            done = subprocess.run(step, env=env or conf.install.environment(), stdout=out,
                                  stderr=out)
        if done.returncode:
            raise SystemExit(f'lab: {step[0].name} failed, see {log}')


def point_catalogue(conf):
    """Write this lab's URLs into the catalogue. Keystone is not up yet, so past its API."""
    with contextlib.closing(sqlite3.connect(conf.database('keystone'), timeout=60)) as db, db:
        for name, kind in identity.CATALOGUE.items():
            db.execute('UPDATE endpoint SET url = ? WHERE service_id IN '
                       '(SELECT id FROM service WHERE type = ?)', (conf.public_url(name), kind))
