"""The configuration files of one lab."""

import base64
import os
import textwrap
from pathlib import Path

HOST = '127.0.0.1'
REGION = 'RegionOne'
ADMIN, ADMIN_PASSWORD = 'admin', 'lab-admin'
SERVICE_PASSWORD = 'lab-service'
APPLICATIONS = {'nova-api': 'nova.wsgi.osapi_compute'}
PATHS = {'keystone': '/v3', 'nova-api': '/v2.1'}
# Ports on which nobody listens but the user of a lab who wants to hear what is said.
PROXIES = {'ironic-api': 'ironic-proxy', 'placement': 'placement-proxy'}


class Configuration:
    """Writes and names the files of the lab in one directory."""

    def __init__(self, directory, install, ports, cleaning=4, clean_limit=None, nova=False,
                 proxied=False, notify=False):
        self.directory = Path(directory)
        self.install = install
        self.ports = ports
        self.cleaning = cleaning
        self.clean_limit = clean_limit
        self.nova = nova
        # Whether those who ask the catalogue reach Ironic and Placement through somebody's proxies.
        self.proxied = proxied
        # Whether Ironic says what happens, over the lab's RabbitMQ.
        self.notify = notify
        etc = self.directory / 'etc'
        self.keystone_conf = etc / 'keystone' / 'keystone.conf'
        self.placement_conf = etc / 'placement' / 'placement.conf'
        self.ironic_conf = etc / 'ironic' / 'ironic.conf'
        self.nova_conf = etc / 'nova' / 'nova.conf'
        self.nova_host = 'lab-compute'
        self.mariadb_conf = etc / 'mariadb' / 'mariadb.cnf'
        self.mariadb_data = self.directory / 'db' / 'mariadb'
        self.mariadb_socket = self.directory / 'run' / 'mariadb.sock'
        self.rabbitmq_etc = etc / 'rabbitmq'

    def database(self, name):
        """Return the path of a service's database."""
        return self.directory / 'db' / f'{name}.sqlite'

    def url(self, name):
        """Return where a service listens."""
        return f'http://{HOST}:{self.ports[name]}' + PATHS.get(name, '')

    def public_url(self, name):
        """Return where the catalogue says that a service listens."""
        return self.url(PROXIES[name] if self.proxied and name in PROXIES else name)

    def amqp(self, scheme='amqp', vhost=''):
        """Return the URL of the lab's RabbitMQ, in our spelling or oslo.messaging's."""
        return f'{scheme}://guest:guest@{HOST}:{self.ports["rabbitmq"]}/{vhost}'

    def log(self, name):
        """Return the path of a service's log file."""
        return self.directory / 'log' / f'{name}.log'

    def write_service_files(self):
        """Write everything the services read."""
        for name in ('db', 'log', 'run/lock', 'etc/keystone/keys'):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        self.write_keys()
        for path, text in ((self.keystone_conf, self.keystone()),
                           (self.placement_conf, self.placement()),
                           (self.ironic_conf, self.ironic()),
                           # One thread: requests are short and bound to the processor, and one
                           # writer at a time never finds the database locked.
                           (self.gunicorn_conf('placement'), self.gunicorn('placement', threads=1)),
                           (self.gunicorn_conf('keystone'), self.gunicorn('keystone', threads=4))):
            self.write(path, text)

    @staticmethod
    def write(path, text):
        """Write a file, in a directory that may be new."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def write_keys(self):
        """Give the lab token keys of its own: a token of another lab must not be good here."""
        keys = self.directory / 'etc' / 'keystone' / 'keys'
        keys.chmod(0o700)
        for path in (keys / '0', keys / '1'):
            if not path.exists():
                path.touch(mode=0o600)
                path.write_bytes(base64.urlsafe_b64encode(os.urandom(32)))

    def gunicorn_conf(self, name):
        """Return the path of a service's settings for gunicorn."""
        return self.directory / 'etc' / name / 'gunicorn.py'

    def gunicorn(self, name, threads):
        """Return settings for gunicorn: a file, as Keystone takes the command line for its own."""
        return textwrap.dedent(f'''\
            wsgi_app = "{APPLICATIONS.get(name, f'{name}.wsgi.api')}:application"
            bind = "{HOST}:{self.ports[name]}"
            worker_class, workers, threads = "gthread", 1, {threads}
            keepalive, timeout, graceful_timeout, loglevel = 30, 120, 2, "warning"
            ''')

    def connection(self, name):
        """Return a database setting. The time-out is how long a writer waits for another one."""
        return textwrap.dedent(f'''\
            connection = sqlite:///{self.database(name)}?timeout=60
            sqlite_synchronous = False''')

    def keystone_user(self, name):
        """Return the section a service checks tokens with."""
        return textwrap.dedent(f'''\
            [keystone_authtoken]
            www_authenticate_uri = {self.url('keystone')}
            auth_url = {self.url('keystone')}
            auth_type = password
            username = {name}
            password = {SERVICE_PASSWORD}
            project_name = service
            user_domain_id = default
            project_domain_id = default
            service_token_roles_required = True
            ''')

    def keystone(self):
        """Return keystone.conf."""
        keys = self.directory / 'etc' / 'keystone' / 'keys'
        return f'''\
[DEFAULT]
log_file = {self.log('keystone')}
[database]
{self.connection('keystone')}
[cache]
# one process, so a cache in its memory is always right; without it a request takes 0.1 s more
enabled = True
backend = dogpile.cache.memory
[identity]
# the cheapest allowed: nothing here is worth protecting
password_hash_rounds = 4
[token]
expiration = 14400
[fernet_tokens]
key_repository = {keys}
[fernet_receipts]
key_repository = {keys}
[credential]
key_repository = {keys}
'''

    def placement(self):
        """Return placement.conf."""
        return f'''\
[DEFAULT]
log_file = {self.log('placement')}
[placement_database]
{self.connection('placement')}
{self.keystone_user('placement')}
'''

    def ironic(self):
        """Return ironic.conf."""
        limit = '' if self.clean_limit is None else f'max_concurrent_clean = {self.clean_limit}'
        level = f'notification_level = debug\ntransport_url = {self.amqp("rabbit")}' if self.notify else ''
        return f'''\
[DEFAULT]
{level}
host = localhost
my_ip = {HOST}
state_path = {self.directory}/run
# Two processes that talk HTTP. One process without RPC needs no such talk, but is kept busy by
# few pollers already; plugin/unprovision_lab_sqlite.py makes two processes safe with sqlite.
rpc_transport = json-rpc
# only for users with the role "service" in the project "service": one credential for Ironic and
# Placement; all others see what they see by default
rbac_service_role_elevated_access = True
enabled_hardware_types = fake-hardware
enabled_bios_interfaces = no-bios
enabled_boot_interfaces = fake
enabled_console_interfaces = no-console
enabled_deploy_interfaces = lab
enabled_firmware_interfaces = no-firmware
enabled_inspect_interfaces = no-inspect
enabled_management_interfaces = fake
enabled_network_interfaces = noop
enabled_power_interfaces = lab
enabled_raid_interfaces = no-raid
enabled_rescue_interfaces = fake
enabled_storage_interfaces = noop
enabled_vendor_interfaces = no-vendor
default_deploy_interface = lab
default_network_interface = noop
default_power_interface = lab
default_rescue_interface = fake
[api]
host_ip = {HOST}
port = {self.ports['ironic-api']}
public_endpoint = {self.public_url('ironic-api')}
[conductor]
automated_clean = True
{limit}
sync_power_state_interval = 0
graceful_shutdown_timeout = 2
[database]
{self.connection('ironic')}
sqlite_max_wait_for_retry = 60
[fake]
# read by the lab's deploy interface: cleaning without lab_clean_seconds
vendor_delay = {self.cleaning}
[json_rpc]
host_ip = {HOST}
port = {self.ports['ironic-conductor']}
auth_strategy = noauth
auth_type = none
[service_catalog]
auth_type = none
endpoint_override = {self.url('ironic-api')}
[dhcp]
dhcp_provider = none
[oslo_concurrency]
lock_path = {self.directory}/run/lock
[oslo_messaging_notifications]
driver = {'messagingv2' if self.notify else 'noop'}
{self.keystone_user('ironic')}
'''
