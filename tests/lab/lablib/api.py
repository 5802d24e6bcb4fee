"""A small client of the lab's services."""

import json
import threading
import time
import urllib.error
import urllib.request

IRONIC_VERSION = '1.109'
PLACEMENT_VERSION = '1.39'
NOVA_VERSION = '2.90'


class Refused(Exception):
    """An answer that is not a success."""

    def __init__(self, method, url, status, body):
        super().__init__(f'{method} {url}: {status} {body[:500]}')
        self.status = status


class Api:
    """Requests as the administrator, with the scope that each service wants.

    Ironic shows all nodes to a system-scoped token only; Placement refuses just that one.
    """

    def __init__(self, keystone, ironic, placement, user, password, project='admin', nova=None):
        self.urls = {'keystone': keystone, 'ironic': ironic, 'placement': placement, 'nova': nova}
        self.user, self.password, self.project = user, password, project
        self._tokens = {}
        self._lock = threading.Lock()

    @classmethod
    def of(cls, lab):
        """Return a client for what lab.json describes."""
        admin = lab['admin']
        return cls(lab['keystone_url'], lab['ironic_url'], lab['placement_url'],
                   admin['username'], admin['password'], admin['project_name'],
                   lab.get('nova_url'))

    def token(self, scope):
        """Return a token for the scope, `project` or `system`."""
        with self._lock:
            if scope not in self._tokens:
                self._tokens[scope] = self._new_token(scope)[0]
            return self._tokens[scope]

    def _new_token(self, scope):
        default = {'id': 'default'}
        wanted = ({'system': {'all': True}} if scope == 'system'
                  else {'project': {'name': self.project, 'domain': default}})
        auth = {'identity': {'methods': ['password'], 'password': {'user': {
            'name': self.user, 'domain': default, 'password': self.password}}}, 'scope': wanted}
        headers, body = send('POST', self.urls['keystone'] + '/auth/tokens', {}, {'auth': auth})
        return headers['X-Subject-Token'], body['token']

    def whoami(self):
        """Return the description of a project-scoped token."""
        return self._new_token('project')[1]

    def keystone(self, method, path, body=None, scope='system'):
        """Ask Keystone."""
        return send(method, self.urls['keystone'] + path,
                    {'X-Auth-Token': self.token(scope)}, body)[1]

    def ironic(self, method, path, body=None):
        """Ask Ironic (path without /v1)."""
        return send(method, self.urls['ironic'] + '/v1' + path, {
            'X-Auth-Token': self.token('system'),
            'X-OpenStack-Ironic-API-Version': IRONIC_VERSION}, body)[1]

    def placement(self, method, path, body=None):
        """Ask Placement."""
        return send(method, self.urls['placement'] + path, {
            'X-Auth-Token': self.token('project'),
            'OpenStack-API-Version': f'placement {PLACEMENT_VERSION}'}, body)[1]

    def nova(self, method, path, body=None):
        """Ask Nova, in a lab that has one."""
        return send(method, self.urls['nova'] + path, {
            'X-Auth-Token': self.token('project'),
            'X-OpenStack-Nova-API-Version': NOVA_VERSION}, body)[1]

    def ironic_write(self, method, path, body=None, patience=30):
        """Ask Ironic for a change, again while the node is locked."""
        deadline = time.monotonic() + patience
        while True:
            try:
                return self.ironic(method, path, body)
            except Refused as refused:
                if refused.status != 409 or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)


def send(method, url, headers, body=None, timeout=60):
    """Send one request; return (headers, decoded body) or raise Refused."""
    data = None if body is None else json.dumps(body).encode()
    headers = {'Accept': 'application/json', 'Content-Type': 'application/json'} | headers
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            text = answer.read()
            return answer.headers, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        raise Refused(method, url, error.code, error.read().decode(errors='replace')) from None
