"""A certificate of ours that is out of its time is said to be, with the time."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme

from actors.documents.certificate_times import out_of_time


@pytest.mark.parametrize(
    ("begins", "ends", "found"),
    [
        (
            datetime(2020, 1, 1, tzinfo=UTC),
            datetime(2026, 1, 31, 12, 30, tzinfo=UTC),
            "expired at 2026-01-31T12:30:00Z",
        ),
        (datetime(2099, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC), "is good from 2099-01-01T00:00:00Z on"),
        (datetime(1970, 1, 1, tzinfo=UTC), datetime(2061, 1, 1, tzinfo=UTC), ""),
    ],
)
@pytest.mark.parametrize("kind", [trustme.KeyType.RSA, trustme.KeyType.ECDSA])
def test_a_certificate_of_ours_is_said_to_be_out_of_its_time(
    tmp_path: Path, begins: datetime, ends: datetime, found: str, kind: trustme.KeyType
) -> None:
    own = tmp_path / "own.pem"
    made = trustme.CA().issue_cert("clearway@localhost", not_before=begins, not_after=ends, key_type=kind)
    own.write_bytes(made.cert_chain_pems[0].bytes())
    now = datetime(2026, 11, 27, tzinfo=UTC).timestamp()
    said = out_of_time(own, now)
    assert said == (f"our certificate in {own} {found}" if found else "")


@pytest.mark.parametrize("content", ["", "nothing", "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"])
def test_nothing_is_said_of_a_file_without_a_certificate(tmp_path: Path, content: str) -> None:
    own = tmp_path / "own.pem"
    own.write_text(content)
    assert out_of_time(own, 0.0) == ""
