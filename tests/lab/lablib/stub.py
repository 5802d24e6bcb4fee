#!/usr/bin/env python3
"""Stands in for the services that Nova asks and that have no part in what is tested: `stub.py PORT`.

Below /image one image exists under any id; below /network and /volume nothing exists, and every
list is empty.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

IMAGE = {
    'name': 'lab', 'status': 'active', 'visibility': 'public', 'protected': False, 'owner': 'lab',
    'container_format': 'bare', 'disk_format': 'raw', 'size': 1, 'min_ram': 0, 'min_disk': 0,
    'checksum': '0' * 32, 'os_hash_algo': 'sha512', 'os_hash_value': '0' * 128, 'tags': [],
    'locations': [], 'created_at': '2026-01-01T00:00:00Z', 'updated_at': '2026-01-01T00:00:00Z',
}
# The client builds its objects from this; a property that it does not name is taken for a text.
KINDS = {bool: 'boolean', int: 'integer', list: 'array', str: 'string'}
SCHEMA = {
    'name': 'image', 'additionalProperties': {'type': 'string'},
    'properties': {'id': {'type': 'string'}} | {
        key: {'type': KINDS[type(value)]} for key, value in IMAGE.items()},
}


def answer(path, host):
    """Return what a request for the path gets."""
    service, *rest = path.strip('/').split('/')
    last = rest[-1] if rest else ''
    if service == 'image':
        if rest[-2:] == ['schemas', 'image']:
            return SCHEMA
        if rest[-2:-1] == ['images']:
            return IMAGE | {'id': last, 'file': f'/v2/images/{last}/file'}
        if last == 'images':
            return {'images': []}
        return {'versions': [{'id': 'v2.9', 'status': 'CURRENT', 'links': [
            {'rel': 'self', 'href': f'http://{host}/image/v2/'}]}]}
    if service == 'network' and last in ('', 'v2.0'):
        return {'versions': [{'id': 'v2.0', 'status': 'CURRENT', 'links': []}], 'resources': []}
    return {last.replace('-', '_').removesuffix('.json'): []}


class Handler(BaseHTTPRequestHandler):
    """Answers everything with 200."""

    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        self.rfile.read(int(self.headers.get('Content-Length') or 0))
        body = json.dumps(answer(self.path.partition('?')[0], self.headers['Host'])).encode()
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_PUT = do_DELETE = do_GET


if __name__ == '__main__':
    ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
