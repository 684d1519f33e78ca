"""``docs/states.md`` says what moves a task, a podgroup and a lease; its tables are what the program does."""

import re
from pathlib import Path

import numpy as np
import pytest

from actors.broker.ledger import Busy, Duplicate, Fenced, Lease, Record, Recorded
from actors.broker.memory_bus import MemoryBus
from actors.broker.memory_ledger import MemoryLedger
from pipeline.cluster.arrays import NONE
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, FAILED, PENDING, PHASE_RUNNING, RUNNING, STATUS_NAMES, SUCCEEDED, TERMINATING
from pipeline.cluster.updates.events import EVICTED, REPLACED, Changes
from pipeline.cluster.updates.fold import fold
from tests.support.editing import with_tasks
from tests.support.small_states import decided, departure, small_state, task_news

PAGE = (Path(__file__).parents[3] / "docs" / "states.md").read_text()
LIFE, HERE, THERE = 5, 1, 2
EVENTS = {
    "Pending": Changes(tasks=task_news((0, PENDING, NONE, 1))),
    "Bound": Changes(tasks=task_news((0, BOUND, THERE, 1))),
    "started": Changes(tasks=task_news((0, RUNNING, THERE, 1))),
    "terminating": Changes(tasks=task_news((0, TERMINATING, NONE, 1))),
    "Succeeded": Changes(tasks=task_news((0, SUCCEEDED, NONE, 1))),
    "Failed": Changes(tasks=task_news((0, FAILED, NONE, 1))),
    "Evicted": Changes(tasks=task_news((0, EVICTED, NONE, 1))),
    "Evicted for good": Changes(tasks=task_news((0, EVICTED, NONE, 1))),
    "replaced": Changes(tasks=task_news((0, REPLACED, NONE, 1))),
    "node removed": Changes(left=departure(HERE, 1)),
    "podgroup removed": Changes(removed=departure(0, 1)),
}
DECISIONS = {
    "nominated": Changes(decided=decided(1, nominated=[(0, THERE, LIFE)])),
    "nomination ended": Changes(decided=decided(1, nominated=[(0, NONE, LIFE)])),
    "evicted": Changes(decided=decided(1, evicted=[(0, LIFE)])),
    "spared": Changes(decided=decided(1, spared=[(0, LIFE)])),
    "bound": Changes(decided=decided(1, bound=[(0, THERE, LIFE)])),
    "moved": Changes(decided=decided(1, evicted=[(0, LIFE)], nominated=[(0, THERE, LIFE)])),
}
STATUSES = (*("Pending", "Waiting", "Bound", "Running", "Terminating", "Moving"), *STATUS_NAMES[TERMINATING + 1 :])
#: Statuses that are another one with a nomination.
NOMINATED = {"Waiting": "Pending", "Moving": "Terminating"}


def table(name: str) -> dict[tuple[str, str], str]:
    """The cells of a table of the page, by row and column."""
    text = re.search(rf"<!-- {name} -->\n(.*?)\n<!-- end -->", PAGE, re.DOTALL)
    assert text is not None, f"docs/states.md has no table {name!r}"
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text[1].splitlines()]
    return {(row[0], column): cell for row in rows for column, cell in zip(head[1:], row[1:], strict=True)}


def in_status(name: str, gone_when_evicted: bool = False) -> Snapshot:
    """Task 0 in a status, in life 5, on node 1 or promised it; if it moves, promised node 2."""
    state = small_state()
    columns = {
        "status": STATUS_NAMES.index(NOMINATED.get(name, name)),
        "node": NONE if name in ("Pending", "Waiting") else HERE,
        "nominated": {"Waiting": HERE, "Moving": THERE}.get(name, NONE),
        "incarnation": LIFE,
        "gone_when_evicted": gone_when_evicted,
    }
    return with_tasks(state, 0, **columns)


def became(after: Snapshot) -> str:
    """What the page calls what task 0 became."""
    status = STATUS_NAMES[after.tasks.status[0]]
    nominated = after.tasks.nominated[0] != NONE
    named = {plain: word for word, plain in NOMINATED.items()}
    word, lives = named[status] if nominated else status, int(after.tasks.incarnation[0]) - LIFE
    return f"{word} +{lives}" if lives else word


@pytest.mark.parametrize(("name", "news"), [("task events", EVENTS), ("task decisions", DECISIONS)])
def test_the_page_has_every_status_and_every_event(name: str, news: dict[str, Changes]) -> None:
    assert list(table(name)) == [(status, event) for status in STATUSES for event in news]


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("event", [*EVENTS, *DECISIONS])
def test_a_task_becomes_what_the_page_says(status: str, event: str) -> None:
    said = (table("task events") | table("task decisions"))[status, event]
    before = in_status(status, gone_when_evicted=event == "Evicted for good")
    after = fold(before, (EVENTS | DECISIONS)[event])
    assert became(after) == (status if said == "–" else said)


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("said", [PENDING, BOUND, RUNNING, TERMINATING, SUCCEEDED, FAILED, EVICTED, REPLACED])
def test_an_event_of_an_earlier_life_changes_no_task(status: str, said: int) -> None:
    before, place = in_status(status), THERE if said in (BOUND, RUNNING) else NONE
    assert became(fold(before, Changes(tasks=task_news((0, said, place, 1, LIFE - 1))))) == status


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("made", ["evicted", "spared"])
def test_a_decision_about_an_earlier_life_changes_no_task(status: str, made: str) -> None:
    before = in_status(status)
    assert became(fold(before, Changes(decided=decided(1, **{made: [(0, LIFE - 1)]})))) == status


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize(("event", "said"), [("started", RUNNING), ("terminating", TERMINATING), ("Failed", FAILED)])
def test_an_event_of_a_later_life_does_the_same_in_that_life(status: str, event: str, said: int) -> None:
    before, place = in_status(status), THERE if said == RUNNING else NONE
    after = fold(before, Changes(tasks=task_news((0, said, place, 1, LIFE + 1))))
    cell = table("task events")[status, event]
    expected = NOMINATED.get(status, status) if cell == "–" else cell
    assert became(after) == f"{'Running' if said == RUNNING else expected} +1"


def test_a_task_that_moves_waits_in_its_next_life_and_ends_for_good_where_its_new_node_is_removed() -> None:
    moving = in_status("Moving")
    assert became(fold(moving, Changes(tasks=task_news((0, PENDING, NONE, 1, LIFE + 1))))) == "Waiting +1"
    assert became(fold(moving, Changes(left=departure(THERE, 1)))) == "Terminating"


# -- podgroup ----------------------------------------------------------------------------------------------------------

PODGROUPS = ("New", "Partial", "Whole", "Stale", "Idle")
RUNNING_TASKS = {"minimum reached": 2, "below the minimum, some run": 1, "below the minimum, nothing runs": 0}


def podgroup_state(after: Snapshot) -> str:
    """What the page calls podgroup 0."""
    groups, ready = after.podgroups, int(np.isin(after.tasks.status[:4], (BOUND, RUNNING, SUCCEEDED)).sum())
    if np.isnan(groups.started[0]):
        return "New" if np.isnan(groups.stale_since[0]) else "Partial"
    assert groups.phase[0] == PHASE_RUNNING
    if not np.isnan(groups.stale_since[0]):
        return "Stale"
    return "Whole" if ready >= groups.min_available[0] else "Idle"


def with_running(before: Snapshot, count: int, revision: int) -> Snapshot:
    """So many of the four tasks of podgroup 0 run, one event a task; its minimum is 2."""
    news = [(row, RUNNING if row < count else PENDING, row if row < count else NONE, revision) for row in range(4)]
    # What starts comes first on the way up and last on the way down, so that nothing else happens in between.
    running = int((before.tasks.status[:4] == RUNNING).sum())
    return fold(before, Changes(tasks=task_news(*(news if count >= running else reversed(news)))))


def in_podgroup_state(name: str) -> Snapshot:
    state = small_state(minimum=2)
    for step, count in enumerate({"New": (), "Partial": (1,), "Whole": (2,), "Stale": (2, 1), "Idle": (2, 0)}[name]):
        state = with_running(state, count, step + 1)
    assert podgroup_state(state) == name
    return state


def test_the_page_has_every_state_of_a_podgroup() -> None:
    assert list(table("podgroup")) == [(state, event) for state in PODGROUPS for event in RUNNING_TASKS]


@pytest.mark.parametrize("state", PODGROUPS)
@pytest.mark.parametrize("event", RUNNING_TASKS)
def test_a_podgroup_becomes_what_the_page_says(state: str, event: str) -> None:
    after = with_running(in_podgroup_state(state), RUNNING_TASKS[event], 9)
    assert podgroup_state(after) == table("podgroup")[state, event]


# -- lease -------------------------------------------------------------------------------------------------------------

LEASES = ("free", "ours", "another's")
CALLS = ("acquire", "renew", "release", "commit", "commit of a known key")


def answered(state: str, call: str) -> str:
    """What the ledger answers to a committer that was given an epoch before, in the page's words."""
    ledger = MemoryLedger(MemoryBus("house", lambda: 0.0), lambda: 0.0)
    ours = ledger.acquire("us", 10_000)
    assert isinstance(ours, Lease)
    ledger.commit(ours, [Record("known", b"first")])
    if state != "ours":
        ledger.release(ours)
    if state == "another's":
        ledger.acquire("them", 10_000)
    if call == "acquire":
        taken = ledger.acquire("us", 10_000)
        return "Busy" if isinstance(taken, Busy) else f"Lease, next epoch{'' if taken.epoch > ours.epoch else '?'}"
    if call == "renew":
        return "held" if ledger.renew(ours, 10_000) else "lost"
    if call == "release":
        return "free" if ledger.release(ours) else "lost"
    key = "known" if call == "commit of a known key" else "new"
    (outcome,) = ledger.commit(ours, [Record(key, b"verdict")])
    assert isinstance(outcome, (Recorded, Duplicate, Fenced))
    return type(outcome).__name__


def test_the_page_has_every_state_of_a_lease() -> None:
    assert list(table("lease")) == [(state, call) for state in LEASES for call in CALLS]


@pytest.mark.parametrize("state", LEASES)
@pytest.mark.parametrize("call", CALLS)
def test_a_ledger_answers_what_the_page_says(state: str, call: str) -> None:
    assert answered(state, call) == table("lease")[state, call]
