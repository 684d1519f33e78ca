"""The figures that an operator watches: one instrument each."""

from __future__ import annotations

from functools import partial

from opentelemetry.metrics import Histogram, Meter

from actors.observability.gauge import Gauge

#: Upper ends of the buckets of durations, in seconds.
_SECONDS = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
)  # fmt: skip


class Figures:
    """The instruments, made on a meter. Durations are seconds; attributes are named where a figure is split."""

    def __init__(self, meter: Meter) -> None:
        counter, gauge, duration = meter.create_counter, partial(Gauge, meter), partial(_duration, meter)
        self.cycle_s = duration("clearway.cycle.duration", "From news to verdicts")
        self.cycle_began = gauge("clearway.cycle.began", "s", "When the cycle that runs now began (Unix time)")
        self.attempt_s = duration("clearway.attempt.duration", "One gang in one batch of domains")
        self.decision_s = duration("clearway.decision.duration", "The cycle of a decision, once for each")
        self.starving = gauge("clearway.gangs.starving", "{gang}", "Gangs that cannot start")
        self.unschedulable = gauge("clearway.podgroups.unschedulable", "{podgroup}", "Podgroups without their minimum")
        self.unschedulable_tasks = gauge("clearway.tasks.unschedulable", "{task}", "Ready tasks that their minima lack")
        self.retries = counter(
            "clearway.podgroups.retries", "{podgroup}", "Podgroups left for the next cycle, once a cycle"
        )
        self.verdicts = counter("clearway.verdicts", "{plan}", "Plans by verdict and reason")  # verdict, reason
        self.evictions = counter("clearway.evictions", "{statement}", "Statements that evict, by action")  # action
        self.evicted_tasks = counter("clearway.evictions.tasks", "{task}", "Tasks evicted, by action")  # action
        self.gangs_broken = counter("clearway.gangs.broken", "{gang}", "Gangs that fell below their minimum")
        self.gangs_placed = counter("clearway.gangs.placed", "{gang}", "Decisions that promise room or start tasks")
        self.lost_work = counter(
            "clearway.work.lost",
            "{gang_hour}",
            "Work that evictions threw away, in hours of what the gang that needed the room asks for",
        )
        self.evicted_to_requested = gauge(
            "clearway.evictions.ratio", "1", "Evicted resources over requested ones"
        )  # resource
        self.reservations_held = gauge("clearway.reservations.held", "{plan}", "Plans whose room is held")
        self.reservations_expired = counter("clearway.reservations.expired", "{plan}", "Given up unbound")
        self.reservations_substituted = counter(
            "clearway.reservations.substituted", "{plan}", "Plans replaced: victims did not end"
        )
        self.domains_reserved = gauge("clearway.domains.reserved", "{domain}", "Domains kept for one gang")
        self.victims_overdue = counter("clearway.victims.overdue", "{task}", "Victims that did not end by the deadline")
        self.stream_lag = gauge("clearway.stream.lag", "{entry}", "Entries a group has not read")  # stream, group
        self.stream_lag_s = gauge(
            "clearway.stream.lag.age", "s", "Age of the oldest entry that a group has not finished"
        )  # stream, group
        self.stream_unacknowledged = gauge(
            "clearway.stream.unacknowledged", "{entry}", "Entries that a group received and has not finished"
        )  # stream, group
        self.unlisted_s = gauge(
            "clearway.state.unlisted", "s", "How long the fleet has not listed what it has; 0: it has"
        )
        self.writers = gauge(
            "clearway.fleet.writers", "{process}", "Processes that wrote events in the last minute; one may"
        )
        self.dead_letters = counter("clearway.dead_letters", "{message}", "Refused input")  # stream
        self.broker_outages = counter("clearway.broker.outages", "{try}", "Tries that found no broker")
        self.used = gauge("clearway.fleet.used", "1", "Fraction of what the nodes have that tasks hold")  # resource
        self.tasks_bound = gauge("clearway.tasks.bound", "{task}", "Tasks that were bound and have not started")
        self.tasks_bound_s = gauge(
            "clearway.tasks.bound.age", "s", "How long the oldest of them has been bound; 0: there is none"
        )
        self.tasks_elsewhere = counter(
            "clearway.tasks.elsewhere", "{task}", "Tasks that started on another node than was decided"
        )
        self.queue_held = gauge(
            "clearway.queue.held", "", "What a queue holds, with the queues below it"
        )  # queue, resource
        self.queue_deserved = gauge("clearway.queue.deserved", "", "What a queue deserves")  # queue, resource
        self.queue_waiting = gauge("clearway.queue.waiting", "{podgroup}", "Podgroups without their minimum")  # queue
        self.oldest_since = gauge(
            "clearway.podgroups.oldest", "s", "When the podgroup that has waited longest began to wait (Unix time)"
        )
        self.leads = gauge("clearway.service.leads", "1", "Whether this service leads")
        self.ready = gauge("clearway.service.ready", "1", "Whether this service leads or could at once")
        self.roles_silent = gauge("clearway.roles.silent", "{role}", "Roles that do not answer")
        self.services = gauge("clearway.services", "{service}", "Services of the fleet, by what they do")  # state


def _duration(meter: Meter, name: str, what: str) -> Histogram:
    return meter.create_histogram(name, "s", what, explicit_bucket_boundaries_advisory=_SECONDS)
