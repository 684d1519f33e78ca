"""Queues that hold devices, and the queue plugins asked on them."""

import numpy as np

from pipeline.plugins.capacity.plugin import Capacity
from pipeline.plugins.plugin import Context, Preemptor
from pipeline.plugins.proportion import Proportion
from pipeline.policy import PluginSetting, Purpose
from tests.support.asking import DEFAULT
from tests.support.builders import AXIS, cluster, gang
from tests.support.editing import with_quota

GPU = AXIS.index("gpu")
STRICT, LAX = {"strict": True}, {}


def capacity(snapshot, arguments=STRICT, *, tree=True):
    setting = PluginSetting("capacity", (("*", True), ("hierarchy", tree)), tuple(arguments.items()))
    return Capacity(Context(snapshot, DEFAULT, 0.0), setting)


def proportion(snapshot):
    return Proportion(Context(snapshot, DEFAULT, 0.0), PluginSetting("proportion"))


def asking(podgroup, purpose=Purpose.RECLAIM, **amounts):
    return Preemptor((podgroup,), np.array([amounts.get(name, 0) for name in AXIS], np.int64), purpose)


def shared(*held, waiting=2, gpus=8, **quota):
    """One node; queue q holds ``held[q]`` single devices, and a gang of the last queue waits."""
    gangs = [gang(many, 0, gpu=1, minimum=0, queue=queue) for queue, many in enumerate(held)]
    state = cluster([{"gpu": gpus}], [*gangs, gang(waiting, gpu=1, queue=len(held) - 1)], queues=len(held))
    return with_quota(state, **quota)
