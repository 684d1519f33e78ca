"""Results that go to files: all of one, or what was there before."""

import errno
import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from actors.documents.bounded_files import FileRefused
from actors.documents.results import refuse_to_replace, write_out


def test_a_file_is_replaced_and_keeps_who_may_read_it(tmp_path: Path) -> None:
    out = tmp_path / "now.yaml"
    write_out("a: 1\n", out)
    out.chmod(0o640)
    write_out("b: 2\n", out)
    assert (out.read_text(encoding="utf-8"), stat.S_IMODE(out.stat().st_mode)) == ("b: 2\n", 0o640)
    assert [*tmp_path.iterdir()] == [out]


@pytest.mark.parametrize("at_the_end", [False, True])
def test_a_file_stays_as_it_was_where_the_new_one_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_the_end: bool
) -> None:
    """The disk is full, or the new file cannot take the place of the old one."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    out = tmp_path / "now.yaml"
    out.write_text("a: 1\n", encoding="utf-8")
    monkeypatch.setattr(*((Path, "replace") if at_the_end else (os, "fsync")), full)
    with pytest.raises(FileRefused, match="expected a file that can be written, found: No space left on device"):
        write_out("b: 2\n", out)
    assert out.read_text(encoding="utf-8") == "a: 1\n"
    assert [*tmp_path.iterdir()] == [out]


def test_text_that_no_file_can_hold_leaves_the_old_one(tmp_path: Path) -> None:
    out = tmp_path / "now.yaml"
    out.write_text("a: 1\n", encoding="utf-8")
    with pytest.raises(UnicodeEncodeError):
        write_out("b: \ud800\n", out)
    assert out.read_text(encoding="utf-8") == "a: 1\n"
    assert [*tmp_path.iterdir()] == [out]


def test_what_a_link_names_is_replaced_and_the_link_stays(tmp_path: Path) -> None:
    out, link = tmp_path / "now.yaml", tmp_path / "link"
    link.symlink_to(out)
    for text in ("a: 1\n", "b: 2\n"):
        write_out(text, link)
        assert link.is_symlink()
        assert out.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("why", [errno.EBUSY, errno.EACCES, errno.EPERM, errno.EROFS])
def test_a_file_whose_place_no_other_can_take_is_written_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: int
) -> None:
    """It is mounted by itself, or nothing may be added to its folder."""

    def held(*_: object) -> None:
        raise OSError(why, os.strerror(why))

    out = tmp_path / "now.yaml"
    out.write_text("a: 1\n", encoding="utf-8")
    before = out.stat().st_ino
    monkeypatch.setattr(Path, "replace", held)
    write_out("b: 2\n", out)
    assert (out.read_text(encoding="utf-8"), out.stat().st_ino) == ("b: 2\n", before)
    assert [*tmp_path.iterdir()] == [out]


def test_what_standard_output_goes_to_is_no_file_to_be_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a path is `/dev/stdout` where a shell adds the output to a file."""
    log, link = tmp_path / "log", tmp_path / "stdout"
    link.symlink_to(log)
    with log.open("a", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        stream.write("before\n")
        stream.flush()
        refuse_to_replace(link)
        write_out("a: 1\n", link)
        stream.write("after\n")
    assert log.read_text(encoding="utf-8") == "before\na: 1\nafter\n"


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe, heard = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    write_out("a: 1\n", pipe)
    reader.join()
    assert (heard, pipe.is_fifo()) == (["a: 1\n"], True)


@pytest.mark.parametrize(("place", "why"), [("", "Is a directory"), ("none/now.yaml", "No such file or directory")])
def test_a_place_that_holds_no_file_is_refused(tmp_path: Path, place: str, why: str) -> None:
    with pytest.raises(FileRefused, match=f"expected a file that can be written, found: {why}"):
        write_out("a: 1\n", tmp_path / place)
    assert [*tmp_path.iterdir()] == []
