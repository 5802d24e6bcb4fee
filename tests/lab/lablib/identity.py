"""The users, projects and catalogue entries of a lab, made through Keystone's API."""

import json

from . import config
from .api import Api

READER, READER_PASSWORD = 'reader', 'lab-reader'
SERVICE_USER = 'unprovision'
APPLICATION_CREDENTIAL, APPLICATION_SECRET = 'lab-admin', 'lab-application'
CATALOGUE = {'keystone': 'identity', 'placement': 'placement', 'ironic-api': 'baremetal'}


def create(conf):
    """Fill a Keystone that knows its administrator only; return facts for lab.json."""
    api = Api(conf.url('keystone'), conf.url('ironic-api'), conf.url('placement'),
              config.ADMIN, config.ADMIN_PASSWORD)
    token = api.whoami()
    admin, admin_project = token['user']['id'], token['project']['id']
    roles = {role['name']: role['id'] for role in api.keystone('GET', '/roles')['roles']}

    def post(kind, **values):
        return api.keystone('POST', f'/{kind}s', {kind: values})[kind]['id']

    service_project = post('project', name='service', domain_id='default')
    for name in ('ironic', 'placement', 'nova', SERVICE_USER):
        user = post('user', name=name, password=config.SERVICE_PASSWORD, domain_id='default')
        api.keystone('PUT', f'/projects/{service_project}/users/{user}/roles/{roles["service"]}')
    reader = post('user', name=READER, password=READER_PASSWORD, domain_id='default')
    api.keystone('PUT', f'/projects/{admin_project}/users/{reader}/roles/{roles["reader"]}')
    api.keystone('PUT', f'/system/users/{reader}/roles/{roles["reader"]}')

    post('region', id=config.REGION)
    for name, kind in CATALOGUE.items():
        service = post('service', name=name, type=kind)
        for interface in ('public', 'internal'):
            post('endpoint', service_id=service, interface=interface, url=conf.url(name),
                 region_id=config.REGION)

    # bound to the project of the token, as all application credentials are
    credential = api.keystone(
        'POST', f'/users/{admin}/application_credentials', {'application_credential': {
            'name': APPLICATION_CREDENTIAL, 'secret': APPLICATION_SECRET}},
        scope='project')['application_credential']
    return {
        'admin': {
            'username': config.ADMIN, 'password': config.ADMIN_PASSWORD, 'user_id': admin,
            'user_domain_id': 'default', 'project_name': 'admin', 'project_id': admin_project,
            'project_domain_id': 'default'},
        'reader': {'username': READER, 'password': READER_PASSWORD},
        'service_user': {'username': SERVICE_USER, 'password': config.SERVICE_PASSWORD,
                         'project_name': 'service'},
        'application_credential': {'id': credential['id'], 'name': APPLICATION_CREDENTIAL,
                                   'secret': APPLICATION_SECRET},
    }


def point_to_nova(conf):
    """Add Nova to the catalogue, once, or write its new URL there."""
    api = Api(conf.url('keystone'), conf.url('ironic-api'), conf.url('placement'),
              config.ADMIN, config.ADMIN_PASSWORD)
    url = conf.url('nova-api')
    services = api.keystone('GET', '/services?type=compute')['services']
    if not services:
        service = api.keystone('POST', '/services', {
            'service': {'name': 'nova', 'type': 'compute'}})['service']['id']
        for interface in ('public', 'internal'):
            api.keystone('POST', '/endpoints', {'endpoint': {
                'service_id': service, 'interface': interface, 'url': url,
                'region_id': config.REGION}})
        return
    known = api.keystone('GET', f'/endpoints?service_id={services[0]["id"]}')['endpoints']
    for endpoint in known:
        api.keystone('PATCH', f'/endpoints/{endpoint["id"]}', {'endpoint': {'url': url}})


def clouds(conf, facts):
    """Return the text of clouds.yaml."""
    def cloud(auth, **more):
        return {'region_name': config.REGION, 'identity_api_version': 3,
                'auth': {'auth_url': conf.url('keystone'), **auth}, **more}

    def password(user, secret, **scope):
        return cloud({'username': user, 'password': secret, 'user_domain_id': 'default', **scope})

    def project(name):
        return {'project_name': name, 'project_domain_id': 'default'}

    system = {'system_scope': 'all'}
    credential = facts['application_credential']
    return yaml({'clouds': {
        'lab': password(config.ADMIN, config.ADMIN_PASSWORD, **project('admin')),
        'lab-system': password(config.ADMIN, config.ADMIN_PASSWORD, **system),
        'lab-service': password(SERVICE_USER, config.SERVICE_PASSWORD, **project('service')),
        'lab-reader': password(READER, READER_PASSWORD, **project('admin')),
        'lab-reader-system': password(READER, READER_PASSWORD, **system),
        'lab-application': cloud({'application_credential_id': credential['id'],
                                  'application_credential_secret': credential['secret']},
                                 auth_type='v3applicationcredential'),
    }})


def yaml(mapping, indent=''):
    """Return nested mappings of strings and numbers as YAML."""
    return ''.join(
        f'{indent}{key}:\n{yaml(value, indent + "  ")}' if isinstance(value, dict)
        else f'{indent}{key}: {json.dumps(value)}\n'
        for key, value in mapping.items())
