"""What a decision says in names."""

from actors.cli.simulate import open_case
from actors.columns.decision_message import decision
from actors.columns.names import Names
from actors.protocol.bodies import PlanCommitted
from pipeline.cycle import cycle
from tests.support.gathering import cluster_file, running, waiting


class Called:
    """The names of a case, as a decision asks for them."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def __getattr__(self, what: str) -> object:
        return lambda rows: [getattr(self._names, what)[row] for row in rows]


def decided(*podgroups: dict[str, object]) -> PlanCommitted:
    case = open_case(cluster_file({"s1": {"b1": ["n1", "n2"]}}, 4, list(podgroups)))
    (plan,) = cycle(case.snapshot, case.policy, case.now).plans
    return decision("p", 1, plan, plan.statement, case.snapshot, Called(case.names), 9.0)  # type: ignore[arg-type]


def test_victims_are_told_for_which_podgroups_they_end() -> None:
    both = {"gang_group": ["default/gang-b", "default/gang-a"], "topology": {"required": "block"}}
    made = decided(running("low", ["n1", "n2"], 4), waiting("gang-b", [4], **both), waiting("gang-a", [4], **both))
    assert made.condition is not None
    assert made.condition.model_dump() == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "clearway: preempting to accommodate higher priority pods, "
        "preemptor: default/gang-a,default/gang-b, triggerPod: default/gang-a-0",
    }


def test_a_decision_without_victims_says_nothing_of_them() -> None:
    made = decided(waiting("gang", [4, 4]))
    assert made.condition is None
    assert "condition" not in made.model_dump(mode="json", exclude_defaults=True)
