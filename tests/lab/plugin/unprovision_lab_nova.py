"""nova-compute with the rule for `reserved` that the ironic driver had before Nova 26.1 and 27.0.0.

Then: reserved if *no* instance is on the node, and the node is in maintenance, in a bad power state,
or neither `available` nor without a state. So a node in use was not reserved, and nothing but its
allocation kept it from being offered. Everything else is Nova as shipped. Takes nova-compute's
arguments: `python -m unprovision_lab_nova --config-file ...`.
"""

import copy
import sys

# It goes by this name in logs, and with the services that it asks.
sys.argv[0] = 'nova-compute'

# Before any other part of Nova: it decides between threads and green threads.
from nova.cmd import compute
from nova.virt.ironic import driver

as_shipped = driver.IronicDriver.update_provider_tree


def as_before(self, provider_tree, nodename, allocations=None):
    """Do what the driver does, then put the old answer into the inventory."""
    as_shipped(self, provider_tree, nodename, allocations=allocations)
    node = self._node_from_cache(nodename)
    in_use = node.instance_id is not None
    reserved = not in_use and self._node_resources_unavailable(node)
    inventory = copy.deepcopy(provider_tree.data(nodename).inventory)
    for units in inventory.values():
        units['reserved'] = units['total'] if reserved else 0
    provider_tree.update_inventory(nodename, inventory)


if __name__ == '__main__':
    driver.IronicDriver.update_provider_tree = as_before
    sys.exit(compute.main())
