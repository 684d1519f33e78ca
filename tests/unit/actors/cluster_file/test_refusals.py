"""The sentence for each thing that may be wrong in a cluster file: its path, what was expected, what was found."""

from typing import Any

import pytest

from tests.support.clusters import changed, refusal

TASK = "podgroups.0.tasks.0"
NAMELESS = 'expected keys that are not empty, found ""'
A_TIME = "expected seconds since 1970, within the years 1 to 9999"


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("version", 2, "version: expected 1, found 2"),
        ("version", True, "version: expected a whole number, found true"),
        ("now", 1.7e12, f"now: {A_TIME}, found 1700000000000.0"),
        ("now", -1.7e12, f"now: {A_TIME}, found -1700000000000.0"),
        ("podgroups.0.created", 1700000000000, f"podgroups[0].created: {A_TIME}, found 1700000000000"),
        ("podgroups.0.started", 2**64, f"podgroups[0].started: {A_TIME}, found 18446744073709551616"),
        (f"{TASK}.created", 253_402_300_800, f"podgroups[0].tasks[0].created: {A_TIME}, found 253402300800"),
        ("recent_evictions", [{"at": 1.7e12, "count": 1}], f"recent_evictions[0].at: {A_TIME}, found 1700000000000.0"),
        ("now", float("inf"), "now: expected a finite number, found Infinity"),
        (
            "colour",
            1,
            (
                "colour: expected one of version, id, now, live, policy, nodes, topology, queues, priority_classes, "
                'podgroups, disruption_budgets, recent_evictions, note, source, corrected, expect, found "colour"'
            ),
        ),
        (
            f"{TASK}.request.cpu",
            "-1",
            'podgroups[0].tasks[0].request.cpu: expected a non-negative quantity such as 500m or 32Gi, found "-1"',
        ),
        (
            f"{TASK}.request.gpu",
            0.5,
            "podgroups[0].tasks[0].request.gpu: expected a whole number, since gpu is counted in pieces, found 0.5",
        ),
        (f"{TASK}.request", [1], "podgroups[0].tasks[0].request: expected a mapping, found [1]"),
        (
            f"{TASK}.node",
            None,
            "podgroups[0].tasks[0].node: expected the node of a task that is Running, found nothing",
        ),
        (f"{TASK}.node", "n9", 'podgroups[0].tasks[0].node: expected the name of a node (n0, n1, n2, n3), found "n9"'),
        (f"{TASK}.status", "Pending", 'podgroups[0].tasks[0].node: expected none while Pending, found "n0"'),
        (
            f"{TASK}.nominated_node",
            "n1",
            'podgroups[0].tasks[0].nominated_node: expected none while Running, found "n1"',
        ),
        (
            f"{TASK}.status",
            "Lost",
            (
                "podgroups[0].tasks[0].status: expected 'Pending', 'Bound', 'Running', 'Terminating', 'Succeeded' "
                "or 'Failed', found \"Lost\""
            ),
        ),
        (
            f"{TASK}.subgroup",
            "all",
            'podgroups[0].tasks[0].subgroup: expected the name of a subgroup without children (half), found "all"',
        ),
        (f"{TASK}.index", -1, "podgroups[0].tasks[0].index: expected at least 0, found -1"),
        (f"{TASK}.priority", 2**31, "podgroups[0].tasks[0].priority: expected at most 2147483647, found 2147483648"),
        (
            f"{TASK}.name",
            "worker-1",
            'podgroups[0].tasks[1].name: expected each task once in namespace default, found "worker-1"',
        ),
        (f"{TASK}.name", "a/b", 'podgroups[0].tasks[0].name: expected a name without a slash, found "a/b"'),
        (f"{TASK}.count", 0, "podgroups[0].tasks[0].count: expected at least 1, found 0"),
        (f"{TASK}.labels", {"app": 1}, "podgroups[0].tasks[0].labels.app: expected text, found 1"),
        (
            f"{TASK}.node_affinity",
            [[]],
            "podgroups[0].tasks[0].node_affinity[0]: expected a list that is not empty, found []",
        ),
        (
            f"{TASK}.node_affinity",
            [[{"key": "a", "operator": "In"}]],
            "podgroups[0].tasks[0].node_affinity[0][0].values: expected values for In, found []",
        ),
        (
            f"{TASK}.node_affinity",
            [[{"key": "a", "operator": "Gt", "values": ["x"]}]],
            'podgroups[0].tasks[0].node_affinity[0][0].values: expected one whole number, as text, for Gt, found ["x"]',
        ),
        (
            f"{TASK}.tolerations",
            [{"effect": "NoExecute"}],
            'podgroups[0].tasks[0].tolerations[0].operator: expected Exists where there is no key, found "Equal"',
        ),
        ("podgroups.0.queue", "hr", 'podgroups[0].queue: expected the name of a queue (ml, nlp), found "hr"'),
        ("podgroups.0", {"name": "x"}, "podgroups[0].queue: expected a value, found nothing"),
        (
            "podgroups.0.priority_class",
            "low",
            (
                "podgroups[0].priority_class: expected the name of a priority class (high, system-cluster-critical, "
                'system-node-critical), found "low"'
            ),
        ),
        (
            "podgroups.1.priority",
            1,
            'podgroups[1].priority_class: expected either priority or priority_class, found "high"',
        ),
        (
            "podgroups.1.topology",
            {"required": "zone"},
            'podgroups[1].topology.required: expected the name of a level (rack), found "zone"',
        ),
        (
            "podgroups.1.gang_group",
            ["lab/x"],
            'podgroups[1].gang_group[0]: expected the name of a podgroup (default/old, lab/new), found "lab/x"',
        ),
        (
            "podgroups.1.gang_group",
            ["lab/new", "lab/new"],
            'podgroups[1].gang_group[1]: expected each name once, found "lab/new"',
        ),
        (
            "podgroups.2",
            {"name": "old", "queue": "ml"},
            'podgroups[2].name: expected each name once, found "default/old"',
        ),
        ("podgroups.0.min_available", 1.5, "podgroups[0].min_available: expected a whole number, found 1.5"),
        ("podgroups.0.roles", {"driver": {"min": -1}}, "podgroups[0].roles.driver.min: expected at least 0, found -1"),
        (
            "podgroups.0.subgroups.0.min_available",
            2,
            "podgroups[0].subgroups[0].min_available: expected none beside children, found 2",
        ),
        (
            "podgroups.0.subgroups.0.children.0.name",
            "all",
            'podgroups[0].subgroups[0].children[0].name: expected each name once in its podgroup, found "all"',
        ),
        (
            "podgroups.0.subgroups.0.children.0.min_subgroups",
            1,
            "podgroups[0].subgroups[0].children[0].min_subgroups: expected none without children, found 1",
        ),
        ("nodes.1.name", "n0", 'nodes[1].name: expected each name once, found "n0"'),
        ("nodes", {"n0": {}}, 'nodes: expected a list, found {"n0": {}}'),
        (
            "nodes.0.allocatable.cpu",
            "unlimited",
            'nodes[0].allocatable.cpu: expected a non-negative quantity such as 500m or 32Gi, found "unlimited"',
        ),
        (
            "nodes.0.taints",
            [{"key": "a", "effect": "Never"}],
            "nodes[0].taints[0].effect: expected 'NoSchedule', 'PreferNoSchedule' or 'NoExecute', found \"Never\"",
        ),
        ("nodes.0.unschedulable", "yes", 'nodes[0].unschedulable: expected true or false, found "yes"'),
        ("queues.1.parent", "top", 'queues[1].parent: expected the name of a queue (ml, nlp), found "top"'),
        ("queues.0.parent", "nlp", 'queues[0].parent: expected a queue that is not below this one, found "nlp"'),
        ("queues.1.name", "ml", 'queues[1].name: expected each name once, found "ml"'),
        ("queues.0.weight", -1, "queues[0].weight: expected at least 0, found -1"),
        ("queues.0.weight", 1e308, "queues[0].weight: expected at most 1e+30, found 1e+308"),
        (
            "queues.0.over_quota_weight",
            {"cpu": -1},
            "queues[0].over_quota_weight.cpu: expected a number, 0 to 1e+30, found -1",
        ),
        (
            "queues.0.usage",
            1e31,
            "queues[0].usage: expected a number, 0 to 1e+30, found 1e+31",
        ),
        (
            "queues.0.over_quota_weight",
            "much",
            'queues[0].over_quota_weight: expected a number, 0 to 1e+30, found "much"',
        ),
        (
            "queues.0.deserved.cpu",
            "lots",
            'queues[0].deserved.cpu: expected a non-negative quantity such as 500m or 32Gi, or unlimited, found "lots"',
        ),
        (
            "priority_classes.1",
            {"name": "high", "value": 1},
            'priority_classes[1].name: expected each name once, found "high"',
        ),
        (
            "disruption_budgets.1",
            {"name": "b", "disruptions_allowed": 1},
            'disruption_budgets[1].name: expected each name once, found "default/b"',
        ),
        (
            "recent_evictions",
            [{"queue": "other", "at": 1, "count": 1}],
            'recent_evictions[0].queue: expected the name of a queue (ml, nlp), found "other"',
        ),
        ("recent_evictions", [{"at": -1, "count": 1}], "recent_evictions[0].at: expected at least 0, found -1"),
        ("recent_evictions", [{"at": 1, "count": 0}], "recent_evictions[0].count: expected at least 1, found 0"),
        ("topology.levels", ["rack", "rack"], 'topology.levels[1]: expected each name once, found "rack"'),
        ("topology.labels", {"rack": "x"}, 'topology.domains: expected either labels or domains, found "both"'),
        ("topology", {"levels": ["a"]}, 'topology: expected labels or domains beside the levels, found "neither"'),
        (
            "topology",
            {"levels": ["a", "b"], "labels": {"a": "x"}},
            "topology.labels.b: expected the label key of this level, found nothing",
        ),
        (
            "topology",
            {"levels": ["a"], "labels": {"a": "x", "c": "y"}},
            'topology.labels.c: expected a level, one of a, found "c"',
        ),
        ("topology.domains.1.name", "r0", 'topology.domains[1].name: expected each name once, found "r0"'),
        (
            "topology.domains.1.level",
            "zone",
            'topology.domains[1].level: expected the name of a level (rack), found "zone"',
        ),
        (
            "topology.domains.1.parent",
            "r7",
            'topology.domains[1].parent: expected the name of a domain (r0, r1), found "r7"',
        ),
        (
            "topology.domains.1.parent",
            "r1",
            'topology.domains[1].parent: expected a domain of a wider level than rack, found "r1"',
        ),
        (
            "topology.domains.1.nodes",
            ["n9"],
            'topology.domains[1].nodes[0]: expected the name of a node (n0, n1, n2, n3), found "n9"',
        ),
        (
            "topology.domains.1.nodes",
            ["n0"],
            'topology.domains[1].nodes[0]: expected each node in one domain (it is in r0), found "n0"',
        ),
        (
            "policy.profile",
            "best",
            "policy.profile: expected 'default', 'volcano', 'kai' or 'koordinator', found \"best\"",
        ),
        (
            "policy.actions",
            ["allocate", "evict"],
            (
                "policy.actions[1]: expected one of enqueue, allocate, backfill, consolidation, preempt, reclaim, "
                'gangpreempt, gangreclaim, stalegangeviction, found "evict"'
            ),
        ),
        (
            "policy.tiers",
            [[{"name": "gang", "enabeld": {}}]],
            (
                "policy.tiers[0][0].enabeld: expected one of enabled, arguments, name, "
                'found "enabeld"; did you mean enabled?'
            ),
        ),
        (
            "policy.plugins",
            {"sla": {"arguments": {"waiting_time": 3}}},
            "policy.plugins.sla.arguments.waiting_time: expected a duration such as 3m or 1h30m, found 3",
        ),
        (
            "policy.plugins",
            {"gang": {"arguments": {"x": 3}}},
            'policy.plugins.gang.arguments.x: expected no arguments here (others are not supported yet), found "x"',
        ),
        (
            "policy.plugins",
            {"evictionbudget": {"arguments": {"ratio": 2**63}}},
            "policy.plugins.evictionbudget.arguments.ratio: expected a number, 0 to 2^53, found 9223372036854775808",
        ),
        (
            "policy.plugins",
            {"fairshare": {"arguments": {"k": 1e308}}},
            "policy.plugins.fairshare.arguments.k: expected a number, 0 to 2^53, found 1e+308",
        ),
        ("policy.max_domains", 2**31, "policy.max_domains: expected at most 2147483647, found 2147483648"),
        (
            "policy.action_arguments",
            {"preempt": {"topology_aware": 1}},
            "policy.action_arguments.preempt.topology_aware: expected true or false, found 1",
        ),
        ("policy.consolidation_max_victims", -2, "policy.consolidation_max_victims: expected at least -1, found -2"),
        ("expect", {"cycles": -1}, "expect.cycles: expected at least 0, found -1"),
        ("expect", {"cycles": 10**9}, "expect.cycles: expected at most 100000, found 1000000000"),
        (
            "expect",
            {"evict": []},
            (
                "expect.evict: expected one of cycles, stable_cycles, evicted, evicted_count, bound, bound_count, "
                "nominated, task_status, podgroup_placed, podgroup_phase, podgroup_survivors_min, podgroups_broken, "
                'subgroups_whole_min, one_domain, fair_share, error, nothing_touched, found "evict"; '
                "did you mean evicted?"
            ),
        ),
        (f"{TASK}.request", {"": 1}, f"podgroups[0].tasks[0].request: {NAMELESS}"),
        ("nodes.0.labels", {"": "a"}, f"nodes[0].labels: {NAMELESS}"),
        ("queues.0.deserved", {"": "unlimited"}, f"queues[0].deserved: {NAMELESS}"),
        ("queues.0.over_quota_weight", {"": 1}, f"queues[0].over_quota_weight: {NAMELESS}"),
    ],
)
def test_a_wrong_file_is_refused_whole_by_the_path_of_the_key(path: str, value: Any, sentence: str) -> None:
    assert refusal(changed(path, value)) == sentence


@pytest.mark.parametrize(
    ("tier", "path"),
    [
        ({"name": "gong"}, "policy.tiers[0][0].name: expected one of gang, "),
        ({"name": "gang", "enabled": {"job_oder": True}}, "policy.tiers[0][0].enabled.job_oder: expected one of *, "),
    ],
)
def test_an_unknown_plugin_or_point_is_refused(tier: dict[str, Any], path: str) -> None:
    assert refusal(changed("policy.tiers", [[tier]])).startswith(path)


def test_the_first_offence_of_the_document_is_told() -> None:
    document = changed("podgroups.0.colour", 1)
    document["queues"][0]["weight"] = -1
    assert refusal(document).startswith("queues[0].weight")
    assert refusal(dict(reversed(document.items()))).startswith("podgroups[0].colour")
