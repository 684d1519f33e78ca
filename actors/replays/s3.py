"""Scenario S3: an LLM cluster on a real Clos network with its stream of jobs and recorded big gangs.

Synthetic, beside the columns of the scenario and the assumptions of every stream: big gangs have high priority and go
to the queues in turn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from actors.replays.lingjun import BIG, open_stream
from actors.replays.streams.jobs import Stream
from actors.replays.streams.lives import Lives
from actors.replays.streams.measures import waits
from actors.replays.streams.scenario import StreamScenario

#: Workers from which on the wait of a gang is reported by itself.
_WIDE = 120


def _aims(stream: Stream, lives: Lives, until: float) -> list[dict[str, Any]]:
    big = [row for row, job in enumerate(stream.jobs) if job.kind == BIG]
    pretrain = [row for row, job in enumerate(stream.jobs) if job.kind == "Pretrain"]
    wide = [row for row in big if stream.jobs[row].workers >= _WIDE]
    low = [row for row, job in enumerate(stream.jobs) if job.priority == "low"]
    aims = {
        "big_gangs": len(big),
        "placed": len(lives.at_level),
        "at_their_level": sum(lives.at_level.values()),
        "gpu_hours_lost_by_pretrain": round(float(lives.lost[pretrain].sum()), 1),
        f"wait_of_{_WIDE}_workers_and_more_s": waits(stream, lives, wide, until),
        "low_never_started": f"{int(np.isnan(lives.first[low]).sum())} of {len(low)}",
        "low_evicted_more_than_once": int((lives.evicted[low] > 1).sum()),
    }
    return [aims]


#: By default 18 hours are replayed; the cluster is full from about the tenth hour on.
S3 = StreamScenario("s3", 18.0, open_stream, _aims)
