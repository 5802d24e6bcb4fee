"""Nodes: enrolling, deploying, and what goes wrong with them."""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor

from .api import Api
from .say import say

# At once; more do not make it faster, they only wait for each other in Ironic.
PARALLEL = 8
# What Nova would say about a server's owner. Nothing looks them up.
PROJECT_ID, USER_ID = 'a' * 32, 'b' * 32
PATIENCE = 120


def shape(interface, step_seconds):
    """Return the driver_info that makes a node clean like the fake driver or like an agent."""
    if interface == 'fake':
        return {} if step_seconds is None else {'lab_clean_seconds': step_seconds}
    return {'lab_boot_seconds': 1, 'lab_clean_seconds': 0,
            'lab_wait_seconds': 4 if step_seconds is None else step_seconds}


def knobs(words):
    """Return KEY=VALUE words as a mapping; numbers become numbers."""
    result = {}
    for word in words:
        key, equals, value = word.partition('=')
        if not equals:
            raise SystemExit(f'lab: {word!r} is not KEY=VALUE')
        try:
            result[key] = json.loads(value)
        except ValueError:
            result[key] = value
    return result


def placement_class(resource_class):
    """Return the name in Placement of a node's resource class, as Nova normalises it."""
    return 'CUSTOM_' + re.sub('[^0-9A-Za-z]+', '_', resource_class).upper()


def every(function, items):
    """Call the function for all items, several at once; return the results."""
    with ThreadPoolExecutor(PARALLEL) as pool:
        return list(pool.map(function, items))


def seed(lab, count, prefix, interface='fake', clean=True, resource_class='baremetal.small',
         step_seconds=None, extra=None):
    """Enrol nodes, bring them to `available`, and give each its provider in Placement."""
    api = Api.of(lab)
    driver_info = shape(interface, step_seconds) | (extra or {})
    custom = placement_class(resource_class)
    api.placement('PUT', f'/resource_classes/{custom}')

    def enrol(number):
        node = api.ironic('POST', '/nodes', {
            'name': f'{prefix}-{number:04}', 'driver': 'fake-hardware', 'driver_info': driver_info,
            'resource_class': resource_class, 'automated_clean': False,
            'properties': {'cpus': 4, 'memory_mb': 8192, 'local_gb': 100, 'cpu_arch': 'x86_64'}})
        api.ironic_write('PUT', f'/nodes/{node["uuid"]}/states/provision', {'target': 'manage'})
        return {key: node[key] for key in ('uuid', 'name', 'resource_class')}

    def provider(node):
        uuid = node['uuid']
        made = api.placement('POST', '/resource_providers', {'uuid': uuid, 'name': uuid})
        api.placement('PUT', f'/resource_providers/{uuid}/inventories', {
            'resource_provider_generation': made['generation'],
            'inventories': {custom: {'total': 1, 'reserved': 0, 'min_unit': 1, 'max_unit': 1,
                                     'step_size': 1, 'allocation_ratio': 1.0}}})

    def provide(node):
        api.ironic_write('PUT', f'/nodes/{node["uuid"]}/states/provision', {'target': 'provide'})

    def clean_from_now_on(node):
        # "remove" would be the natural operation, and is answered with 500
        api.ironic_write('PATCH', f'/nodes/{node["uuid"]}', [
            {'op': 'replace', 'path': '/automated_clean', 'value': None}])

    nodes = every(enrol, range(count))
    say(f'{count} nodes enrolled')
    every(provider, nodes)
    wait_for_state(api, nodes, 'manageable', failed=('enroll',))
    every(provide, nodes)
    wait_for_state(api, nodes, 'available', failed=('clean failed',))
    if clean:
        every(clean_from_now_on, nodes)
    say(f'{count} nodes available')
    return nodes


def wait_for_state(api, nodes, wanted, failed):
    """Wait until all nodes are in the state and not locked."""
    waiting = {node['uuid'] for node in nodes}
    deadline = time.monotonic() + PATIENCE
    while waiting:
        for uuid in list(waiting):
            node = api.ironic('GET', f'/nodes/{uuid}?fields=provision_state,reservation,last_error')
            if node['provision_state'] == wanted and not node['reservation']:
                waiting.remove(uuid)
            elif node['provision_state'] in failed and not node['reservation']:
                raise SystemExit(f'lab: node {uuid} is {node["provision_state"]}: '
                                 f'{node["last_error"]}')
        if waiting and time.monotonic() > deadline:
            raise SystemExit(f'lab: not {wanted} after {PATIENCE} s: {sorted(waiting)}')
        time.sleep(0.1)


def deploy(lab, pairs):
    """Do what Nova does for each (node, instance): claim, set instance_uuid, deploy."""
    api = Api.of(lab)

    def one(pair):
        name, instance = pair
        node = api.ironic('GET', f'/nodes/{name}')
        uuid = node['uuid']
        api.placement('PUT', f'/allocations/{instance}', {
            'allocations': {uuid: {'resources': {placement_class(node['resource_class']): 1}}},
            'project_id': PROJECT_ID, 'user_id': USER_ID,
            'consumer_generation': None, 'consumer_type': 'INSTANCE'})
        api.ironic_write('PATCH', f'/nodes/{uuid}', [
            {'op': 'add', 'path': '/instance_uuid', 'value': instance}])
        api.ironic_write('PUT', f'/nodes/{uuid}/states/provision', {'target': 'active'})
        wait_for_state(api, [node], 'active', failed=('deploy failed', 'error'))
        return {'uuid': uuid, 'name': node['name'], 'instance_uuid': instance}

    return every(one, pairs)


def set_knobs(lab, name, values):
    """Change keys of a node's driver_info; a null takes the key away."""
    api = Api.of(lab)
    have = api.ironic('GET', f'/nodes/{name}?fields=driver_info')['driver_info']
    changes = [{'op': 'add', 'path': f'/driver_info/{key}', 'value': value}
               for key, value in values.items() if value is not None]
    changes += [{'op': 'remove', 'path': f'/driver_info/{key}'}
                for key, value in values.items() if value is None and key in have]
    return api.ironic_write('PATCH', f'/nodes/{name}', changes)['driver_info']
