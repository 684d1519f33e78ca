"""The figures that an operator watches: one instrument each."""

from __future__ import annotations

from dataclasses import dataclass

from opentelemetry.metrics import Counter, Histogram, Meter

from actors.observability.gauge import Gauge

#: Upper ends of the buckets of durations, in seconds.
_SECONDS = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Figures:
    """The instruments. Durations are seconds; attributes are named where a figure is split."""

    cycle_s: Histogram
    attempt_s: Histogram
    decision_s: Histogram
    starving: Gauge
    unschedulable: Gauge
    unschedulable_tasks: Gauge
    retries: Counter
    verdicts: Counter  # verdict, reason
    evictions: Counter  # action
    evicted_tasks: Counter  # action
    gangs_broken: Counter
    gangs_placed: Counter
    lost_work: Counter
    evicted_to_requested: Gauge  # resource
    reservations_held: Gauge
    reservations_expired: Counter
    reservations_substituted: Counter
    victims_overdue: Counter
    domains_reserved: Gauge
    stream_lag: Gauge  # stream, group
    stream_lag_s: Gauge  # stream, group
    stream_unacknowledged: Gauge  # stream, group
    unlisted_s: Gauge
    writers: Gauge
    dead_letters: Counter  # stream
    broker_outages: Counter
    used: Gauge  # resource
    tasks_bound: Gauge
    tasks_bound_s: Gauge
    tasks_elsewhere: Counter
    queue_held: Gauge  # queue, resource
    queue_deserved: Gauge  # queue, resource
    queue_waiting: Gauge  # queue
    oldest_since: Gauge
    leads: Gauge
    ready: Gauge
    roles_silent: Gauge
    services: Gauge  # state

    @classmethod
    def of(cls, meter: Meter) -> Figures:
        """Every instrument, made on a meter."""
        return cls(
            cycle_s=_duration(meter, "clearway.cycle.duration", "From news to verdicts"),
            attempt_s=_duration(meter, "clearway.attempt.duration", "One gang in one batch of domains"),
            decision_s=_duration(meter, "clearway.decision.duration", "The cycle of a decision, once for each"),
            starving=Gauge(meter, "clearway.gangs.starving", "{gang}", "Gangs that cannot start"),
            unschedulable=Gauge(
                meter, "clearway.podgroups.unschedulable", "{podgroup}", "Podgroups without their minimum"
            ),
            unschedulable_tasks=Gauge(
                meter, "clearway.tasks.unschedulable", "{task}", "Ready tasks that their minima lack"
            ),
            retries=meter.create_counter(
                "clearway.podgroups.retries", "{podgroup}", "Podgroups left for the next cycle, once a cycle"
            ),
            verdicts=meter.create_counter("clearway.verdicts", "{plan}", "Plans by verdict and reason"),
            evictions=meter.create_counter("clearway.evictions", "{statement}", "Statements that evict, by action"),
            evicted_tasks=meter.create_counter("clearway.evictions.tasks", "{task}", "Tasks evicted, by action"),
            gangs_broken=meter.create_counter("clearway.gangs.broken", "{gang}", "Gangs that fell below their minimum"),
            gangs_placed=meter.create_counter("clearway.gangs.placed", "{gang}", "Gangs whose room was committed"),
            lost_work=meter.create_counter(
                "clearway.work.lost",
                "{gang_hour}",
                "Work that evictions threw away, in hours of what the gang that needed the room asks for",
            ),
            evicted_to_requested=Gauge(meter, "clearway.evictions.ratio", "1", "Evicted resources over requested ones"),
            reservations_held=Gauge(meter, "clearway.reservations.held", "{plan}", "Plans whose room is held"),
            reservations_expired=meter.create_counter("clearway.reservations.expired", "{plan}", "Given up unbound"),
            reservations_substituted=meter.create_counter(
                "clearway.reservations.substituted", "{plan}", "Plans replaced: victims did not end"
            ),
            domains_reserved=Gauge(meter, "clearway.domains.reserved", "{domain}", "Domains kept for one gang"),
            victims_overdue=meter.create_counter(
                "clearway.victims.overdue", "{task}", "Victims that did not end by the deadline"
            ),
            stream_lag=Gauge(meter, "clearway.stream.lag", "{entry}", "Entries a group has not read"),
            stream_lag_s=Gauge(
                meter, "clearway.stream.lag.age", "s", "Age of the oldest entry that a group has not finished"
            ),
            stream_unacknowledged=Gauge(
                meter, "clearway.stream.unacknowledged", "{entry}", "Entries that a group received and has not finished"
            ),
            unlisted_s=Gauge(
                meter, "clearway.state.unlisted", "s", "How long the fleet has not listed what it has; 0: it has"
            ),
            writers=Gauge(
                meter, "clearway.fleet.writers", "{process}", "Processes that wrote events in the last minute; one may"
            ),
            dead_letters=meter.create_counter("clearway.dead_letters", "{message}", "Refused input"),
            broker_outages=meter.create_counter("clearway.broker.outages", "{try}", "Tries that found no broker"),
            used=Gauge(meter, "clearway.fleet.used", "1", "Fraction of what the nodes have that tasks hold"),
            tasks_bound=Gauge(meter, "clearway.tasks.bound", "{task}", "Tasks that were bound and have not started"),
            tasks_bound_s=Gauge(
                meter, "clearway.tasks.bound.age", "s", "How long the oldest of them has been bound; 0: there is none"
            ),
            tasks_elsewhere=meter.create_counter(
                "clearway.tasks.elsewhere", "{task}", "Tasks that started on another node than was decided"
            ),
            queue_held=Gauge(meter, "clearway.queue.held", "", "What a queue holds, with the queues below it"),
            queue_deserved=Gauge(meter, "clearway.queue.deserved", "", "What a queue deserves"),
            queue_waiting=Gauge(meter, "clearway.queue.waiting", "{podgroup}", "Podgroups without their minimum"),
            oldest_since=Gauge(
                meter,
                "clearway.podgroups.oldest",
                "s",
                "When the podgroup that has waited longest began to wait (Unix time)",
            ),
            leads=Gauge(meter, "clearway.service.leads", "1", "Whether this service leads"),
            ready=Gauge(meter, "clearway.service.ready", "1", "Whether this service leads or could at once"),
            roles_silent=Gauge(meter, "clearway.roles.silent", "{role}", "Roles that do not answer"),
            services=Gauge(meter, "clearway.services", "{service}", "Services of the fleet, by what they do"),
        )


def _duration(meter: Meter, name: str, what: str) -> Histogram:
    return meter.create_histogram(name, "s", what, explicit_bucket_boundaries_advisory=_SECONDS)
