"""Progress for the person who waits. Standard output belongs to the results."""

import sys
import time

_STARTED = time.monotonic()


def say(text):
    """Print a line with the time since the start to standard error."""
    print(f'lab [{time.monotonic() - _STARTED:5.1f} s] {text}', file=sys.stderr, flush=True)
