"""Files of recordings: what is read, and what is refused by the name of its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.replays.recorded import RecordingRefused, document, seconds, table, whole
from tests.support.recordings import write


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_a_table_is_read_row_by_row_packed_or_not(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, [{"b": 1, "c": "x"}, {"b": 2, "c": "y"}])
    assert table(tmp_path, name, ("b",)) == [{"b": "1", "c": "x"}, {"b": "2", "c": "y"}]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("b\n1\n", "a.csv: expected a column 'c', found b"),
        ("", "a.csv: expected a column 'b', found "),
        ("b,c\n1,2\n1\n", "a.csv, row 3: expected 2 columns"),
        ("b,c\n1,2,3\n", "a.csv, row 2: expected 2 columns"),
        ('b,c\n"1,2\n', "a.csv, line 2: expected a row of a table, found: unexpected end of data"),
    ],
)
def test_a_table_that_lacks_something_is_refused_with_the_place(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(RecordingRefused) as refusal:
        table(tmp_path, "a.csv", ("b", "c"))
    assert str(refusal.value) == sentence


@pytest.mark.parametrize("content", [None, b"plain", b"\x1f\x8b"], ids=["no file", "no archive", "half an archive"])
def test_a_file_that_cannot_be_unpacked_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "a.csv.gz").write_bytes(content)
    with pytest.raises(RecordingRefused, match=r"--data: expected a readable a\.csv\.gz in "):
        table(tmp_path, "a.csv.gz", ())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("{", "a.json: expected JSON, found: "), ("[]", "a.json: expected a JSON object, found list")],
)
def test_a_document_that_is_no_object_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(RecordingRefused, match=sentence):
        document(tmp_path, "a.json")


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "nan", "inf", "1e400"])
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(RecordingRefused) as refusal:
        whole({"b": text}, "b", "a.csv")
    assert str(refusal.value) == f"a.csv: b: expected a whole number, at least 0, found {text!r}"


def test_numbers_are_read_as_they_are_written() -> None:
    row = {"many": "3.0", "lasts": "1.5"}
    assert (whole(row, "many", "a.csv"), seconds(row, "lasts", "a.csv")) == (3, 1.5)
    with pytest.raises(RecordingRefused, match=r"a\.csv: lasts: expected a whole number"):
        whole(row, "lasts", "a.csv")
