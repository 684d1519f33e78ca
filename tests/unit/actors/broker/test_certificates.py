"""Files for TLS that cannot be used are refused by the name of their setting: waiting does not mend them."""

from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from actors.broker.bus import BrokerRefused
from actors.broker.redis_client import RedisClient
from actors.broker.redis_credentials import Certificates
from tests.support.broker_doors import Papers


def connecting(files: Certificates) -> None:
    """Make a client; it connects when it is first asked."""
    RedisClient("rediss://localhost:1/0", certificates=files).close()


def test_files_that_fit_are_taken(tmp_path: Path) -> None:
    papers = Papers(tmp_path)
    connecting(Certificates(papers.ca, papers.own, papers.key))


PAIR = "redis_cert_file with redis_key_file"


@pytest.mark.parametrize(("wrong", "named"), [("ca", "redis_ca_file"), ("own", PAIR), ("key", PAIR)])
@pytest.mark.parametrize("content", [b"", b"\xff\xfe no PEM", None])
def test_files_that_cannot_be_used_are_refused_and_named(
    tmp_path: Path, wrong: str, named: str, content: bytes | None
) -> None:
    papers = Papers(tmp_path)
    file = {"ca": papers.ca, "own": papers.own, "key": papers.key}[wrong]
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(BrokerRefused, match=f"^{named}: expected PEM that can be used in "):
        connecting(Certificates(papers.ca, papers.own, papers.key))


def test_a_certificate_without_its_key_is_refused(tmp_path: Path) -> None:
    papers = Papers(tmp_path)
    with pytest.raises(BrokerRefused, match=f"^{PAIR}: expected PEM"):
        connecting(Certificates(papers.ca, papers.own))


def test_a_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    papers, other = Papers(tmp_path), tmp_path / "other.key"
    trustme.CA().issue_cert("clearway@localhost").private_key_pem.write_to_path(str(other))
    with pytest.raises(BrokerRefused, match=r"redis_key_file: expected PEM that can be used in .*(?i:mismatch)"):
        connecting(Certificates(papers.ca, papers.own, other))


def test_a_key_behind_a_password_is_refused_and_no_terminal_is_asked(tmp_path: Path) -> None:
    papers, locked = Papers(tmp_path), tmp_path / "locked.key"
    key = serialization.load_pem_private_key(papers.key.read_bytes(), None)
    locked.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(BrokerRefused, match="redis_key_file: expected PEM that can be used"):
        connecting(Certificates(papers.ca, papers.own, locked))
