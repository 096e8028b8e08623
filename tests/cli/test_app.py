"""The command line: what it prints where, what it writes, and how it ends."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from torchpref import __version__
from torchpref.cli import output as cli_output
from torchpref.cli.app import main
from torchpref.runs.measures import MEASURES

Run = Callable[..., tuple[int, str, str]]
TABLE = """system,instance,success,cost
alpha,one,1,0.5
alpha,two,1,1.5
alpha,three,0,
beta,one,1,0.7
beta,two,0,2
beta,three,1,3
gamma,one,0,1
gamma,two,1,1
gamma,three,0,0
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str | Path) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return code, captured.out, captured.err

    return call


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    path.write_text(TABLE)
    return path


def process(*arguments: str | Path, text: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, started as an installed command would be."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), env.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "torchpref", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=text, env=env, timeout=120, encoding="utf-8" if text else None
    )


# ------------------------------------------------------------------------------------------------------ evaluate


def test_evaluate_prints_tie_rates_first_and_a_board_per_measure(run: Run, table: Path) -> None:
    code, out, err = run("evaluate", table)
    assert code == 0 and err == ""
    assert out.startswith("3 systems, 3 instances, clock cost\n\nTie rates")
    judged_first = ("lr", *(name for name in MEASURES if name != "lr"))
    heads = [out.index(f"\n{name.upper()}, ") for name in judged_first]
    assert heads == sorted(heads) and out.index("Tie rates") < heads[0]
    board = out[out.index("\nLR, ") :].splitlines()
    assert re.search(r"rank +system +score +pref\. +rate +return +cost +inst\.", board[3])
    # alpha beats beta on 'one' (cheaper) and 'two', loses 'three': 1/3; beats gamma on 'one', loses 'two': 0.
    first = board[5].split()
    assert first[:2] == ["1", "alpha"] and first[3:] == ["+0.167", "66.7", "%", "0.667", "1", "3"]
    assert "LR's mean preference is the sum of" in out
    assert re.search(r"alpha +\+0\.167 +\+0\.167 +0\.000 +0\.000", out)


def test_evaluate_json_is_the_contract(run: Run, table: Path, tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    code, out, _ = run("evaluate", table, "--json", target, "--seed", "7", "--measure", "sr,RPP")
    assert code == 0 and "RPP, return-paired preference, by cost" in out and "LR" not in out
    record = json.loads(target.read_text())
    assert record["version"] == __version__ and record["seed"] == 7 and record["clock"] == "cost"
    assert list(record["measures"]) == ["sr", "rpp"]
    assert record["options"]["paths"] == [str(table)]
    assert record["audit"]["findings"]
    assert record["n_shared"] == [[3, 3, 3]] * 3
    assert [path.name for path in tmp_path.iterdir() if "result" in path.name] == ["result.json"]


def test_json_on_standard_output_stands_alone(run: Run, table: Path) -> None:
    code, out, _ = run("evaluate", table, "--json", "-")
    assert code == 0
    assert json.loads(out)["systems"] == ["alpha", "beta", "gamma"]


def test_html_is_a_page(run: Run, table: Path, tmp_path: Path) -> None:
    pytest.importorskip("jinja2", reason="the page needs the extra report: pip install 'torchpref[report]'")
    target = tmp_path / "report.html"
    code, out, err = run("evaluate", table, "--html", target)
    assert code == 0, err
    page = target.read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>") and "alpha" in page and "Tie rates" in out
    code, _, err = run("evaluate", table, "--html", tmp_path / "no" / "report.html")
    assert code == 2 and "--html" in err


def test_same_seed_same_bytes(run: Run, table: Path, tmp_path: Path) -> None:
    shuffled = tmp_path / "shuffled.csv"
    head, *rows = TABLE.splitlines()
    shuffled.write_text("\n".join([head, *reversed(rows)]) + "\n")
    first, second = (json.loads(run("evaluate", path, "--json", "-")[1]) for path in (table, shuffled))
    assert first["measures"] == second["measures"]
    assert run("evaluate", table, "--json", "-") == run("evaluate", table, "--json", "-")


def test_systems_and_benchmarks_are_chosen_by_name_or_pattern(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    rows = [f"{b},{s},{i},1,{t}" for b in ("x", "y") for s, t in (("a/1", 3), ("b", 4), ("c", 5)) for i in (1, 2)]
    path.write_text("\n".join(["benchmark,system,instance,success,steps", *rows]) + "\n")

    def systems(*options: str) -> list[str]:
        code, out, err = run("evaluate", path, "--measure", "lr", "--json", "-", *options)
        assert code == 0, err
        return list(json.loads(out)["systems"])

    assert systems() == ["a/1", "b", "c"]
    assert systems("--systems", "!*/*") == ["b", "c"]
    assert systems("--systems", "a/1", "--systems", "c") == ["a/1", "c"]
    assert systems("--systems", "b,c") == ["b", "c"]
    assert systems("--where", "system!=b") == ["a/1", "c"]
    code, out, _ = run("evaluate", path, "--benchmark", "y", "--json", "-")
    record = json.loads(out)
    assert record["n_instances"] == 2 and list(record["measures"]["lr"]["benchmarks"]) == ["y"]
    code, out, _ = run("evaluate", path)
    assert re.search(r"\nties in % +SR +PR +SPL +LR +RPP +IPP +inst\.\n", out)
    assert re.search(r"\nmean of 2 benchmarks +100\.00 +100\.00 +0\.00 +0\.00 +0\.00 +0\.00 +4\n", out)


def test_options_reach_the_library(run: Run, table: Path) -> None:
    def record(*options: str) -> dict[str, object]:
        code, out, err = run("evaluate", table, "--json", "-", *options)
        assert code == 0, err
        return dict(json.loads(out))

    assert record("--zero-time", "keep")["options"]["zero_time"] == "keep"  # type: ignore[index]
    assert record("--grid", "4")["options"]["grid"] == 4  # type: ignore[index]
    assert record("--grid", "0.5,1")["options"]["grid"] == [0.5, 1.0]  # type: ignore[index]
    assert record("--weights", "benchmark")["options"]["weights"] == "benchmark"  # type: ignore[index]
    assert record("--device", "cpu")["clock"] == "cost"
    assert record("--missing", "failure")["options"]["missing"] == "failure"  # type: ignore[index]


def test_columns_and_where(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("model,split,task,env,ok,price\nm1,s,1,bash,1,2\nm2,s,1,bash,1,1\nm1,t,1,sql,1,1\nm2,t,1,sql,0,1\n")
    columns = "system=model,instance=split+task,success=ok,cost=price"
    code, out, err = run("evaluate", path, "--columns", columns, "--where", "env=bash", "--json", "-")
    assert code == 0, err
    assert json.loads(out)["measures"]["lr"]["mean_preference"] == [[0.0, -1.0], [1.0, 0.0]]
    path.write_text(path.read_text().replace("price", '"price, in all"'))
    assert run("evaluate", path, "--columns", columns.replace("price", "price, in all"), "--json", "-")[0] == 0
    path.write_text(path.read_text().replace('"price, in all"', "price"))
    apart = [part for each in columns.split(",") for part in ("--columns", each)]
    assert run("evaluate", path, *apart, "--where", "env=bash", "--json", "-")[0] == 0


def test_warnings_stand_once_under_the_result_and_in_the_json(run: Run, table: Path, tmp_path: Path) -> None:
    table.write_text(TABLE.replace("gamma,two,1,1", "gamma,two,1,0"))
    _, out, err = run("evaluate", table, "--json", tmp_path / "result.json")
    assert err == ""
    assert out.count("\nWarnings\n") == 1
    below = " ".join(out[out.index("\nWarnings\n") :].split())
    assert below.count("reached at exactly 0") == 1 and "1 system: gamma" in below
    findings = json.loads((tmp_path / "result.json").read_text())["audit"]["findings"]
    (zero,) = [each for each in findings if "reached at exactly 0" in each["message"] and each["severity"] == "warning"]
    assert zero["systems"] == ["gamma"] and zero["count"] == 1
    _, out, _ = run("audit", table)
    assert "3 systems, 3 instances, 9 runs of known outcome" in out and "reached at exactly 0" in " ".join(out.split())


# ------------------------------------------------------------------------------------------------------ other commands


def test_demo_shows_that_success_ties_and_preferences_do_not(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "demo.json"
    code, out, err = run("demo", "--json", target)
    assert code == 0 and err == ""
    rates = {name: part["tie_rate"] for name, part in json.loads(target.read_text())["measures"].items()}
    assert rates["sr"] > 0.9 and max(rates[name] for name in ("lr", "rpp", "ipp")) < 0.2
    right = {line.split()[0]: line.split() for line in out[out.index("Against the known order") :].splitlines() if line}
    assert right["SR"][3:6] == ["17", "0", "28"]
    assert right["RPP"][3:6] == right["LR"][3:6] == ["45", "0", "0"]


def pair_table(path: Path, instances: int = 40) -> Path:
    """Two systems that solve all; ``slow`` takes longer on three of four instances."""
    rows = ["system,instance,success,steps"]
    for i in range(instances):
        rows += [f"quick,{i},1,{10 + i % 3}", f"slow,{i},1,{20 if i % 4 else 5}"]
    path.write_text("\n".join(rows) + "\n")
    return path


def test_compare_shows_two_systems(run: Run, tmp_path: Path) -> None:
    path = pair_table(tmp_path / "pair.csv")
    code, out, err = run("compare", path, "quick", "slow", "--json", tmp_path / "pair.json")
    assert code == 0 and err == ""
    assert out.startswith("quick (first) against slow (second), clock steps: above 0 prefers the first")
    assert re.search(r"\nRPP +\+0\.500 +\+0\.\d+ to \+0\.\d+ +0\.00\d +30 +10 +0 +20\n", out)
    assert re.search(r"\nSR +0\.000 .* 0 +0 +40\n", out)
    assert re.search(r"\nsooner +\+0\.500\n", out)
    record = json.loads((tmp_path / "pair.json").read_text())
    assert record["measures"]["lr"]["mean"] == 0.5 and len(record["measures"]["lr"]["deciding"]) == 40
    code, out, _ = run("compare", path, "slow", "quick", "--measure", "lr")
    assert code == 0 and re.search(r"\nLR +-0\.500", out) and "RPP" not in out


def test_gate_exits_with_one_if_the_new_system_is_worse(run: Run, tmp_path: Path) -> None:
    path = pair_table(tmp_path / "pair.csv")
    code, out, err = run("gate", path, "quick", "slow")
    assert code == 1 and err == ""
    assert out.startswith("worse: slower, not worse at the task: LR by steps of slow against quick: mean -0.500")
    assert out.count("\n") == 1
    code, out, _ = run("gate", path, "slow", "quick")
    assert code == 0 and out.startswith("undecided: not significantly worse")
    assert run("gate", path, "quick", "slow", "--measure", "sr")[0] == 0
    assert run("gate", path, "quick", "slow", "--margin", "0.9")[0] == 0
    code, out, _ = run("gate", path, "quick", "slow", "--min-effect", "0.6", "--json", "-")
    assert code == 0 and json.loads(out)["exit_code"] == 0


def test_a_gate_warns_beside_its_line(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("system,instance,success,cost\na,i,1,0\nb,i,1,2\na,j,1,1\nb,j,1,3\n")
    code, out, err = run("gate", path, "a", "b")
    assert code == 0 and out.count("\n") == 1
    assert err.startswith("warning: ") and "reached at exactly 0" in err


def test_meta_evaluates_the_measures(run: Run, tmp_path: Path) -> None:
    path = pair_table(tmp_path / "pair.csv")
    options = ("--measure", "sr,lr", "--resamples", "20", "--known-order", "quick,slow", "--seed", "3")
    code, out, err = run("meta", path, *options, "--json", tmp_path / "meta.json")
    assert code == 0 and err == ""
    assert re.search(r"tie rate, % +100\.00 +0\.00\n", out) and re.search(r"oracle accuracy, % +0\.00 +100\.00\n", out)
    record = json.loads((tmp_path / "meta.json").read_text())
    assert record["options"]["paths"] == [str(path)] and record["options"]["resamples"] == 20
    assert run("meta", path, *options)[1] == out


def test_audit_prints_and_writes(run: Run, table: Path, tmp_path: Path) -> None:
    code, out, _ = run("audit", table, "--json", tmp_path / "audit.json")
    assert code == 0 and "alpha" in out
    record = json.loads((tmp_path / "audit.json").read_text())
    assert record["n_instances"] == 3 and record["runs"] == 9


def test_formats_lists_every_reader(run: Run) -> None:
    from torchpref.io.readers import readers

    code, out, _ = run("formats")
    assert code == 0
    for reader in readers():
        assert f"\n{reader.name} " in out
    code, out, _ = run("formats", "--json", "-")
    assert {each["name"] for each in json.loads(out)} == {"table", *(reader.name for reader in readers())}


def test_convert_gives_the_same_evaluation(run: Run, table: Path, tmp_path: Path) -> None:
    target = tmp_path / "tidy.parquet"
    code, out, _ = run("convert", table, target)
    assert code == 0 and "9 rows" in out and target.exists()
    first, second = (json.loads(run("evaluate", path, "--json", "-")[1]) for path in (table, target))
    assert first["measures"] == second["measures"]
    code, _, err = run("convert", table)
    assert code == 2 and "name what to read, then the table to write" in err


# ------------------------------------------------------------------------------------------------------ how it looks


def long_table(path: Path, systems: int = 100) -> Path:
    rows = ["system,instance,success,steps"]
    for number in range(systems):
        name = f"organisation-{number:03d}/agent-with-a-name-that-never-ends-{'x' * 60}/版本-{number}"
        rows += [
            f"{name},task-{task},{int((number + task) % 3 > 0)},{1 + (7 * number + task) % 50}" for task in range(4)
        ]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_a_hundred_long_names_fit_in_eighty_columns(run: Run, tmp_path: Path) -> None:
    from rich.cells import cell_len

    code, out, _ = run("evaluate", long_table(tmp_path / "long.csv"), "--measure", "sr,lr")
    assert code == 0
    assert max(cell_len(line) for line in out.splitlines()) <= 80
    squeezed = re.sub(r"\s+", "", out)
    assert all(f"organisation-{number:03d}" in squeezed for number in (0, 42, 99))
    assert not any(line != line.rstrip() for line in out.splitlines())


def test_names_cannot_move_the_cursor_or_be_markup(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text('system,instance,success,steps\n"[red]x[/red]\x1b[2J",i,1,1\n"[/]y",i,1,2\n')
    code, out, err = run("evaluate", path)
    assert code == 0, err
    assert "\x1b" not in out and "[red]x[/red]\\x1b[2J" in out and "[/]y" in out


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "POSIX", "NO_COLOR": "1"},
    ],
    ids=["ascii", "C", "C without UTF-8 mode", "POSIX"],
)
def test_ascii_streams_get_ascii(environment: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("system,instance,success,steps\nmödel-α,i,1,1\nb,i,1,2\n", encoding="utf-8")
    done = process("evaluate", path, text=False, **environment)
    assert done.returncode == 0, done.stderr
    out = bytes(done.stdout).decode("ascii")  # type: ignore[arg-type]
    assert "m\\xf6del-\\u03b1" in out and "----" in out and "###" in out
    refused = process("evaluate", tmp_path / "nicht-da-ä.csv", text=False, **environment)
    assert refused.returncode == 2
    assert "Traceback" not in bytes(refused.stderr).decode("ascii")  # type: ignore[arg-type]


def test_utf8_streams_get_lines(table: Path) -> None:
    done = process("evaluate", table, PYTHONIOENCODING="utf-8", LC_ALL="C.UTF-8")
    assert done.returncode == 0 and done.stderr == ""
    assert "────" in done.stdout and "█" in done.stdout and "\x1b" not in done.stdout


def test_a_reader_that_stops_early_is_no_error(table: Path, tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    long = long_table(tmp_path / "long.csv", 40)
    command = f"'{sys.executable}' -m torchpref evaluate '{long}' | head -3"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=env, timeout=120)
    assert done.stderr == "" and done.stdout.startswith("40 systems")


def test_help_answers_without_torch() -> None:
    code = (
        "import sys\nfrom torchpref.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as ended: assert not ended.code\n"
        "heavy = {'torch', 'numpy', 'scipy', 'numba', 'polars'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=60)
    assert done.returncode == 0, done.stderr
    for command in ("evaluate", "compare", "gate", "meta", "audit", "demo", "formats", "convert"):
        assert command in done.stdout


def test_version(run: Run) -> None:
    assert run("--version") == (0, f"torchpref {__version__}\n", "")


# ------------------------------------------------------------------------------------------------------ files


def test_a_file_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "result.json"
    target.write_text("old")
    target.chmod(0o640)

    def interrupted(source: str, destination: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_output.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cli_output.write_json(str(target), {"a": 1})
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]
    monkeypatch.undo()
    cli_output.write_json(str(target), {"a": [1, None], "b": [[1.5], []], "c": {}})
    assert json.loads(target.read_text()) == {"a": [1, None], "b": [[1.5], []], "c": {}}
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_new_file_has_the_usual_permissions_and_a_link_stays_one(tmp_path: Path) -> None:
    plain, fresh, link = tmp_path / "plain", tmp_path / "fresh.json", tmp_path / "link.json"
    plain.touch()
    cli_output.write_json(str(fresh), 1)
    assert fresh.stat().st_mode == plain.stat().st_mode
    link.symlink_to(fresh)
    cli_output.write_json(str(link), 2)
    assert link.is_symlink() and fresh.read_text() == "2\n"


def test_no_json_is_written_of_what_json_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        cli_output.write_json(str(tmp_path / "x.json"), {"a": float("nan")})
    assert not list(tmp_path.iterdir())


def test_plan_says_how_many_instances_it_takes(run: Run, tmp_path: Path) -> None:
    path = pair_table(tmp_path / "pair.csv")
    code, out, err = run("plan", path, "quick", "slow", "--power", "0.9")
    assert code == 0 and err == ""
    assert out.startswith("LR: instances needed for power 0.9 at 0.05\n  quick − slow (+0.500): ")
    code, out, err = run("plan", path, "quick", "slow", "--margin", "0.1")
    assert code == 0 and "slow is fine within the margin 0.1" in out and "∞" in out
    few = pair_table(tmp_path / "few.csv")
    code, out, err = run("plan", few, "quick", "slow", "--measure", "sr")
    assert code == 2 and "differ on 0 of 40 instances by SR: too few to plan by" in err
