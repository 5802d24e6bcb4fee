"""What is made once per version of requirements.lock, in the cache: the virtualenv."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from .say import say

SOURCE = Path(__file__).resolve().parent.parent
LOCK_FILE = SOURCE / 'requirements.lock'
PIP_TRIES = 5


class Install:
    """Paths of one installation."""

    def __init__(self):
        cache = os.environ.get('LAB_CACHE') or Path.home() / '.cache' / 'unprovision'
        digest = hashlib.sha256(LOCK_FILE.read_bytes()).hexdigest()[:12]
        self.base = Path(cache).absolute() / f'lab-{digest}'
        self.venv = self.base / 'venv'
        self.bin = self.venv / 'bin'
        self.installed = self.base / 'installed'

    def environment(self, **extra):
        """Return the environment of every command run from the virtualenv.

        Built from nothing: variables such as OS_* of the caller would change what the services do.
        """
        env = {
            'PATH': f'{self.bin}:/usr/local/bin:/usr/bin:/bin',
            'HOME': str(self.base),
            'LANG': 'C.UTF-8',
            # stevedore keeps its cache of entry points here
            'XDG_CACHE_HOME': str(self.base / 'cache'),
            # Ironic finds the lab's own interfaces here; no pip needed when they change
            'PYTHONPATH': str(SOURCE / 'plugin'),
            'PYTHONDONTWRITEBYTECODE': '1',
            'PYTHONWARNINGS': 'ignore',
        }
        return env | extra


def ensure():
    """Make the virtualenv if it is not there, once, also if several labs start at the same time."""
    install = Install()
    install.base.mkdir(parents=True, exist_ok=True)
    with locked(install.base / 'lock'):
        if not install.installed.exists():
            make_virtualenv(install)
            install.installed.touch()
    return install


@contextlib.contextmanager
def locked(path):
    """Hold an exclusive lock between processes."""
    with open(path, 'w') as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def make_virtualenv(install):
    """Make the virtualenv anew: what is there without the marker is half done."""
    started = time.monotonic()
    say(f'installing into {install.venv} (once; a minute or two)')
    shutil.rmtree(install.venv, ignore_errors=True)
    subprocess.run([sys.executable, '-m', 'venv', install.venv], check=True, stdout=sys.stderr)
    pip = ['nice', install.bin / 'pip', 'install', '--quiet', '--disable-pip-version-check',
           '--no-deps', '-r', LOCK_FILE]
    for attempt in range(1, PIP_TRIES + 1):
        if subprocess.run(pip, stdout=sys.stderr).returncode == 0:
            say(f'installed in {time.monotonic() - started:.0f} s')
            return
        if attempt < PIP_TRIES:
            pause = 3 * 2 ** attempt
            say(f'pip failed ({attempt} of {PIP_TRIES}), again in {pause} s')
            time.sleep(pause)
    raise SystemExit('lab: pip failed, see above')
