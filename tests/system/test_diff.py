"""profile diff and strobe diff: changes between runs, and their significance."""
import json
import math
import re
import statistics
import subprocess

import pytest

from machine import LONG_PATIENCE, ROOT, vm
from statistic import deviations
from tiers import drawn

SLOW = 's = "" for i = 1, 3000 do s = s .. "x" end'
FAST = 't = {} for i = 1, 3000 do t[i] = "x" end s = table.concat(t)'
SAME = "for i = 1, 30000 do m = math.max(i, 3) end"
HZ = 16000
RUNS = 8  # with 4, p of the whole is above 0.001 in half of the draws
A, B = (" ".join(f"{side}{n}" for n in range(1, RUNS + 1)) for side in "ab")
SCRIPT = f"""
cd /out
slow='{SLOW} {SAME}'; fast='{FAST} {SAME}'
for n in $(seq {RUNS}); do
    profile -R -F {HZ} -o a$n lua -e "$slow" >/dev/null
    profile -R -F {HZ} -o b$n lua -e "$fast" >/dev/null
done
profile diff --json {A} vs {B} >several.json
profile diff --json a1 b1 >one.json
profile diff --rows 5 {A} vs {B} >several.txt
profile diff --json a1 a2 a3 a4 vs a5 a6 a7 a8 >same.json
profile diff a1 2>one.err; echo $? >>one.err
profile diff a1 /bin/lua 2>no.err; echo $? >>no.err
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("diff"))
    result = vm(SCRIPT, "--icount", "1", "--get", folder, smp=1,
                timeout=LONG_PATIENCE)
    assert result.status == 0, result
    return folder


def text(out, name):
    with open(f"{out}/{name}") as file:
        return file.read()


def rows(r):
    return {row["name"]: row for row in r["rows"]}


@drawn
def test_what_changed(out):
    """The removed concatenation is a significant change; common work is none."""
    r = json.loads(text(out, "several.json"))
    assert (r["before_runs"], r["after_runs"], r["unit"]) == (RUNS, RUNS, "ms")
    found = rows(r)
    gone = found["luaV_concat.part.0 [/bin/lua]"]
    assert gone["before"] > 1 and gone["after"] == 0
    assert gone["p"] < 0.05
    assert found["all but idle"]["p"] < 0.001
    text_rows = text(out, "several.txt").splitlines()
    assert any("***" in row and row.endswith("all but idle")
               for row in text_rows), text_rows
    assert any("*" in row and "luaV_concat" in row for row in text_rows)


def test_figures(out):
    """Means, deviations, t and degrees of freedom equal those calculated here."""
    for row in json.loads(text(out, "several.json"))["rows"]:
        a, b = row["values"][:RUNS], row["values"][RUNS:]
        assert math.isclose(row["before"], statistics.mean(a), abs_tol=1e-6)
        assert math.isclose(row["after"], statistics.mean(b), abs_tol=1e-6)
        va, vb = statistics.variance(a) / RUNS, statistics.variance(b) / RUNS
        if va + vb == 0:
            assert row["p"] is None
            continue
        t = (statistics.mean(b) - statistics.mean(a)) / math.sqrt(va + vb)
        assert math.isclose(row["t"], t, rel_tol=1e-4, abs_tol=1e-6), row
        freedom = (va + vb)**2 / ((va**2 + vb**2) / (RUNS - 1))
        assert math.isclose(row["freedom"], freedom, rel_tol=1e-4), row


@drawn
def test_one_run(out):
    r = json.loads(text(out, "one.json"))
    assert all(row["p"] is None for row in r["rows"])
    assert rows(r)["all but idle"]["before"] > rows(r)["all but idle"]["after"]


@drawn
def test_same(out):
    """Runs of one program differ in total time by chance, those of two by more."""
    several, same = (rows(json.loads(text(out, f"{name}.json")))["all but idle"]
                     for name in ("several", "same"))
    samples = sum(same["values"]) * HZ / 1000
    chance = deviations() * math.sqrt(samples) / (RUNS / 2) * 1000 / HZ
    assert abs(same["before"] - same["after"]) < chance, (chance, same)
    assert several["before"] - several["after"] > chance, (chance, several)


def test_host(out):
    """strobe on the host prints the same for the same files."""
    files = [f"{side}{n}" for side in "ab" for n in range(1, RUNS + 1)]
    files.insert(RUNS, "vs")
    done = subprocess.run([f"{ROOT}/tools/strobe", "diff", "--json",
                           "--no-inline", *files],
                          capture_output=True, text=True, cwd=out)
    assert done.returncode == 0, done
    theirs = rows(json.loads(done.stdout))
    ours = rows(json.loads(text(out, "several.json")))
    assert theirs.keys() == ours.keys()
    for name, row in ours.items():
        for key in ("before", "after"):
            assert math.isclose(row[key], theirs[name][key], abs_tol=1e-6)


def test_page(out, tmp_path):
    """The page of the same files has the same total; its inverted tree has each
    function's time and probability as in the table."""
    files = [f"{side}{n}" for side in "ab" for n in range(1, RUNS + 1)]
    files.insert(RUNS, "vs")
    path = tmp_path / "page.html"
    done = subprocess.run([f"{ROOT}/tools/strobe", "diff", "--html",
                           "--no-inline", "-o", str(path), *files], capture_output=True, text=True,
                          cwd=out)
    assert done.returncode == 0, done
    data = json.loads(re.search(
        r'<script type="application/json" id="data">(.*?)</script>',
        path.read_text(encoding="utf-8"), re.S).group(1))
    expected = rows(json.loads(text(out, "several.json")))
    names = [name if not file else f"{name} {file}" if file[0] == "[" else
             f"{name} [{file}]" for name, file in
             zip(data["symbols"]["name"], data["symbols"]["path"])]
    tree = data["inverted"]
    lists = list(zip(tree["parent"], tree["symbol"], tree["before"],
                     tree["after"], tree["chance"]))
    found = {names[symbol]: figures for parent, symbol, *figures in lists[1:]
             if parent == 0}
    found["all but idle"] = lists[0][2:]
    assert found.keys() == expected.keys()
    for name, (before, after, chance) in found.items():
        row = expected[name]
        assert math.isclose(before, row["before"], rel_tol=1e-6, abs_tol=1e-6)
        assert math.isclose(after, row["after"], rel_tol=1e-6, abs_tol=1e-6)
        assert chance == row["p"] if row["p"] is None else \
            math.isclose(chance, row["p"], rel_tol=1e-5), name


def test_refused(out):
    assert "at least two files" in text(out, "one.err")
    assert text(out, "one.err").endswith("\n2\n")
    assert "not a perf.data file" in text(out, "no.err")
    assert text(out, "no.err").endswith("\n1\n")
