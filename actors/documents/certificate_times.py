"""From when to when a certificate is good, which stands in its ``Validity`` (RFC 5280, section 4.1.2.5).

Python's ``ssl`` reads that of the other side only. The few fields before it are passed over here.
"""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

_SEQUENCE, _VERSION, _UTC_TIME = 0x30, 0xA0, 0x17
#: From this on the byte of a length says how many bytes the length has.
_LONG = 0x80
#: What stands between version and validity: serial number, algorithm and issuer.
_BEFORE_VALIDITY = 3


def out_of_time(own: Path, now: float) -> str:
    """Why the other side would not take a certificate of ours at ``now``, in seconds; '' if nothing is known.

    It does not say so itself: with TLS 1.3 our side of the handshake is over by then, and the connection is closed.
    """
    try:
        begins, ends = validity(own.read_text())
    except (OSError, ValueError, IndexError):  # OpenSSL reads it too, and says what is wrong with it
        return ""
    if now >= ends:
        return f"our certificate in {own} expired at {_shown(ends)}"
    return f"our certificate in {own} is good from {_shown(begins)} on" if now < begins else ""


def validity(pem: str) -> tuple[float, float]:
    """From when to when the first certificate of a file is good, in seconds since the epoch.

    Raises
    ------
    ValueError, IndexError
        If there is none.
    """
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    first = f"{begin}{pem.split(begin, 1)[1].split(end, 1)[0]}{end}"
    (_, certificate), *_ = _fields(ssl.PEM_cert_to_DER_cert(first))
    fields = _fields(_fields(certificate)[0][1])
    at = _BEFORE_VALIDITY + (fields[0][0] == _VERSION)
    if fields[at][0] != _SEQUENCE:
        raise ValueError("expected a certificate")
    begins, ends = (_moment(*one) for one in _fields(fields[at][1]))
    return begins, ends


def _fields(coded: bytes) -> list[tuple[int, bytes]]:
    """The fields that stand one after the other, each with its tag (X.690, section 8.1)."""
    found, at = list[tuple[int, bytes]](), 0
    while at < len(coded):
        tag, length, at = coded[at], coded[at + 1], at + 2
        if length >= _LONG:
            many = length - _LONG
            length, at = int.from_bytes(coded[at : at + many]), at + many
        found.append((tag, coded[at : at + length]))
        at += length
    return found


def _moment(tag: int, coded: bytes) -> float:
    """A time, in seconds. Two digits of a year are those of 1950 to 2049."""
    text = coded.decode("ascii")
    if tag == _UTC_TIME:
        text = ("19" if text[:2] >= "50" else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _shown(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
