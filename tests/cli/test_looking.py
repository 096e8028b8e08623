"""gate --planned, watch, compare --history and --clocks, as they are typed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from torchpref.cli import main


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main([str(each) for each in arguments])
    out, err = capsys.readouterr()
    return ended.value.code or 0, out, err


@pytest.fixture
def log(tmp_path):
    """A table: base runs all 40 tasks, new only some, four others all."""

    def write(new=12, rate=0.0):
        rng = np.random.default_rng(0)
        lines = ["system,instance,success,steps,cost"]
        for task in range(40):
            ease = rng.random()
            for name in ("base", "o1", "o2", "o3"):
                lines.append(
                    f"{name},t{task:02},{int(name == 'base' or rng.random() < ease)},{1 + task % 3},{0.1 + task % 2}"
                )
            if task < new:
                lines.append(f"new,t{task:02},{int(rng.random() < rate)},2,0.2")
        path = tmp_path / "runs.csv"
        path.write_text("\n".join(lines) + "\n")
        order = tmp_path / "order.txt"
        order.write_text("".join(f"t{task:02}\n" for task in range(40)))
        return path, order

    return write


def test_gate_goes_on_then_stops(log, tmp_path, capsys):
    path, order = log(new=4)
    arguments = ["base", "new", "--measure", "sr", "--planned", 40, "--order", order, "--state", tmp_path / "s.json"]
    code, out, _ = run(capsys, "gate", path, *arguments)
    assert code == 4 and out.startswith("go on: SR of new against base")
    path, _ = log(new=12)
    page, record = tmp_path / "look.html", tmp_path / "look.json"
    code, out, _ = run(
        capsys, "gate", path, *arguments, "--html", page, "--json", record, "--markdown", tmp_path / "m.md"
    )
    assert code == 1 and "established after" in out
    assert json.loads(record.read_text())["verdict"] == "worse" and "<svg" in page.read_text()
    assert "❌ worse: new against base" in (tmp_path / "m.md").read_text()
    code, _, err = run(capsys, "gate", path, *arguments[:3], "rpp", *arguments[4:])
    assert code == 2 and "the measure may not change between looks" in err


def test_gate_final_and_refusals(log, capsys):
    path, order = log(new=5)
    code, out, _ = run(
        capsys, "gate", path, "base", "new", "--measure", "sr", "--planned", 40, "--order", order, "--final"
    )
    assert code == 1 and out.startswith("worse")
    code, _, err = run(capsys, "gate", path, "base", "new", "--final")
    assert code == 2 and "say how many are planned" in err
    code, _, err = run(capsys, "gate", path, "base", "new", "--planned", 40, "--order", path.parent / "none.txt")
    assert code == 2 and "--order" in err


def test_watch_once(log, tmp_path, capsys):
    path, order = log(new=30, rate=0.0)
    common = ["--planned", 40, "--order", order, "--measure", "sr", "--once"]
    code, out, _ = run(
        capsys, "watch", path, *common, "--top", 1, "--html", tmp_path / "w.html", "--json", tmp_path / "w.json"
    )
    assert code in (0, 4) and "first place on this benchmark" in out and "beaten" in out
    assert (
        json.loads((tmp_path / "w.json").read_text())["goal"] == "top1" and "<svg" in (tmp_path / "w.html").read_text()
    )
    code, out, _ = run(capsys, "watch", path, *common, "--given-up", "gaps", "--final")
    assert code == 0


def test_watch_reads_again_when_files_change(log, capsys, monkeypatch):
    import time

    path, order = log(new=3)

    def sleep(_):
        log(new=40)

    monkeypatch.setattr(time, "sleep", sleep)
    code, out, _ = run(
        capsys, "watch", path, "--planned", 40, "--order", order, "--measure", "sr", "--top", 1, "--every", 1
    )
    assert code == 0 and out.count("first place on this benchmark") >= 2


def test_compare_with_history_and_clocks(log, tmp_path, capsys):
    path, _ = log(new=20, rate=0.5)
    code, out, _ = run(
        capsys, "compare", path, "new", "base", "--measure", "sr,lr", "--clock", "steps", "--history", path
    )
    assert code == 0 and "and the runs of 3 others" in " ".join(out.split())
    code, out, _ = run(capsys, "compare", path, "new", "base", "--clocks", "steps,cost", "--clock", "steps")
    assert code == 0 and "whatever steps and cost are worth" in " ".join(out.split())
