"""The command line where things go wrong: full disks, closed streams, targets that are read, data without a clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch

import torchpref as tp
from torchpref.cli import app as cli

SUCCESS_ONLY = "system,instance,success\na,1,1\nb,1,0\na,2,1\nb,2,1\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    path.write_text(SUCCESS_ONLY)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out, captured.err


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A shell line in which ``torchpref`` is the command; the code is that of the command, not of a pipe's end."""
    root = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    script = f'set -o pipefail\ntorchpref() {{ "{sys.executable}" -m torchpref "$@"; }}\n{line}'
    return subprocess.run(["bash", "-c", script], cwd=folder, env=env, capture_output=True, text=True, timeout=120)


# ------------------------------------------------------------------------------------------- tables without a clock


@pytest.mark.parametrize("more", [(), ("--bootstrap", "20"), ("--measure", "rpp"), ("--systems", "a")])
def test_success_alone_is_enough(capsys, table, more):
    code, out, err = run(capsys, "evaluate", table, *more)
    assert code == 0 and err == ""
    assert "no usable steps" in out
    if "--measure" not in more:
        assert "SR, success rate" in out


def test_success_alone_in_json_and_html(capsys, table, tmp_path):
    pytest.importorskip("jinja2", reason="needs the extra 'report'")
    target, page = tmp_path / "r.json", tmp_path / "r.html"
    assert run(capsys, "evaluate", table, "--bootstrap", "20", "--json", target, "--html", page)[0] == 0
    record = json.loads(target.read_text())
    assert record["measures"]["rpp"]["theta"] == [None, None]
    assert None not in record["measures"]["sr"]["theta"]


def test_all_prices_zero(capsys, tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("system,instance,success,cost\na,1,1,0\nb,1,0,0\na,2,1,0\nb,2,1,0\n")
    code, out, _ = run(capsys, "evaluate", path)
    assert code == 0 and "no usable cost" in out


def test_no_pairs_is_not_no_clock(capsys, tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("system,instance,success,steps\na,1,1,3\na,2,1,4\n")
    code, out, _ = run(capsys, "evaluate", path)
    assert code == 0 and "no clock" not in out


# ------------------------------------------------------------------------------------------- nothing read is written


@pytest.mark.parametrize(
    "command", [("evaluate",), ("compare", "a", "b"), ("gate", "a", "b"), ("audit",), ("meta",)], ids=lambda c: c[0]
)
def test_an_input_is_not_overwritten(capsys, table, command):
    code, _, err = run(capsys, command[0], table, *command[1:], "--json", table)
    assert code == 2 and "is read as well" in err
    assert table.read_text() == SUCCESS_ONLY


def test_nor_a_file_of_an_input_folder_or_pattern(capsys, table, tmp_path):
    for given in (tmp_path, tmp_path / "*.csv"):
        code, _, err = run(capsys, "evaluate", given, "--html", table)
        assert code == 2 and "--html" in err and "is read as well" in err
    assert run(capsys, "evaluate", table, "--json", tmp_path / "new.json")[0] == 0


@pytest.mark.parametrize("target", ["same", "-"])
def test_two_results_in_one_place(capsys, table, tmp_path, target):
    where = target if target == "-" else tmp_path / target
    code, _, err = run(capsys, "evaluate", table, "--json", where, "--html", where)
    assert code == 2 and "one would take the other's place" in err


# ------------------------------------------------------------------------------------------- streams that fail


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["gate runs.csv a b", "evaluate runs.csv --measure sr", "--version"])
def test_a_full_disk_is_not_a_verdict(table, command):
    done = shell(f"torchpref {command} > /dev/full", table.parent)
    assert done.returncode == 2
    assert "could not be written" in done.stderr and "Traceback" not in done.stderr


def test_a_closed_output(table):
    done = shell("torchpref evaluate runs.csv --measure sr --json out.json >&-", table.parent)
    assert done.returncode == 0 and done.stderr == ""
    assert json.loads((table.parent / "out.json").read_text())["systems"] == ["a", "b"]


def test_a_reader_that_leaves_early(table):
    done = shell("torchpref evaluate runs.csv | head -1", table.parent)
    assert done.returncode == 0 and done.stderr == "" and done.stdout.startswith("2 systems")


def test_a_fault_is_not_a_verdict(capsys, table, monkeypatch):
    import torchpref.evaluation.gating

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("something that should not be")

    monkeypatch.setattr(torchpref.evaluation.gating, "gate", broken)
    code, _, err = run(capsys, "gate", table, "a", "b")
    assert code == cli.FAULT == 70
    assert "something that should not be" in err and "fault in torchpref" in err


# ------------------------------------------------------------------------------------------- what results say


def test_compare_names_the_test_that_was_used(capsys, tmp_path):
    rows = ["system,instance,trial,success,steps"]
    rows += [f"a,{i},{t},{(i + t) % 2},{t + 1}" for i in range(6) for t in range(3)]
    rows += [f"b,{i},0,{i % 2},2" for i in range(6)]
    path = tmp_path / "trials.csv"
    path.write_text("\n".join(rows) + "\n")
    assert "trial labels permuted" in run(capsys, "compare", path, "a", "b")[1]


def test_gate_says_the_level_of_its_interval(capsys, tmp_path):
    rows = ["system,instance,success,steps"]
    rows += [f"{name},{i},1,{i + offset + 1}" for i in range(12) for name, offset in (("a", 0), ("b", i % 3))]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(rows) + "\n")
    assert "90 % interval" in run(capsys, "gate", path, "a", "b")[1]
    result = tp.gate(tp.read(path), "a", "b", alpha=0.1)
    assert result.level == pytest.approx(0.8) and str(result) == result.line
    code, _, err = run(capsys, "gate", path, "a", "b", "--alpha", "0")
    assert code == 2 and "alpha" in err


def test_names_stay_readable_on_a_narrow_terminal(capsys, table, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    out = run(capsys, "evaluate", table, "--measure", "sr")[1]
    assert "1  a " in out and "system" in out


@pytest.mark.parametrize(
    "bad", [{"bootstrap": 1.5}, {"bootstrap": -1}, {"bootstrap": True}, {"seed": -1}, {"seed": 0.5}]
)
def test_numbers_that_are_none(bad):
    with pytest.raises(tp.UsageError):
        tp.evaluate(tp.Trajectories(torch.ones(2, 2, 1)), "sr", **bad)


def test_the_audit_is_a_table_too(table):
    found = tp.audit(tp.read(table))
    frame = found.to_frame()
    assert frame["kind"].to_list() == [finding.kind for finding in found.findings]
    assert repr(found) == str(found) and "Audit(" not in repr(found)
    assert tp.audit(tp.Trajectories(torch.ones(1, 1, 1))).to_frame().columns == frame.columns


# ------------------------------------------------------------------------------------------- data without known times


def test_without_known_times_no_table_names_a_clock(capsys, table):
    out = run(capsys, "evaluate", table)[1]
    assert out.startswith("2 systems, 2 instances, no known times\n")
    assert "median" not in out and ", by steps" not in out
    assert ", no known times)" in tp.evaluate(tp.read(table)).to_markdown().replace("\\", "")


def test_compare_and_gate_say_that_only_what_was_reached_counts(capsys, table):
    out = run(capsys, "compare", table, "a", "b")[1]
    assert "no known times: above 0" in out and "only what was reached is compared" in out and "clock steps" not in out
    assert "no known times" in repr(tp.compare(tp.read(table), "a", "b"))
    out = run(capsys, "gate", table, "a", "b")[1]
    assert "no times known and so only what was reached compared" in out and "by steps" not in out
    code, out, _ = run(capsys, "gate", table, "a", "b", "--measure", "sr")
    assert code == 0 and "times" not in out
    assert tp.gate(tp.read(table), "a", "b").to_dict()["known_times"] is False


def test_prices_of_zero_are_no_known_times_unless_they_are_kept(capsys, tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("system,instance,success,cost\na,1,1,0\nb,1,0,0\n")
    assert "no known times" in run(capsys, "evaluate", path)[1]
    assert "clock cost" in run(capsys, "evaluate", path, "--zero-time", "keep")[1]


def test_one_system_without_times_has_no_leaderboard_of_times(capsys, tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("system,instance,success\na,1,1\na,2,0\n")
    out = run(capsys, "evaluate", path, "--bootstrap", "20")[1]
    assert out.startswith("1 system, 2 instances, ")
    assert out.count("Ranks hold together") == 2  # SR and PR
    assert run(capsys, "audit", path)[1].startswith("1 system, 2 instances, 2 runs ")


def test_only_the_chosen_clock_is_warned_about(capsys, tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("system,instance,success,steps,time\na,1,1,0,3\nb,1,1,0,4\na,2,1,,3\nb,2,0,0,4\n")
    assert "clock 'steps'" not in run(capsys, "compare", path, "a", "b", "--clock", "time")[1]
    assert "clock 'steps'" in run(capsys, "compare", path, "a", "b", "--clock", "steps")[1]


# ------------------------------------------------------------------------------------------- streams and files, again


def test_help_whose_reader_leaves_early(table):
    done = shell("torchpref evaluate --help | true", table.parent)
    assert done.returncode == 0 and done.stderr == ""


def test_escaped_names_keep_columns_aligned(tmp_path):
    (tmp_path / "runs.csv").write_text("system,instance,success\naa,1,1\nbé,1,0\naa,2,1\nbé,2,1\n", encoding="utf-8")
    done = shell("LC_ALL=C torchpref evaluate runs.csv --measure sr", tmp_path)
    rows = [line for line in done.stdout.splitlines() if line.startswith("   ") and line.endswith(" 2")]
    assert r"b\xe9" in rows[1] and rows[0].index("+0.500") == rows[1].index("-0.500")


def test_a_second_name_of_an_input_is_that_input(capsys, table, tmp_path):
    os.link(table, tmp_path / "same.csv")
    code, _, err = run(capsys, "audit", table, "--json", tmp_path / "same.csv")
    assert code == 2 and "is read as well" in err


RESULTS = {
    "stats.bradley_terry.model": "BradleyTerry",
    "evaluation.budget": "BudgetCurves",
    "evaluation.comparison": "Comparison",
    "evaluation.result": "Evaluation",
    "evaluation.gating": "GateResult",
    "stats.ranking.influence": "Influence",
    "runs.audit": "Audit",
    "stats.ranking.leaderboard": "Leaderboard",
    "meta.result": "MetaEvaluation",
    "stats.planning.planning": "Plan",
    "stats.significance.significance": "Significance",
}


@pytest.mark.parametrize("module", RESULTS)
def test_results_are_records_and_tables(module):
    result = getattr(import_module(f"torchpref.{module}"), RESULTS[module])
    assert callable(getattr(result, "to_dict", None)) and callable(getattr(result, "to_frame", None))


def test_a_gate_is_a_row(table):
    result = tp.gate(tp.read(table), "a", "b")
    record = result.to_dict()
    split = {f"split_{name.replace(' ', '_')}": value for name, value in record.pop("split").items()}
    assert result.to_frame().to_dicts() == [record | split]
