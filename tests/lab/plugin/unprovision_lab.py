"""Ironic interfaces for tests: a machine that is as slow, or fails as often, as its node says.

Used with Ironic's own hardware type `fake-hardware`, which accepts any interface. Everything is
controlled per node, by flat keys of `driver_info` (tests/lab/README.md lists them), so tests that
run side by side do not disturb each other. A phase with no key takes no time and does not fail.

Keys that count (`*_failures`, `lab_clean_holds`) are counted down by this driver as they are used:
"2" means the next two go wrong, and the third works.
"""

import time

from ironic.common import exception
from ironic.common import states
from ironic.conductor import periodics
from ironic.conductor import steps as conductor_steps
from ironic.conductor import utils as conductor_utils
from ironic.conf import CONF
from ironic.drivers import base
from ironic.drivers.modules import fake

import unprovision_lab_sqlite  # noqa: F401 - for what it does to the database

# Where a waiting node keeps the time (epoch seconds) at which its "agent" calls back.
RESUME_AT = 'lab_resume_at'


def seconds(node, key, default=0):
    """Return a duration of the node's driver_info as a number."""
    return float(node.driver_info.get(key, default))


def take(node, key):
    """Use up one of a counted event; return whether there was one left."""
    left = int(node.driver_info.get(key, 0))
    if left <= 0:
        return False
    node.driver_info = {**node.driver_info, key: left - 1}
    node.save()
    return True


def wait_until_later(node, delay):
    """Note when the node goes on; the caller then returns a `wait` state."""
    node.set_driver_internal_info(RESUME_AT, time.time() + delay)
    node.save()


class LabPower(fake.FakePower):
    """Power that is off unless switched on, and whose reboot may take a while."""

    def get_power_state(self, task):
        # The stock fake driver answers None for a new node, and Nova never takes
        # such a node for free. The verification at enrolment stores this answer.
        return task.node.power_state or states.POWER_OFF

    def reboot(self, task, timeout=None):
        # Only the reboot is slow: a test wants to hold the lock of an `active`
        # node at a time of its choice, without slowing deploy and tear-down.
        time.sleep(seconds(task.node, 'lab_reboot_seconds'))


class LabDeploy(fake.FakeDeploy):
    """Deployment, tear-down and cleaning with the delays and failures the node asks for."""

    @base.deploy_step(priority=100)
    def deploy(self, task):
        time.sleep(seconds(task.node, 'lab_deploy_seconds'))
        if take(task.node, 'lab_deploy_failures'):
            raise exception.InstanceDeployFailure('lab: deployment fails on request')
        conductor_utils.node_power_action(task, states.POWER_ON)

    def tear_down(self, task):
        time.sleep(seconds(task.node, 'lab_tear_down_seconds'))
        if take(task.node, 'lab_tear_down_failures'):
            raise exception.InstanceDeployFailure('lab: tear-down fails on request')
        conductor_utils.node_power_action(task, states.POWER_OFF)
        return states.DELETED

    def prepare_cleaning(self, task):
        """Wait for the "agent" to boot, if the node has one."""
        if 'lab_boot_seconds' not in task.node.driver_info:
            return None
        wait_until_later(task.node, seconds(task.node, 'lab_boot_seconds'))
        return states.CLEANWAIT

    def tear_down_cleaning(self, task):
        pass

    @base.clean_step(priority=10, abortable=True)
    def lab_erase(self, task):
        """The one automatic clean step: a locked part, then perhaps an unlocked one."""
        node = task.node
        time.sleep(seconds(node, 'lab_clean_seconds', CONF.fake.vendor_delay))
        if seconds(node, 'lab_wait_seconds'):
            wait_until_later(node, seconds(node, 'lab_wait_seconds'))
            return states.CLEANWAIT
        if take(node, 'lab_clean_failures'):
            raise exception.NodeCleaningFailure(
                node=node.uuid, reason='lab: cleaning fails on request')

    # A node in maintenance is left out, as Ironic ignores a real agent's heartbeat then.
    @periodics.node_periodic(
        purpose='call back for waiting lab nodes', spacing=0.5,
        filters={'provision_state': states.CLEANWAIT, 'maintenance': False, 'reserved': False},
        predicate_extra_fields=['driver_internal_info'],
        predicate=lambda n: n.driver_internal_info.get(RESUME_AT, float('inf')) <= time.time())
    def _call_back(self, task, manager, context):
        """Do what the heartbeat of a real agent does to a node in `clean wait`."""
        task.upgrade_lock(purpose='lab call-back', retry=False)
        node = task.node
        if node.provision_state != states.CLEANWAIT:
            return  # aborted since the list was read
        if not node.clean_step and take(node, 'lab_boot_timeouts'):
            # The way of Ironic's own check for agents that never call back.
            task.process_event(
                'fail', callback=manager._spawn_worker,
                call_args=(conductor_utils.cleanup_cleanwait_timeout, task),
                err_handler=conductor_utils.provisioning_error_handler)
            return
        if not node.clean_step:
            # The agent has booted: from here on the clean steps are known.
            conductor_steps.set_node_cleaning_steps(
                task, use_existing_steps=node.driver_internal_info.get(
                    'declarative_cleaning', False))
        elif take(node, 'lab_clean_holds'):
            task.process_event('hold')
            return
        elif take(node, 'lab_clean_failures'):
            conductor_utils.cleaning_error_handler(
                task, 'lab: the agent of node %s reports a failed step' % node.uuid,
                errmsg='lab: cleaning fails on request')
            return
        conductor_utils.notify_conductor_resume_operation(task, 'clean')
