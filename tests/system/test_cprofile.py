"""cprofile: calls of the kernel's functions, counted exactly; its file read by strobe and
by other tools."""
import collections
import json
import re

import pytest

from browser import Browser
from exports import callgrind, strobe
from machine import batch, vm
from speedscope import speedscope
from test_flame import Counted

COPY = "dd if=/dev/zero of=/dev/null bs=1 count={} 2>/dev/null"
CHOSEN = "-F 'sys_read,sys_write,kernel/fs/*,!walk_*'"
SCRIPTS = {
    **{f"copy-{n}": f"cprofile --json -1 {CHOSEN} {COPY.format(n)}"
       for n in (100, 300)},
    **{f"arcs-{n}": f"cprofile --json --arcs -1 {CHOSEN} {COPY.format(n)}"
       for n in (100, 300)},
    "tables": f"cprofile -1 -n 3 {COPY.format(9)}",
    "functions": f"cprofile -1 -f -c -n 2 -F 'sys_*' {COPY.format(50)}",
    "names": f"cprofile -1 -f -a -n 0 -F 'sys_*' {COPY.format(50)}",
    "ordered": f"cprofile -1 -p -O -n 0 -F 'sys_write,kernel/fs/*,!kernel/fs/pipe*' "
               f"{COPY.format(9)}",
    "whole": f"cprofile -1 -p -O -i -n 0 -F 'sys_write,kernel/fs/*,!kernel/fs/pipe*' "
             f"{COPY.format(9)}",
    "tree": f"cprofile -1 -g {COPY.format(9)}",
    "sleep": "cprofile --json -1 -F sys_nanosleep,sys_clock_nanosleep* "
             "sleep 0.2",
    "large": "cprofile -f -n 1 -Z 500 true",
    "deep": "cprofile -1 -D 2 -p -i -n 0 -O ls",
    "few": "cprofile -1 --entries 256 -n 1 -f ls -l / >list; tail -n 9 list",
    "missed": "cprofile -F 'shed_*' true",
    "missed-file": "cprofile -F '!kernel/skhed/*' true",
    "none": "cprofile -F 'sched_*' -Z 60000 true",
    "no-task": "cprofile -t 4194304",
    "no-program": "cprofile /nothing",
    "full": "cprofile -n 1 -o /dev/full true",
    "status": "cprofile -n 1 sh -c 'exit 7'",
    "no-trace": "cprofile get; echo $?; cprofile reset; echo $?",
    "usage": "cprofile -D 257 true; cprofile -1; cprofile get ls; "
             "cprofile -f -g ls; cprofile -F '!' ls; cprofile reset now",
    "other": """
cprofile -F 'kernel/syscall/*' sleep 2 >/dev/null &
sleep 0.5; cprofile true; echo $?
cprofile get -f -n 0 -a; echo =; cprofile reset; cprofile get -f -n 0 -a; wait
""",
    "killed": """
cprofile -F 'sched_*' sleep 100 >/dev/null &
sleep 0.5; sysinfo system.text >before; kill -9 $!; wait; sleep 0.1
sysinfo system.text; cprofile get; cprofile -n 1 -f true; cat before
""",
    "ordinary": "su user -c 'cprofile true'",
}


@pytest.fixture(scope="module")
def results():
    return batch(SCRIPTS, "--icount", "3", smp=2)


def read(result):
    assert result.status == 0, result
    return json.loads(result.output[result.output.index("{"):])


def calls_of(result):
    calls = collections.Counter()
    for path in read(result)["paths"]:
        calls[path["function"]] += path["calls"]
    return calls


def test_counts_of_calls_are_exact(results):
    more = calls_of(results["copy-300"]) - calls_of(results["copy-100"])
    assert more["sys_read"] == more["sys_write"] == 200
    assert not calls_of(results["copy-100"])["walk_path"]


def test_arcs_and_paths_count_the_same(results):
    for n in (100, 300):
        arcs = collections.Counter()
        for arc in read(results[f"arcs-{n}"])["arcs"]:
            arcs[arc["to"]] += arc["calls"]
        paths = calls_of(results[f"copy-{n}"])
        for name in ("sys_read", "sys_write"):
            assert arcs[name] == paths[name], (n, name)


def test_own_times_sum_up_to_the_total(results):
    paths = read(results["copy-100"])["paths"]
    totals = [p["own"] for p in paths]
    for i in reversed(range(len(paths))):
        assert paths[i]["caller"] <= i
        if paths[i]["caller"] != i:
            totals[paths[i]["caller"]] += totals[i]
    assert totals == [p["total"] for p in paths]


def test_waiting_is_not_own_time(results):
    trace = read(results["sleep"])
    sleeping, = [p for p in trace["paths"] if "nanosleep" in p["function"]]
    assert sleeping["calls"] == 1
    assert sleeping["blocked"] > 0.19 * trace["tsc_hz"]
    assert sleeping["own"] < 0.001 * trace["tsc_hz"]


def rows(text):
    """The tables' rows: (calls, function)."""
    found = re.findall(r"^ *(\d+) (?: *\S+){8}  ( *\S.*)$", text, re.MULTILINE)
    return [(int(calls), name) for calls, name in found]


def test_tables(results):
    both = results["tables"].output
    assert both.count("Shortest") == 2 and "more functions (-n 0" in both
    assert "[threads];" in both
    assert "MISSING" not in both
    by_calls = rows(results["functions"].output)
    assert [n for n, _ in by_calls] == [n for n, _ in sorted(
        by_calls, reverse=True)]
    assert {name for _, name in by_calls} == {"sys_read", "sys_write"}
    names = [name for _, name in rows(results["names"].output)]
    assert names == sorted(names) and len(names) > 5
    assert "[idle]" not in both


def test_paths_are_indented_or_whole(results):
    indented = rows(results["ordered"].output)
    whole = rows(results["whole"].output)
    assert len(indented) == len(whole) > 3
    for (calls, name), (whole_calls, path) in zip(indented, whole):
        assert calls == whole_calls
        assert path.split(";")[-1] == name.strip()
        assert path.count(";") * 2 == len(name) - len(name.lstrip())
    tree = results["tree"].output
    assert "Paths below 0.5% of the time are left out (-n 0 shows all)" in tree


def test_filters(results):
    assert re.search(r"^Traced: +\d+ functions", results["large"].output)
    traced = int(re.search(r"(\d+) functions", results["large"].output)[1])
    assert 20 < traced < 300
    assert all(path.count(";") <= 2
               for _, path in rows(results["deep"].output))
    assert ", 2 calls deep" in results["deep"].output
    assert results["deep"].output.index("MISSING: ") < \
        results["deep"].output.index("Traced: ")


def test_full_tables_are_said_first(results):
    assert re.search(r"^MISSING: \d+ calls: .*--entries", results["few"].output,
                     re.MULTILINE), results["few"]


@pytest.mark.parametrize("name, status, message", (
    ("missed", 1, "-F 'shed_*': no such function"),
    ("missed-file", 1, "-F '!kernel/skhed/*': no such source file"),
    ("none", 1, "choose no function"),
    ("no-task", 1, "-t 4194304: no such task, or it has ended (see ps)"),
    ("no-program", 127, "/nothing: no such program"),
    ("full", 1, "-o /dev/full: No space left on device"),
    ("status", 7, ""),
    ("ordinary", 1, "this user may profile its own tasks only"),
))
def test_errors(results, name, status, message):
    assert results[name].status == status, results[name]
    assert message in results[name].errors


def test_what_is_near_is_listed(results):
    assert "Near are:\n    sched_" in results["missed"].errors
    assert "    kernel/sched/" in results["missed-file"].errors


def test_usage(results):
    errors = results["usage"].errors
    for message in ("-D 257: not a number from 1 to 256",
                    "-1 goes with a command", "ls: get takes no command",
                    "-f, and -p or -g: one at a time",
                    "a pattern follows the !", "now: reset takes nothing"):
        assert message in errors, message
    assert errors.count("Usage: cprofile") == 6


def test_get_and_reset_reach_the_trace_of_another(results):
    result = results["other"]
    assert re.search(r"task \d+ traces the kernel's calls already",
                     result.errors), result
    first, second = result.output.split("=\n")
    assert first.startswith("1\n")
    before, after = dict((name, n) for n, name in rows(first)), \
        dict((name, n) for n, name in rows(second))
    assert before["sys_execve"] == 3 and after["sys_execve"] == 1
    assert "(1 not returned)" in first
    assert "no trace" in results["no-trace"].errors
    assert results["no-trace"].output == "1\n1\n"


def test_kill_ends_the_trace(results):
    result = results["killed"]
    patched = re.findall(r"^patched +(\d+) ", result.output, re.MULTILINE)
    assert len(patched) == 2, result
    assert int(patched[0]) < int(patched[1])
    assert "there is no trace" in result.errors
    assert "Traced: " in result.output


# --- the file -----------------------------------------------------------------

@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calls")
    result = vm(f"cprofile --json -o /out/one {COPY.format(50)} >/out/one.json;"
                f"cprofile --json -o /out/two {COPY.format(90)} >/out/two.json;"
                f"cprofile --json --arcs -o /out/arcs true >/out/arcs.json",
                "--get", str(folder), "--icount", "3", smp=2)
    assert result.status == 0, result
    return folder


def trace(folder, name):
    with open(f"{folder}/{name}.json") as file:
        return json.load(file)


def nanoseconds(read_trace, cycles):
    return cycles * 1e9 / read_trace["tsc_hz"]


def own_times(read_trace):
    """{function: own ns}, without the roots."""
    own = collections.Counter()
    for i, path in enumerate(read_trace["paths"]):
        if path["caller"] != i:
            own[path["function"]] += nanoseconds(read_trace, path["own"])
    return own


def test_report_and_tree(measured):
    one = trace(measured, "one")
    calls = collections.Counter()
    for path in one["paths"]:
        calls[path["function"]] += path["calls"]
    report = strobe("report", "-n", 0, measured / "one").stdout
    shown = {name.split(" (")[0]: n for n, name in rows(report)}
    assert shown == {name: n for name, n in calls.items() if name[0] != "["}
    assert "Traced: " in report and "of cprofile" in report
    tree = rows(strobe("tree", "--min", 0, measured / "one").stdout)
    assert len(tree) == len(one["paths"])
    one_cpu = sum(n for n, _ in rows(
        strobe("report", "-n", 0, "-c", 0, measured / "one").stdout))
    other_cpu = sum(n for n, _ in rows(
        strobe("report", "-n", 0, "-c", 1, measured / "one").stdout))
    assert one_cpu + other_cpu == sum(shown.values())


def test_diff(measured):
    text = strobe("diff", "-n", 0, measured / "one", measured / "two").stdout
    row = re.search(r"^ *(\d+) +(\d+) +\+(\d+) .* sys_write$", text,
                    re.MULTILINE)
    assert int(row[3]) == int(row[2]) - int(row[1]) == 40


def test_arcs_report(measured):
    text = strobe("report", "-n", 0, measured / "arcs").stdout
    shown = re.findall(r"^ *(\d+)  (\S+) +(\S+)$", text, re.MULTILINE)
    arcs = trace(measured, "arcs")["arcs"]
    assert sorted((int(n), a, b) for n, a, b in shown) == \
        sorted((a["calls"], a["from"], a["to"]) for a in arcs)
    assert "without times" in strobe("tree", measured / "arcs", status=1).stderr


def test_folded(measured):
    own = own_times(trace(measured, "one"))
    found = collections.Counter()
    for line in strobe("export", "--folded",
                       measured / "one").stdout.splitlines():
        stack, value = line.rsplit(" ", 1)
        found[stack.split(";")[-1].removesuffix("_[k]")] += int(value)
    paths = len(trace(measured, "one")["paths"])
    for name, value in own.items():
        assert abs(found[name] - value) <= paths, name
    assert abs(sum(found.values()) - sum(own.values())) <= paths


def test_callgrind_annotate_shows_the_same_own_time_and_calls(measured, tmp_path):
    strobe("export", "--callgrind", "-o", tmp_path / "cg", measured / "one")
    own = own_times(trace(measured, "one"))
    found, whole = callgrind(tmp_path / "cg", "no", "Nanoseconds")
    assert abs(whole - sum(own.values())) <= len(own)
    for name, value in own.items():
        assert abs(found[name] - value) <= 1, name
    calls = sum(map(int, re.findall(r"^calls=(\d+)",
                                    (tmp_path / "cg").read_text(),
                                    re.MULTILINE)))
    one = trace(measured, "one")
    assert calls == sum(p["calls"] for i, p in enumerate(one["paths"])
                        if p["caller"] != i)


def test_speedscope_shows_the_same_shares(measured, tmp_path):
    file = tmp_path / "one.json"
    strobe("export", "--speedscope", "-o", file, measured / "one")
    profiles = json.loads(file.read_text())["profiles"]
    assert [p["name"] for p in profiles][0] == "[threads]"
    assert {p["type"] for p in profiles} == {"evented"}
    own = collections.Counter()
    one = trace(measured, "one")
    root = list(range(len(one["paths"])))
    for i, path in enumerate(one["paths"]):
        if path["caller"] != i:
            root[i] = root[path["caller"]]
            if one["paths"][root[i]]["function"] == "[threads]":
                own[path["function"]] += path["own"]
    busiest = [name for name, _ in own.most_common(3)]
    shares = speedscope(str(file), busiest, ["[threads]"])
    for name in busiest:
        expected = 100 * own[name] / sum(own.values())
        # Of 10 % or more it shows whole numbers.
        assert abs(shares["[threads]"][name] - expected) < 0.51, name


def test_page(measured, tmp_path):
    strobe("export", "--html", "-o", tmp_path / "page.html", measured / "one")
    counted = Counted(tmp_path / "page.html")
    own = own_times(trace(measured, "one"))
    event = counted.data["events"][0]
    assert (event["name"], event["unit"], event["samples"]) == (
        "own time of calls", "ns", None)
    total = event["total"]
    assert abs(total - sum(own.values())) <= len(
        trace(measured, "one")["paths"])
    assert total == sum(n for *_, n in counted.counts)
    browser = Browser()
    try:
        browser.open(tmp_path / "page.html")
        shown = browser.find("shown").text
        assert " ms" in shown and "sample" not in shown
    finally:
        browser.close()


def test_other_commands_say_what_reads_it(measured):
    assert "strobe report, tree, diff and export read it" in \
        strobe("top", measured / "one", status=1).stderr
    assert "kgmon writes gmon.out" in \
        strobe("export", "--gmon", measured / "one", status=2).stderr
    cut = measured / "cut"
    cut.write_bytes((measured / "one").read_bytes()[:-1])
    assert "cut off" in strobe("report", cut, status=1).stderr
