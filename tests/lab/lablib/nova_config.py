"""The configuration files of Nova's services."""

import shutil

from . import config


def write(conf):
    """Write everything that the services read, but nova-compute's own file."""
    conf.write(conf.nova_conf, nova_conf(conf))
    # nova-api wants it beside the other one
    shutil.copy(conf.install.venv / 'etc' / 'nova' / 'api-paste.ini', conf.nova_conf.parent)
    conf.write(conf.gunicorn_conf('nova-api'), conf.gunicorn('nova-api', threads=8))


def login(conf, section, user):
    """Return a section with a login at Keystone."""
    return f'''\
[{section}]
auth_type = password
auth_url = {conf.url('keystone')}
username = {user}
password = {config.SERVICE_PASSWORD}
user_domain_id = default
project_name = service
project_domain_id = default
region_name = {config.REGION}
'''


def nova_conf(conf):
    """Return nova.conf, for all services."""
    stub = f'http://{config.HOST}:{conf.ports["stub"]}'

    def database(name):
        return f'connection = mysql+pymysql://root@localhost/{name}' \
               f'?unix_socket={conf.mariadb_socket}'

    return f'''\
[DEFAULT]
debug = True
host = {conf.nova_host}
my_ip = {config.HOST}
state_path = {conf.directory}/run/nova
compute_driver = ironic.IronicDriver
transport_url = {conf.amqp('rabbit')}
reserved_host_memory_mb = 0
instances_path = {conf.directory}/run/nova
[api]
auth_strategy = keystone
[api_database]
{database('nova_api')}
[database]
{database('nova')}
{conf.keystone_user('nova')}
{login(conf, 'service_user', 'nova')}
{login(conf, 'placement', 'placement')}
{login(conf, 'ironic', 'ironic')}
[glance]
api_servers = {stub}/image
{login(conf, 'neutron', 'nova')}
endpoint_override = {stub}/network
{login(conf, 'cinder', 'nova')}
endpoint_template = {stub}/volume/v3/%(project_id)s
[vnc]
enabled = False
[conductor]
workers = 1
[scheduler]
workers = 1
# the host becomes known by itself, soon after its first nodes
discover_hosts_in_cells_interval = 5
[filter_scheduler]
track_instance_changes = False
[quota]
instances = -1
cores = -1
ram = -1
[oslo_concurrency]
lock_path = {conf.directory}/run/lock
[oslo_messaging_notifications]
driver = noop
'''
