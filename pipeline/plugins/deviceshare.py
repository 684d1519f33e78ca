"""The deviceshare plugin: which of a node's cards a task gets.

Placement itself asks whether a card has the room; that is no policy. Volcano's plugin of that name
also scores nodes by their cards; here the other plugins choose the node.
"""

from typing import ClassVar

from pipeline.plugins.arguments import choice
from pipeline.plugins.extension_points import ChoosesCards
from pipeline.plugins.plugin import Context, Plugin
from pipeline.policy import PluginSetting

SPREAD = "spread"


class DeviceShare(Plugin, ChoosesCards):
    """Argument ``cards``: ``binpack``, the fullest card that takes the task, or ``spread``, the emptiest one."""

    ARGUMENTS: ClassVar = {"cards": choice("binpack", SPREAD)}

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        super().__init__(context, setting)
        self._spreads = setting.argument("cards", "binpack") == SPREAD

    def spreads_cards(self) -> bool:
        """Whether the emptiest card is best."""
        return self._spreads
