"""Checks every decision of a history against the rules that no decision may break (DESIGN, section "Invariants")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from actors.broker.bus import Entry
from actors.protocol.bodies import Binding, DomainReleased, DomainReserved, Nomination, PlanCommitted, PlanWithdrawn
from actors.protocol.envelopes import Message
from actors.verification.history import FleetFacts, in_stream_order, unreadable
from actors.verification.task_facts import ENDING, GONE, OVER, PENDING, RUNNING, SUCCEEDED, Amounts, GroupFact, TaskFact
from pipeline.policy import ExtensionPoint, Policy

#: Lowest priority of the system classes of Kubernetes, which are never evicted.
_CRITICAL = 2_000_000_000
#: The purpose of decisions that evict the rest of a broken podgroup and make room for none.
_CLEARS = "clear"


@dataclass(slots=True)
class AuditReport:
    """The results of an audit.

    Attributes
    ----------
    broken
        One sentence for each rule that a decision broke; should be empty.
    waited_ms
        By gang that was placed: milliseconds from its arrival to the decision that placed it.
    decisions, withdrawn
        Numbers of decisions by action, and of withdrawals by reason.
    victims
        Number of evicted tasks.
    gangs_broken
        Number of gangs that fell below their minimum by an eviction.
    evicted, requested
        Resources of all victims, and of the tasks that they made room for, in base units.
    """

    broken: list[str] = field(default_factory=list)
    decisions: Counter[str] = field(default_factory=Counter)
    withdrawn: Counter[str] = field(default_factory=Counter)
    waited_ms: dict[str, int] = field(default_factory=dict)
    victims: int = 0
    gangs_broken: int = 0
    evicted: Counter[str] = field(default_factory=Counter)
    requested: Counter[str] = field(default_factory=Counter)

    @property
    def placed(self) -> int:
        """Gangs that were given their minimum."""
        return len(self.waited_ms)

    def ratio(self, resource: str) -> float:
        """Evicted over requested amounts of a resource; 0 if nothing was evicted."""
        return self.evicted[resource] / self.requested[resource] if self.requested[resource] else 0.0


@dataclass(slots=True)
class Audit:
    """Goes through a history once, message by message."""

    #: Match policy of podgroups that state none.
    otherwise: str = "waiting-and-running"
    #: Actions in which work of higher priority may go.
    unranked: frozenset[str] = frozenset()
    report: AuditReport = field(default_factory=AuditReport)
    facts: FleetFacts = field(default_factory=FleetFacts)
    _plans: dict[str, PlanCommitted] = field(default_factory=dict)
    _evicted: dict[tuple[str, int], str] = field(default_factory=dict)
    _promised_by: dict[str, str] = field(default_factory=dict)
    _revision: int = 0
    _epoch: int = 0

    def hear(self, message: Message, at_ms: int) -> None:
        """Take the next message of the history; ``at_ms`` is its time by the broker's clock."""
        if isinstance(message.body, PlanCommitted):
            self._numbered(message, message.body.epoch)
            self._committed(message.body, at_ms)
        elif isinstance(message.body, PlanWithdrawn):
            self._numbered(message, message.body.epoch)
            self._withdrawn(message.body)
        elif isinstance(message.body, DomainReserved | DomainReleased):
            self._numbered(message, message.body.epoch)
        else:
            self.facts.take(message, at_ms)

    def _object(self, plan: str, what: str) -> None:
        self.report.broken.append(f"plan {plan}: {what}")

    def _numbered(self, message: Message, epoch: int) -> None:
        """Numbers of decisions rise, and none is recorded under an older lease than the one before."""
        if message.revision <= self._revision:
            self._object(message.uid, f"has number {message.revision} after {self._revision}")
        if epoch < self._epoch:
            self._object(message.uid, f"was recorded under lease {epoch} after lease {self._epoch}")
        self._revision, self._epoch = max(self._revision, message.revision), max(self._epoch, epoch)

    def _committed(self, made: PlanCommitted, at_ms: int) -> None:
        if made.plan_id in self._plans:
            self._object(made.plan_id, "was recorded twice")
            return
        if made.replaces is not None:
            self._taken_back(made.replaces)
        self._plans[made.plan_id] = made
        self.report.decisions[made.action] += 1
        promised = [one.task for one in made.promised]
        if made.evictions and not promised and not made.bindings and made.purpose != _CLEARS:
            self._object(made.plan_id, "evicts and places nothing")
        made = self._in_its_life(made)
        self._victims(made)
        moves = {one.task for one in made.evictions}
        for one in made.nominations:
            if one.task not in moves and one.node is not None:
                self._wait(made.plan_id, one.task, one.node)
            self.facts.promise(one.task, one.node, one.card)
            self._promised_by[one.task] = made.plan_id
        for start in made.bindings:
            self._wait(made.plan_id, start.task, start.node)
            self.facts.bind(start.task, start.node, start.card)
        self._rooms(made)
        self._gangs(made, at_ms)

    def _in_its_life(self, made: PlanCommitted) -> PlanCommitted:
        """The decision without places of tasks that were made anew while it was judged: it has no effect on these."""

        def meant(one: Nomination | Binding) -> bool:
            task = self.facts.tasks.get(one.task)
            return task is None or one.incarnation is None or one.incarnation >= task.incarnation

        places = {
            "nominations": tuple(filter(meant, made.nominations)),
            "bindings": tuple(filter(meant, made.bindings)),
        }
        return made.model_copy(update=places)

    def _wait(self, plan: str, name: str, node: str | None) -> None:
        """A task that is placed must be waiting. Within a millisecond the fleet's answer may precede the decision."""
        task = self.facts.tasks.get(name)
        answered = task is not None and task.status == RUNNING and task.node == node
        if task is not None and task.status not in (PENDING, SUCCEEDED, OVER, GONE) and not answered:
            self._object(plan, f"places {name}, which is {task.status}")

    # -- victims -----------------------------------------------------------------------------------------------

    def _victims(self, made: PlanCommitted) -> None:
        facts, report = self.facts, self.report
        preemptor = facts.groups.get(made.preemptor or "")
        whole = {owner for one in made.evictions if (owner := self._owner(one.task)) and self._whole(owner)}
        if made.purpose == _CLEARS:
            for owner in sorted(whole):
                self._object(made.plan_id, f"clears {owner}, which has its minimum")
        for one in made.evictions:
            before = self._evicted.setdefault((one.task, one.incarnation), made.plan_id)
            if before != made.plan_id:
                self._object(made.plan_id, f"evicts {one.task}, as plan {before} did")
            task = facts.tasks.get(one.task)
            if task is None or task.incarnation != one.incarnation or task.status not in (RUNNING, ENDING):
                continue  # it ended while the plan was judged
            self._lawful(made, one.task, task, preemptor)
            report.victims += 1
            report.evicted.update(task.request)
            facts.move(one.task, ENDING, task.node, task.card)
        report.gangs_broken += sum(not self._whole(owner) for owner in whole)
        if made.evictions:
            moves = {one.task for one in made.evictions}
            placed = [name for name in _placed(made) if name not in moves]
            for name in placed:
                report.requested.update(facts.tasks[name].request if name in facts.tasks else {})

    def _owner(self, name: str) -> str | None:
        task = self.facts.tasks.get(name)
        return task.podgroup if task is not None else None

    def _whole(self, name: str) -> bool:
        """Whether a podgroup is a gang and has its minimum."""
        group = self.facts.groups.get(name)
        return group is not None and 1 < group.minimum <= len(self.facts.tasks_in(group, RUNNING, SUCCEEDED))

    def _lawful(self, made: PlanCommitted, name: str, task: TaskFact, preemptor: GroupFact | None) -> None:
        if not (task.preemptible or made.purpose == _CLEARS) or task.priority >= _CRITICAL:
            self._object(made.plan_id, f"evicts {name}, which is protected")
        group = self.facts.groups.get(task.podgroup)
        if preemptor is None or group is None:
            return
        own = task.podgroup == made.preemptor
        if own and made.purpose == "preempt":
            if task.priority >= max((self.facts.tasks[one].priority for one in self._known(made)), default=0):
                self._object(made.plan_id, f"preempts {name} for tasks of its podgroup that are not more important")
            return
        lower = group.priority < preemptor.priority or made.action in self.unranked
        if made.purpose == "preempt" and (group.queue != preemptor.queue or not lower):
            self._object(
                made.plan_id,
                f"preempts {name} of queue {group.queue} and priority {group.priority} for {made.preemptor} of queue "
                f"{preemptor.queue} and priority {preemptor.priority}",
            )
        if made.purpose == "reclaim" and group.queue == preemptor.queue:
            self._object(made.plan_id, f"reclaims {name} from the queue that reclaims")

    def _known(self, made: PlanCommitted) -> list[str]:
        """The tasks that it places, as far as they are known."""
        return [name for name in _placed(made) if name in self.facts.tasks]

    # -- placements --------------------------------------------------------------------------------------------

    def _rooms(self, made: PlanCommitted) -> None:
        """No node is promised more than it will have, or bound more than it has."""
        touched = {one.node for one in made.nominations if one.node is not None} | {one.node for one in made.bindings}
        placed = {one.task for one in made.nominations} | {start.task for start in made.bindings}
        for node in sorted(touched):
            room = self.facts.nodes.get(node)
            if room is None:
                continue  # it was lost while the plan was judged
            there = {name: self.facts.tasks[name] for name in self.facts.on_node.get(node, ())}
            now = _taken_of(
                node, (one for one in there.values() if one.node == node and one.status in (RUNNING, ENDING))
            )
            later = _taken_of(node, (one for one in there.values() if one.node != node or one.status != ENDING))
            # A spared victim may hold the room of a nomination; only resources that the placed tasks ask for count.
            asked = {
                one for name in there.keys() & placed for one, amount in there[name].takes_of(node).items() if amount
            }
            for when, used in (("has", now), ("will have", later)):
                over = [
                    f"{used[one]} {one} of {room.get(one, 0)}"
                    for one in sorted(asked)
                    if used.get(one, 0) > room.get(one, 0)
                ]
                if over:
                    self._object(made.plan_id, f"node {node} {when} {', '.join(over)}")

    def _gangs(self, made: PlanCommitted, at_ms: int) -> None:
        """A podgroup that is placed has its minimum, each role its own, and lies in one domain of its level."""
        facts = self.facts
        names = [*(one.task for one in made.promised), *(one.task for one in made.bindings)]
        for owner in sorted({known for name in names if (known := self._owner(name)) is not None}):
            group = facts.groups.get(owner)
            if group is None:
                continue
            stand = facts.tasks_in(group, RUNNING, SUCCEEDED, "nominated")
            alone = group.ran and (group.match_policy or self.otherwise) == "once-satisfied"
            group.ran |= bool(made.bindings)
            if len(stand) < group.minimum and not alone:
                self._object(made.plan_id, f"{owner} gets {len(stand)} of its minimum of {group.minimum}")
            for role, minimum in group.roles.items():
                have = sum(task.role == role for task in stand)
                if group.minimum >= sum(group.roles.values()) and have < minimum:
                    self._object(made.plan_id, f"role {role} of {owner} gets {have} of {minimum}")
            nodes = (task.nominated or task.node or "" for task in stand)  # some were lost while the plan was judged
            places = {facts.place.get(node, {}).get(group.level or "") for node in nodes if node in facts.nodes}
            if group.level is not None and len(places) > 1:
                self._object(made.plan_id, f"{owner} lies in {len(places)} domains of level {group.level}")
            if group.minimum > 1 and group.arrived_ms is not None:
                self.report.waited_ms.setdefault(owner, at_ms - group.arrived_ms)

    def _withdrawn(self, body: PlanWithdrawn) -> None:
        made = self._plans.get(body.plan_id)
        if made is None:
            self._object(body.plan_id, "is withdrawn and was never recorded")
            return
        self.report.withdrawn[body.reason.split(":")[0]] += 1
        self._taken_back(body.plan_id)

    def _taken_back(self, plan_id: str) -> None:
        """End the nominations of a plan; its victims that have not ended yet are spared."""
        made = self._plans.get(plan_id)
        if made is None:
            self._object(plan_id, "is replaced and was never recorded")
            return
        for one in made.nominations:
            task = self.facts.tasks.get(one.task)
            by = self._promised_by.get(one.task)
            if task is not None and task.nominated is not None and task.nominated == one.node and by == plan_id:
                self.facts.promise(one.task, None)
        for victim in made.evictions:
            task = self.facts.tasks.get(victim.task)
            # A later decision, made on older news, may also name a victim that has ended meanwhile.
            if self._evicted.get((victim.task, victim.incarnation)) == plan_id:
                del self._evicted[victim.task, victim.incarnation]
            if task is not None and task.status == ENDING and task.incarnation == victim.incarnation:
                self.facts.spare(victim.task)


def _taken_of(node: str, tasks: Iterable[TaskFact]) -> Amounts:
    """What tasks take together of a node."""
    total: Amounts = {}
    for task in tasks:
        for resource, amount in task.takes_of(node).items():
            total[resource] = total.get(resource, 0) + amount
    return total


def _placed(made: PlanCommitted) -> list[str]:
    return [*(one.task for one in made.nominations), *(one.task for one in made.bindings)]


def _unranked(policy: Policy) -> frozenset[str]:
    """Actions that go task by task, where no plugin says that only work of lower priority may go."""
    if any(one.name == "priority" and one.asks(ExtensionPoint.PREEMPTABLE) for one in policy.plugins):
        return frozenset()
    return frozenset(action for action, solver in policy.solvers if solver == "tasks")


def audited(events: Iterable[Entry], decisions: Iterable[Entry], policy: Policy | None = None) -> AuditReport:
    """Audit the history of the streams, decided under a policy; None: one that leaves nothing else than usual open."""
    audit = Audit() if policy is None else Audit(policy.match_policy, _unranked(policy))
    recorded = list(decisions)
    for at_ms, message in in_stream_order(events, recorded):
        audit.hear(message, at_ms)
    audit.report.broken += [f"decision {one.entry}: cannot be read: {one.reason}" for one in unreadable(recorded)]
    return audit.report
