"""docs/tutorial.md: profiles of the slow script and query show the problems that it
describes, and its changes help."""
import functools
import re

from machine import batch

SCRIPTS = {
    "lua": """cd /share/tutorial
profile --rows 0 -o /tmp/slow lua slow.lua
echo ---
profile --rows 0 -o /tmp/fast lua fast.lua
echo ---
profile diff /tmp/slow /tmp/fast
""",
    "sql": """db=$PWD/shop.db out=$PWD
cd /share/tutorial
sqlite3 $db <orders.sql
profile --rows 0 -o $out/before sqlite3 -cmd '.eqp on' $db <slow.sql
echo ---
sqlite3 $db <index.sql
profile --rows 0 -o $out/after sqlite3 -cmd '.eqp on' $db <slow.sql
echo ---
profile diff $out/before $out/after
""",
}


@functools.lru_cache(maxsize=None)
def results():
    return batch(SCRIPTS, "--icount", "1", smp=1)


def parts(name):
    """Output before the change, after it, and of their difference."""
    result = results()[name]
    assert result.status == 0, result
    return result.output.split("---\n")


def samples(report):
    """{symbol: samples}."""
    return {name: int(count) for count, name in re.findall(
        r"^ *0x\w+ +(\d+) +[\d.]+%  (.*)$", report, re.MULTILINE)}


def answer(report):
    return [line for line in report.splitlines()
            if line.endswith("bytes") or line.startswith("customer ")]


def check_cure(name, culprit):
    *reports, difference = parts(name)
    before, after = map(samples, reports)
    assert max(before, key=before.get).split(".")[0] == culprit, before
    assert sum(before.values()) > 4 * sum(after.values()), (before, after)
    answers = [answer(report) for report in reports]
    assert answers[0] == answers[1] and answers[0], answers
    gain = re.search(rf"-([\d.]+) +-(?:9\d\.\d|100\.0)%.* {culprit}", difference)
    assert gain and float(gain[1]) > 300, difference


def test_lua():
    check_cure("lua", "luaV_concat")


def test_sql():
    check_cure("sql", "sqlite3VdbeExec")
    before, after, _ = parts("sql")
    assert "`--SCAN orders" in before, before
    assert "SEARCH orders USING INDEX orders_of" in after, after
