"""Who we are for the broker, and how it is known: files of both are read again for each connection."""

from __future__ import annotations

import os
import ssl
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis.credentials import CredentialProvider

from actors.broker.bus import BrokerRefused
from actors.documents.bounded_files import text_of


class Credentials(CredentialProvider):
    """User and password of the next connection.

    Parameters
    ----------
    password
        Where there is no file, or none that can be read: on this machine, or while it is replaced.
    file
        What it says now is the password.
    """

    def __init__(self, username: str | None, password: str | None, file: Path | None = None) -> None:
        self._username, self._password, self._file = username, password, file

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """As the library asks for them."""
        if self._file is not None:
            with suppress(OSError, ValueError):  # the broker says whether the last one still holds
                self._password = text_of(self._file).strip() or self._password
        password = self._password or ""
        return (password,) if self._username is None else (self._username, password)


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files for ``rediss://``: the broker's authorities (None: the system's), and our own certificate."""

    ca: Path | None = None
    own: Path | None = None
    key: Path | None = None

    def options(self) -> dict[str, Any]:
        """As redis-py takes them. The broker's name is always checked."""
        files = {"ssl_ca_certs": self.ca, "ssl_certfile": self.own, "ssl_keyfile": self.key}
        return {
            "ssl_cert_reqs": "required", "ssl_check_hostname": True, "ssl_min_version": ssl.TLSVersion.TLSv1_2,
            **{name: os.fspath(file) for name, file in files.items() if file is not None},
        }  # fmt: skip

    def check(self) -> None:
        """Read the files: redis-py does with each connection, and what is wrong with them looks like an outage there.

        Raises
        ------
        BrokerRefused
            With the settings that name what cannot be used.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        at = "redis_ca_file", self.ca
        try:
            if self.ca is not None:
                context.load_verify_locations(self.ca)
            if self.own is not None:
                at = "redis_cert_file with redis_key_file", self.own
                context.load_cert_chain(self.own, self.key, password="")  # else a terminal is asked for one
        except OSError as refusal:  # ssl.SSLError is one
            raise BrokerRefused(f"{at[0]}: expected PEM that can be used in {at[1]}, found: {refusal}") from refusal
