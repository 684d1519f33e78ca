"""The deviceshare plugin: which of a node's cards a task gets.

Whether one of them has the room is no question of policy and asked by placement itself. Volcano's plugin of that name
also scores nodes by their cards; here the other plugins choose the node.
"""

from pipeline.plugins.extension_points import Context
from pipeline.policy import PluginSetting

SPREAD = "spread"


class DeviceShare:
    """Argument ``cards``: ``binpack``, the fullest card that takes the task, or ``spread``, the emptiest one."""

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        self._spreads: bool = setting.argument("cards", "binpack") == SPREAD

    def spreads_cards(self) -> bool:
        """Whether the emptiest card is best."""
        return self._spreads
