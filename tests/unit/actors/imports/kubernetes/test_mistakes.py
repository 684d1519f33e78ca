"""Whatever stands where another value should, manifests are imported or refused with a sentence."""

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from actors.cluster_file.plain_data import ClusterFileRefused
from actors.cluster_file.reader import read_cluster
from actors.imports.kubernetes.manifests import cluster_of
from tests.support.depth import sampled

MANY = sampled(40)
FOLDER = Path(__file__).parent / "manifests"
MISTAKES: tuple[Any, ...] = (None, 5, -1, "", "x", [], {}, [1], {"a": 1}, True, 1.5, "1e3", ["x"], [{}], float("inf"))


def places(found: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every key and position in plain data."""
    inside = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for key, value in inside:
        yield (*here, key)
        yield from places(value, (*here, key))


@pytest.mark.parametrize("scheduler", ["volcano", "kai", "koordinator", "kueue", "kube_scheduler"])
def test_a_wrong_value_is_imported_or_refused_in_one_sentence(scheduler: str, tmp_path: Path) -> None:
    objects = list(yaml.load_all((FOLDER / f"{scheduler}.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader))
    where = [place for place in places(objects) if len(place) > 1]
    refused = []
    for seed in range(MANY):
        chosen = random.Random(seed)
        mistaken, place = copy.deepcopy(objects), chosen.choice(where)
        inside: Any = mistaken
        for step in place[:-1]:
            inside = inside[step]
        inside[place[-1]] = chosen.choice(MISTAKES)
        (tmp_path / "m.yaml").write_text(yaml.dump_all(mistaken, Dumper=yaml.CSafeDumper), encoding="utf-8")
        try:
            read_cluster(cluster_of([tmp_path]).plain)
        except ClusterFileRefused as refusal:
            refused.append(str(refusal))
    assert 0 < len(refused) < MANY
    assert all("expected" in sentence for sentence in refused)


def test_files_without_any_object_are_refused_with_their_names(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("# nothing yet\n", encoding="utf-8")
    with pytest.raises(ClusterFileRefused, match=r"a\.yaml: expected objects of an API, found none"):
        cluster_of([tmp_path])


def test_an_empty_list_of_objects_is_an_answer(tmp_path: Path) -> None:
    (tmp_path / "pods.yaml").write_text("apiVersion: v1\nkind: List\nitems: []\n", encoding="utf-8")
    assert "nodes" not in cluster_of([tmp_path]).plain
