"""Where victims go: they stay on their nodes if room is left, else move to other nodes, else lose their place.

As in `placement.feasibility`, cards count as resources of their node: columns for them follow those of the resources.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Longs, Rows, begins, distinct, is_among
from pipeline.cluster.rules.minima_met import breaks_without
from pipeline.cluster.rules.minimum import whole_without
from pipeline.cluster.snapshot import Snapshot
from pipeline.keeping import cached_property
from pipeline.kernels import writing
from pipeline.placement.feasibility import asked
from pipeline.placement.filters import repelled
from pipeline.placement.need import Need
from pipeline.plugins.host import Host
from pipeline.solvers.scenarios.moves.moving import Moving, Stays, new_places
from pipeline.solvers.scenarios.moves.places_in_turn import fits_in


@dataclass(frozen=True)
class VictimPlaces:
    """The victims' places once the preemptor has its own.

    Attributes
    ----------
    moved, node, card: int64[M]
        Tasks that start again elsewhere, if only on another card, and their new nodes and cards; NONE for no card.
    lost: int64[L]
        Tasks without a place.
    """

    moved: Rows
    node: Rows
    card: Rows
    lost: Rows

    @cached_property
    def evicted(self) -> Rows:
        """int64[V]: all victims that do not stay."""
        return np.sort(np.concatenate([self.moved, self.lost]))


def all_lost(victims: Rows) -> VictimPlaces:
    """No victim has a place."""
    return VictimPlaces(NO_ROWS, NO_ROWS, NO_ROWS, victims)


def placed_again(
    host: Host, need: Need, places: tuple[Rows, Rows], victims: Rows, *, biggest_first: bool, stays: Stays = Stays.FIRST
) -> VictimPlaces:
    """Place the victims again beside the preemptor, whose tasks take the nodes and cards ``places`` (int64[K] each).

    A victim that fits where it is stays, as ``stays`` says. The others go to the fullest node that takes them, the
    highest priority first, or the biggest first if all must be placed; those of one podgroup, or of one size, have one
    turn. A podgroup keeps its minima by staying and moving, or is lost as a whole. One that has not its minima keeps
    what stays, and nothing of it moves: it could not start there.
    ``biggest_first``: all must be placed, so all are lost as soon as one is.
    """
    snapshot = host.context.snapshot
    tasks, asks, to = snapshot.tasks, need.tasks[: need.minimum], places[0]
    rank = host.job_rank[tasks.podgroup[victims]]
    request = snapshot.request_of(victims)
    share = -(request / np.maximum(snapshot.capacity, 1)).max(axis=1, initial=0.0) if biggest_first else rank
    order = np.lexsort((host.task_ranks(victims), rank, share))
    rows, turn = victims[order], begins(share[order]).cumsum()
    here, held = tasks.node[rows].astype(np.int64), asked(snapshot, rows, tasks.card[rows])
    left = _room_after(snapshot, asks, places, rows, held)
    keeps = np.zeros(len(rows), bool)
    if stays is Stays.FIRST:
        keeps = _stay(here, held, ~_in_the_way(snapshot, need, to, rows, here), left)
    nodes, cards = np.where(keeps, here, NONE), np.full(len(rows), NONE, np.int64)
    rest = Moving(rows[~keeps], turn[~keeps], may_stay=stays is Stays.IN_TURN)
    nodes[~keeps], cards[~keeps] = new_places(host, rest, rows[keeps], nodes[keeps], left, (asks, to))
    if biggest_first and (nodes == NONE).any():
        return all_lost(victims)
    keeps |= (stays is not Stays.FIRST) & (nodes == here) & (cards == tasks.card[rows])
    nodes[~keeps & _repelled(snapshot, need, to, rows, nodes)] = NONE
    owner = tasks.podgroup[rows]
    torn = distinct(owner[nodes == NONE])
    torn = torn[is_among(torn, owner[nodes != NONE])]
    broken = torn[breaks_without(snapshot, torn, rows[(nodes == NONE) & is_among(owner, torn)])]
    nodes[is_among(owner, broken)] = NONE
    moving = distinct(owner[(nodes != NONE) & ~keeps]).astype(np.int64)
    lacking = moving[~whole_without(snapshot, moving, rows[nodes == NONE])]
    nodes[is_among(owner, lacking) & ~keeps] = NONE
    moved, lost = (nodes != NONE) & ~keeps, nodes == NONE
    return VictimPlaces(rows[moved], nodes[moved], cards[moved], rows[lost])


def _room_after(snapshot: Snapshot, asks: Rows, places: tuple[Rows, Rows], victims: Rows, held: Longs) -> Longs:
    """int64[N, R + D]: what nodes and cards have once the tasks ``asks`` have started and all victims have gone.

    ``held`` int64[V, R + D] is what victims hold.
    """
    room, here, (to, on) = snapshot.room.future.copy(), snapshot.tasks.node[victims], places
    snapshot.add_requests(victims, room, here)
    snapshot.add_requests(asks, room, to, -1)
    resources = room.shape[1]
    if held.shape[1] == resources:  # no node has cards
        return room
    cards = snapshot.card_room.future.copy()
    np.add.at(cards, here, held[:, resources:])
    np.subtract.at(cards, to, asked(snapshot, asks, on)[:, resources:])
    return np.concatenate([room, cards], axis=1)


def _in_the_way(snapshot: Snapshot, need: Need, places: Rows, rows: Rows, here: Rows) -> Bools:
    """bool[V]: victims that cannot stay on their nodes ``here`` beside the preemptor, because of anti-affinity."""
    asks = need.tasks[: need.minimum]
    gone = np.concatenate([rows, asks])
    wrong = repelled(snapshot, gone, np.concatenate([here, places]), gone)[: len(rows)]
    return wrong & ~repelled(snapshot, rows, here, gone) if wrong.any() else wrong


def _repelled(snapshot: Snapshot, need: Need, places: Rows, rows: Rows, nodes: Rows) -> Bools:
    """bool[V]: victims whose new nodes anti-affinity forbids beside the preemptor and the others that move."""
    moved, asks = (nodes != NONE) & (nodes != snapshot.tasks.node[rows]), need.tasks[: need.minimum]
    result = np.zeros(len(rows), bool)
    gone = np.concatenate([rows[nodes != snapshot.tasks.node[rows]], asks])
    wrong = repelled(snapshot, np.concatenate([rows[moved], asks]), np.concatenate([nodes[moved], places]), gone)
    result[moved] = wrong[: int(moved.sum())]
    return result


@writing("left")
def _stay(node: Rows, held: Longs, may: Bools, left: Longs) -> Bools:
    """bool[V]: tasks that fit where they are, one after the other. ``left`` is reduced."""
    result = np.zeros(len(node), np.bool_)
    for task in range(len(node)):
        if may[task] and fits_in(held[task], left[node[task]]):
            result[task] = True
            left[node[task]] -= held[task]
    return result
