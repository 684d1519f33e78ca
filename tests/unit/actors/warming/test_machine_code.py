"""Processes that compile at the same time save one after the other."""

import fcntl
from pathlib import Path

import pytest
from numba.core import caching

from actors.warming.machine_code import save_one_by_one


def test_machine_code_is_saved_while_the_lock_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, saved = tmp_path / "lock", []

    def save(_: object, key: str, data: bytes) -> None:
        with lock.open("a") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        saved.append((key, data))

    monkeypatch.setattr(caching.IndexDataCacheFile, "save", save)
    save_one_by_one(lock)
    caching.IndexDataCacheFile.save(None, "signature", b"code")
    with lock.open("a") as free:
        fcntl.flock(free, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert saved == [("signature", b"code")]
