"""The broker that a command uses: the one of the settings, or an embedded one while the command runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from actors.broker.bus import Outage
from actors.broker.embedded_broker import EmbeddedBroker
from actors.broker.redis_client import RedisClient
from actors.broker.redis_credentials import Certificates
from actors.broker.retry import RetryPolicy, report_outage
from actors.configuration.settings import Settings


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Address and credentials of the broker, as a value for other processes; its text shows no secret."""

    url: str = field(repr=False)
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    wait_s: float | None = None
    certificates: Certificates = field(default_factory=Certificates)
    password_file: Path | None = None

    def client(
        self,
        name: str,
        *,
        say: Callable[[Outage], None] = report_outage,
        pause: Callable[[float], object] = time.sleep,
        waits_for_rights: bool = False,
    ) -> RedisClient:
        """Connections that are made once something is asked: the broker may be away until then. See `connect`."""
        return RedisClient(
            self.url, username=self.username, password=self.password, password_file=self.password_file,
            name=f"clearway-{name}", retry=RetryPolicy(limit_s=self.wait_s), say=say, pause=pause,
            certificates=self.certificates, waits_for_rights=waits_for_rights,
        )  # fmt: skip

    def connect(
        self,
        name: str,
        *,
        functions: bool = True,
        say: Callable[[Outage], None] = report_outage,
        pause: Callable[[float], object] = time.sleep,
        waits_for_rights: bool = False,
    ) -> RedisClient:
        """Wait for the broker and load our functions into it.

        Parameters
        ----------
        functions
            False for a role that only reads and writes streams, which needs no right to load functions.
        waits_for_rights
            Whether a broker that refuses our user is waited for.

        Raises
        ------
        BrokerUnreachable
            After ``wait_s`` seconds without an answer.
        BrokerRefused
            If it is too old or refuses the credentials.
        """
        client = self.client(name, say=say, pause=pause, waits_for_rights=waits_for_rights)
        if functions:
            client.check()
        else:
            client.greet()
        return client


#: What a process says that no other can find.
ALONE = "no broker is named (--redis-url): it has one of its own, which no other process reaches"


@contextmanager
def broker_for(settings: Settings, *, tcp: bool = False) -> Iterator[BrokerAddress]:
    """The address of the broker in the settings, or of an embedded one that lives as long as the block.

    Parameters
    ----------
    tcp
        Reach the embedded one over TCP instead of its socket file.
    """
    if settings.redis_url is not None:
        yield BrokerAddress(
            settings.redis_url.get_secret_value(), settings.redis_username, settings.password, settings.broker_wait_s,
            Certificates(settings.redis_ca_file, settings.redis_cert_file, settings.redis_key_file),
            settings.password_again,
        )  # fmt: skip
        return
    with EmbeddedBroker(tcp=tcp, binary=settings.broker_binary) as broker:
        yield BrokerAddress(broker.tcp_url if tcp else broker.url, wait_s=settings.broker_wait_s)
