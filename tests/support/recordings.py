"""A data folder of the recordings' shape, small enough to reckon by hand."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any


def write(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    """Write a CSV file, gzipped if its name says so."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    opened = gzip.open if name.endswith(".gz") else open
    with opened(path, "wt", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


def small_recordings(folder: Path) -> Path:
    """All scenarios: ``openb`` of 2 x 70 nodes of eight devices; four machines of PAI; 40 hosts and a stream."""
    _openb(folder)
    _pai(folder)
    _lingjun(folder)
    return folder


def _openb(folder: Path) -> None:
    """Leaves of ten nodes, seven a psw. In P1 three nodes hold BE alone, the others one LS and a shared device besides.

    In P2 every node holds four LS; one of its nodes a Guaranteed pod.
    """
    nodes, places, pods = [], [], []
    for at in range(140):
        name, psw = f"n{at:03}", "P1" if at < 70 else "P2"
        nodes.append({"sn": name, "cpu_milli": 96000, "memory_mib": 393216, "gpu": 8, "model": "G2"})
        places.append({"node": name, "dsw": "A", "psw": psw, "asw": f"{psw}/S{at // 10}"})
        held = [(4, 1000, "BE"), (4, 1000, "BE")] if at < 3 else [(4, 1000, "BE"), (1, 500, "BE"), (1, 500, "LS")]
        if at >= 70:
            held = [(2, 1000, "LS")] * 4
        if at == 139:
            held = [(8, 1000, "Guaranteed")]
        held.append((0, 0, "LS"))
        pods += [_pod(f"p{at:03}-{number}", name, *pod) for number, pod in enumerate(held)]
    write(folder, "openb/nodes.csv.gz", nodes)
    write(folder, "scenarios/s1_openb_topology_lingjun_shape.csv.gz", places)
    write(folder, "scenarios/s1_openb_placed_pods.csv.gz", pods)
    times = [{"name": "p000-0", "scheduled_time": "0", "deletion_time": "7200"}]
    write(folder, "openb/pods_default.csv.gz", times)


def _pod(name: str, node: str, gpus: int, milli: int, qos: str) -> dict[str, Any]:
    priority = ("BE", "Burstable", "LS", "Guaranteed").index(qos)
    return {
        "pod": name, "node": node, "gpu_index": "", "cpu_milli": 1000, "memory_mib": 1024, "num_gpu": gpus,
        "gpu_milli": milli, "gpu_spec": "", "qos": qos, "priority": priority, "is_clone": 0,
    }  # fmt: skip


def _pai(folder: Path) -> None:
    """Queue b borrows all four machines of two devices; a gang of two roles takes back half of them."""
    shape = {"gpu_type": "V100", "cpus": 96, "mem_gib": 512, "gpus": 2, "spine_syn": "s"}
    machines = [{"machine": at} | shape | {"leaf_syn": f"l{at // 2}"} for at in range(4)]
    write(folder, "scenarios/s2_nodes.csv.gz", machines)
    queues = [{"queue": name, "weight_nodes": 1, "deserved_gpus": 4} for name in "ab"]
    write(folder, "scenarios/s2_queues.csv", queues)
    rows = [_role(f"b{at}", "b", 10.0 + at, "worker", 1, 2, 7000) for at in range(4)]
    rows += [_role("a", "a", 600.0, "worker", 2, 2, 900), _role("a", "a", 600.0, "ps", 1, 0, 900)]
    rows.append(_role("late", "b", 700.0, "worker", 1, 1, -5))
    write(folder, "scenarios/s2_pai_queue_stream.csv.gz", rows)


def _role(job: str, queue: str, at: float, role: str, count: int, gpus: int, lasts: float) -> dict[str, Any]:
    return {
        "job": job, "queue_syn": queue, "priority_syn": "normal", "arrival_s_compressed": at, "duration_s": lasts,
        "role": role, "inst_num": count, "gpus_per_inst": gpus, "cpus_per_inst_syn": 6, "mem_gib_per_inst_syn": 30,
        "gpus_from_trace": 1,
    }  # fmt: skip


def _lingjun(folder: Path) -> None:
    hosts = [
        {"name": f"h{at:02}", "path": ["D", f"P{at // 20}", f"P{at // 20}/S{at // 10}"], "gpus": 8} for at in range(40)
    ]
    path = folder / "topology/lingjun2023.json.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(json.dumps({"nodes": hosts}).encode()))
    jobs = [_job(f"j{at:02}", 10.0 + at, "low", "Evaluation", 1, 8, 7000) for at in range(38)]
    jobs.append(_job("train", 2400.0, "high", "Pretrain", 4, 8, 600))
    write(folder, "scenarios/s3_llm_stream_syn.csv.gz", jobs)
    big = {"job": "b", "organization": 1, "job_type": "HP", "workers": 8, "gpus_per_worker": 8, "duration_s": 300.0}
    write(folder, "scenarios/s3_real_big_gangs.csv", [big | {"cpus_per_worker": 1}])


def _job(name: str, at: float, priority: str, kind: str, workers: int, gpus: int, lasts: float) -> dict[str, Any]:
    return {
        "job": name, "arrival_s": at, "queue": "seren", "priority": priority, "job_type": kind, "workers": workers,
        "gpus_per_worker": gpus, "duration_s": lasts,
    }  # fmt: skip
