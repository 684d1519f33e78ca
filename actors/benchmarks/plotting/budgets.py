"""The budgets of the design: at most how much a figure of a benchmark may be."""

from __future__ import annotations

from typing import NamedTuple


class FigureBudget(NamedTuple):
    """At most how much a figure may be, in the unit of the figure."""

    benchmark: str
    figure: str
    most: float


_TIMES = (
    ("decide_10k", 6.0, 12.0), ("decide_100k", 15.0, 30.0), ("decide_200k", 30.0, 60.0),
    ("decide_pod_100k", 60.0, None),
    ("gather_100k", 10.0, None), ("fold_10k", 10.0, None), ("snapshot_1m", 15.0, None), ("publish", 10.0, None),
    ("node_join", 20.0, None), ("node_join_live", 20.0, None), ("commit_100", 3.0, None), ("cold_start", 4_000.0, None),
    ("ingestion", 5_000.0, None), ("recovery", 1_000.0, None), ("load_100k", 2_000.0, None),
    ("simulate_10k", 800.0, None), ("import", 300.0, None), ("takeover", 6_000.0, None), ("live_1k5", 15.0, 75.0),
    ("live_10k", 25.0, 125.0), ("live_100k", 80.0, 400.0),
)  # fmt: skip
_OTHERS = (
    ("decide_10k", "unpolished_p50_ms", 2.5), ("domain_128", "unpolished_p50_ms", 0.15),
    ("domain_1024", "unpolished_p50_ms", 1.2), ("snapshot_1m", "decode_p50_ms", 1.0), ("what_if", "each_us", 20.0),
    ("fresh_10k", "fresh_ratio", 1.2), ("fresh_10k", "sent_ratio", 1.2), ("fresh_100k", "fresh_ratio", 1.2),
    ("fresh_100k", "sent_ratio", 1.2), ("growth", "exponent", 1.15), ("optimality", "sum_ratio", 1.02),
    *((f"{name}_10k", figure, most) for name in ("shapes", "roles", "subgroups", "cards", "affinity")
      for figure, most in (("fleet_ratio", 1.2), ("gang_ratio", 3.0))),
)  # fmt: skip

#: All of them, those of times first.
BUDGETS: tuple[FigureBudget, ...] = (
    *(FigureBudget(name, figure, most) for name, *times in _TIMES
      for figure, most in zip(("p50_ms", "p99_ms"), times, strict=True) if most is not None),
    *(FigureBudget(*one) for one in _OTHERS),
)  # fmt: skip
