"""From when to when a certificate of ours is good. Python's ``ssl`` reads that of the other side only."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from cryptography.x509 import load_pem_x509_certificate


def out_of_time(own: Path, now: float) -> str:
    """Why the other side would not take a certificate of ours at ``now``, in seconds; '' if nothing is known.

    It does not say so itself: with TLS 1.3 our side of the handshake is over by then, and the connection is closed.
    """
    try:
        certificate = load_pem_x509_certificate(own.read_bytes())
    except (OSError, ValueError):  # OpenSSL reads it too, and says what is wrong with it
        return ""
    if now >= certificate.not_valid_after_utc.timestamp():
        return f"our certificate in {own} expired at {_shown(certificate.not_valid_after_utc)}"
    if now < certificate.not_valid_before_utc.timestamp():
        return f"our certificate in {own} is good from {_shown(certificate.not_valid_before_utc)} on"
    return ""


def _shown(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
