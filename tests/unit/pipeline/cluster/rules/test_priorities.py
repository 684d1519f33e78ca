"""Ranks of the priorities that podgroups have."""

from pipeline.cluster.rules.priorities import priority_ranks
from tests.support.builders import Gang, Task, cluster


def test_equal_priorities_share_a_rank_and_ranks_have_no_gaps():
    groups = cluster([{}], [Gang([Task()], 1, priority=one) for one in (50, -3, 50, 7)]).podgroups
    priorities, rank = groups.once(priority_ranks)
    assert (priorities.tolist(), rank.tolist()) == ([-3, 7, 50], [2, 0, 2, 1])
    assert not priorities.flags.writeable


def test_without_podgroups_there_are_no_priorities():
    priorities, rank = priority_ranks(cluster([{}], []).podgroups)
    assert (len(priorities), len(rank)) == (0, 0)


def test_priorities_far_apart_are_ranked_like_others():
    groups = cluster([{}], [Gang([Task()], 1, priority=one) for one in (1 << 30, -(1 << 30), 0)]).podgroups
    priorities, rank = priority_ranks(groups)
    assert (priorities.tolist(), rank.tolist()) == ([-(1 << 30), 0, 1 << 30], [2, 0, 1])
