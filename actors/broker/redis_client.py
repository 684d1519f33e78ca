"""Connections to the broker with the settings that matter, and its errors as `BrokerUnreachable` or `BrokerRefused`.

redis-py's defaults do harm here: ten silent retries double writes, and its five-second socket timeout cuts blocking
reads. So retries are off (`retry.persist` repeats what may be repeated, and says so), and blocking reads have a pool
of their own whose timeout outlasts the block.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AskError,
    AuthenticationError,
    AuthorizationError,
    ClusterDownError,
    ConnectionError,  # noqa: A004 - redis-py's name; the built-in one is not used here
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TimeoutError,  # noqa: A004 - as above
    TryAgainError,
)
from redis.retry import Retry

from actors.broker.bus import BrokerRefused, BrokerUnreachable, Outage
from actors.broker.functions import LIBRARY, function_name
from actors.broker.redis_credentials import Certificates, Credentials
from actors.broker.retry import ENDLESS, RetryPolicy, persist, report_outage
from actors.documents.certificate_times import out_of_time

T = TypeVar("T")
log = logging.getLogger(__name__)

WRITE_TIMEOUT_S = 5.0
#: The longest a read may block, and how much longer its answer may take.
MAX_BLOCK_MS, BLOCK_MARGIN_S = 10_000, 2.5
#: What a broker answers while its disk is full, its replicas are away or a script runs, and to a read that waits while
#: it becomes a replica. redis-py has classes for other answers, and takes their first word away.
_PASSING = ("MISCONF", "NOREPLICAS", "BUSY ", "UNBLOCKED")
_OTHERWISE = "or set commit_synced = false and accept that decisions may be lost"


def broker_address(url: str) -> str:
    """The part of a broker's URL that may be shown: no user, no password, no query."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return f"unix:{parts.path}"
    return f"{parts.hostname or 'localhost'}:{parts.port or 6379}"


class RedisClient:
    """The connections of one process to the broker, shared by bus and ledger; several threads may use it.

    Parameters
    ----------
    url
        ``redis://``, ``rediss://`` or ``unix://``. Never logged; `address` is what may be shown.
    username, password
        Override those of the URL, which need not contain a secret then.
    password_file
        Has the password, and is read again for each connection; ``password`` is what it had at the start.
    name
        Shown by the broker's ``CLIENT LIST``.
    retry, say, pause
        How an unreachable broker is waited for (see `retry.persist`).
    certificates
        For ``rediss://``.

    Attributes
    ----------
    waits_for_rights
        Whether a broker that refuses our user, or is set up otherwise than it must be, is waited for: it let us in
        before, and may be made to again.
    """

    def __init__(
        self,
        url: str,
        *,
        username: str | None = None,
        password: str | None = None,
        password_file: Path | None = None,
        name: str = "clearway",
        retry: RetryPolicy = ENDLESS,
        say: Callable[[Outage], None] = report_outage,
        pause: Callable[[float], object] = time.sleep,
        certificates: Certificates | None = None,
        waits_for_rights: bool = False,
    ) -> None:
        self._let_in, self._said_volatile = False, False
        self._papers: Certificates | None = None
        self.waits_for_rights = waits_for_rights
        self._retry, self._say, self._pause = retry, say, pause
        options: dict[str, Any] = {
            "socket_connect_timeout": 2.0, "retry": Retry(NoBackoff(), 0), "health_check_interval": 15,
            "protocol": 3, "decode_responses": False, "client_name": name,
        }  # fmt: skip
        if not url.startswith("unix:"):
            options["socket_keepalive"] = True
        if url.startswith("rediss:"):
            papers = self._papers = certificates or Certificates()
            papers.check()
            options |= papers.options()
        try:
            self.address = broker_address(url)
            self._quick = redis.Redis.from_url(url, socket_timeout=WRITE_TIMEOUT_S, **options)
            self._slow = redis.Redis.from_url(url, socket_timeout=MAX_BLOCK_MS / 1000 + BLOCK_MARGIN_S, **options)
        except ValueError:  # the library's message may quote the password
            raise BrokerRefused("redis_url must begin with redis://, rediss:// or unix://, and be a URL") from None
        for one in (self._quick, self._slow):
            made_with = one.connection_pool.connection_kwargs
            user, secret = made_with.pop("username", None), made_with.pop("password", None)
            if username or password or user or secret:
                ours = Credentials(username or user, password or secret, password_file)
                made_with["credential_provider"] = ours

    def once(self, ask: Callable[[Any], T], *, blocking: bool = False) -> T:
        """Ask the broker exactly once.

        Raises
        ------
        BrokerUnreachable
            No answer, or none now (loading, failing over, memory or disk full, and refusing our user where that is
            waited for): whether a write happened is unknown.
            Where the broker has become a replica, its address is looked up anew the next time.
        BrokerRefused
            The broker answered with an error.
        """
        client = self._slow if blocking else self._quick
        try:
            answer = ask(client)
        except (AuthenticationError, AuthorizationError) as refusal:
            if self.waits_for_rights:
                raise BrokerUnreachable(f"it refuses the credentials: {refusal}") from refusal
            raise BrokerRefused(f"broker at {self.address} refused the credentials: {refusal}") from refusal
        except ConnectionError as refusal:
            untrusted = isinstance(refusal.__cause__ or refusal.__context__, ssl.SSLCertVerificationError)
            if untrusted:  # waiting does not mend it, and the connection may be intercepted
                raise BrokerRefused(f"broker at {self.address} is not who it should be: {refusal}") from refusal
            raise BrokerUnreachable(self._closed(str(refusal) or type(refusal).__name__)) from refusal
        except ReadOnlyError as refusal:
            client.connection_pool.disconnect(inuse_connections=False)  # the address may lead to its successor
            raise BrokerUnreachable(str(refusal)) from refusal
        except (TimeoutError, OutOfMemoryError, ClusterDownError, TryAgainError) as refusal:
            raise BrokerUnreachable(str(refusal) or type(refusal).__name__) from refusal
        except AskError as refusal:  # MOVED as well
            raise BrokerRefused(
                f"broker at {self.address} is a node of a cluster that sends us to another for this fleet's keys "
                f"({refusal}), and we follow nowhere: name the node that has them, or a broker without a cluster"
            ) from refusal
        except RedisError as refusal:
            if str(refusal).startswith(_PASSING):
                raise BrokerUnreachable(str(refusal)) from refusal
            denied = isinstance(refusal, NoPermissionError) or "ACL failure in script" in str(refusal)
            if denied and self.waits_for_rights:
                raise BrokerUnreachable(f"it refuses our user: {refusal}") from refusal
            raise BrokerRefused(f"broker at {self.address} refused: {refusal}") from refusal
        self._let_in = True
        return answer

    def _closed(self, reason: str) -> str:
        """Why a connection has ended, with what may be behind it where certificates are in use."""
        own, wrong = self._papers.own if self._papers is not None else None, ""
        if own is not None:
            wrong = out_of_time(own, time.time())
        elif self._papers is not None and not self._let_in and "closed" in reason:
            wrong = "if it asks for certificates, we have none: redis_cert_file"
        return f"{reason.rstrip('.')}: {wrong}" if wrong else reason

    def ask(self, ask: Callable[[Any], T], *, blocking: bool = False) -> T:
        """Ask until there is an answer; only for calls that may be repeated."""
        return persist(
            lambda: self.once(ask, blocking=blocking),
            where=self.address,
            retry=self._retry,
            say=self._say,
            pause=self._pause,
        )

    def call(self, name: str, keys: list[str], args: list[str | bytes | int]) -> Any:
        """Run one of the broker functions, which may all be called twice; loads the library if it is absent."""
        whole = (function_name(name), len(keys), *keys, *args)

        def run(client: Any) -> Any:
            try:
                return client.fcall(*whole)
            except ResponseError as refusal:
                # Nothing ran, so nothing is done twice: this is the first call, or the broker lost its memory.
                if "function not found" not in str(refusal).lower():
                    raise
                client.function_load(LIBRARY, replace=True)
                return client.fcall(*whole)

        return self.ask(run)

    def greet(self) -> str:
        """Wait for the broker and return its address."""
        self.ask(lambda client: client.ping())
        return self.address

    def check(self) -> str:
        """Wait for the broker, load our functions and return its address.

        Raises
        ------
        BrokerRefused
            For a broker without functions (before Redis 7), or without the right to load them.
        """
        try:
            self.ask(lambda client: client.function_load(LIBRARY, replace=True))
        except BrokerRefused as refusal:
            if "unknown command" in str(refusal).lower():
                raise BrokerRefused(
                    f"broker at {self.address} is too old: Redis 7.2 or Valkey 8.1 and later are supported"
                ) from refusal
            raise
        return self.address

    def check_synced(self) -> None:
        """Make sure that the broker answers a write only once its disk has it, and drops no keys to make room.

        Only ``appendfsync always`` promises that. ``WAITAOF`` does not: under ``everysec`` it answers at once where the
        server is a Valkey or a Redis 7.4 (redis/redis pull request 13793), and elsewhere up to a second late.

        Raises
        ------
        BrokerRefused
            Where it does not, or does not say; see `waits_for_rights`.
        """

        def look(client: Any) -> str | None:
            wrong = self._unsafe(client.config_get("appendonly", "appendfsync", "maxmemory-policy"))
            if wrong is not None and self.waits_for_rights:
                raise BrokerUnreachable(f"it {wrong}")
            return wrong

        try:
            wrong = self.ask(look)
        except BrokerRefused as refusal:
            if isinstance(refusal.__cause__, AuthenticationError):
                raise
            wrong = "does not say whether it waits for its disk: let our user ask CONFIG GET, "
            raise BrokerRefused(f"broker at {self.address} {wrong}{_OTHERWISE}") from refusal
        if wrong is not None:
            raise BrokerRefused(f"broker at {self.address} {wrong}")

    def _unsafe(self, said: Mapping[Any, Any]) -> str | None:
        """Why a broker with these settings may lose a decision; a lease that it may lose is only logged, once."""
        found = {_text(key): _text(value) for key, value in said.items()}
        evicts = found.pop("maxmemory-policy", "noeviction")
        if evicts.startswith("allkeys-"):
            return (
                f"drops any key where its memory is full (maxmemory-policy {evicts}), and decisions with it: set "
                f"maxmemory-policy noeviction there, {_OTHERWISE}"
            )
        if evicts.startswith("volatile-") and not self._said_volatile:
            self._said_volatile = True
            log.warning(
                "broker at %s drops the lease where its memory is full (maxmemory-policy %s), and who leads changes "
                "again and again: set maxmemory-policy noeviction there", self.address, evicts,
            )  # fmt: skip
        if found == {"appendonly": "yes", "appendfsync": "always"}:
            return None
        told = ", ".join(f"{key} {value}" for key, value in sorted(found.items()))
        return (
            f"answers before its disk has what was written ({told}): set appendonly yes and appendfsync always there, "
            f"{_OTHERWISE}"
        )

    def close(self) -> None:
        """Close every connection."""
        self._quick.close()
        self._slow.close()


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
