"""profile: right within sampling error; losses and errors are reported."""
import json
import re
import subprocess

import pytest

from machine import ROOT, TAKING, batch, vm
from shares import LOOPS, PROGRAM, check_shares
from statistic import FALSE_ALARM, chance
from tiers import BOTH, drawn, realtime


def report(result):
    """The JSON report in a result's output."""
    return json.loads(result.output[result.output.index("{\n"):])


def rows(r):
    return {row["symbol"]: row["samples"] for row in r["rows"]}


def check_ratio(r, allowed):
    """tester's loops are 2 : 1 : 1, each within `allowed` of all samples."""
    found = rows(r)
    total = sum(found[name] for name in LOOPS)
    assert total > 30, r
    for name, share in LOOPS.items():
        assert abs(found[name] / total - share) <= allowed, (name, r)


def check_books(r):
    """Every sample is accounted for."""
    assert r["taken"] == r["user"] + r["kernel"]
    assert r["lost"] <= r["taken"]
    assert r["malformed"] == 0
    shown = sum(row["samples"] for row in r["rows"])
    assert shown == r["taken"] - r["lost"]
    assert r["expected"] > 0 and r["tsc_hz"] > 0 and r["elapsed_ns"] > 0


@drawn
@pytest.mark.parametrize("source", ("lapic", "nmi-pit"))
@pytest.mark.parametrize("smp", (1, 4))
def test_ratio_deterministic(smp, source):
    """With an exact clock and fixed distances the result is within 1 % and, on one CPU,
    repeats exactly. (In QEMU 11 the turns of several CPUs depend on the host: once by
    24 cycles in 166,023,800.)"""
    command = f"profile --fixed -s {source} --json /bin/tester"
    first = vm(command, "--icount", "1", smp=smp)
    assert first.status == 0, first
    if smp == 1:
        assert first.output == vm(command, "--icount", "1", smp=smp).output
    r = report(first)
    check_ratio(r, 0.01)
    check_books(r)
    assert r["cpus"] == smp and r["rate_hz"] == 1000
    assert r["unknown"] == 0 and r["lost"] == 0 and r["missed"] == 0
    # One sample a millisecond of the program's life on each CPU, and no more.
    # (In virtual time CPUs take turns, so ticks may be late.)
    if smp == 1:
        assert abs(r["taken"] + r["others"] - r["elapsed_ns"] / 1e6) < 5


@realtime(chance=1e-6)
@pytest.mark.parametrize("smp", (1, 2, 4))
def test_ratio(smp):
    """The ratio is right in real time, too, in which a busy host delays ticks."""
    result = vm(f"profile -R -F 4000 --json {PROGRAM} 1600", smp=smp)
    assert result.status == 0, result
    r = report(result)
    check_shares(r["rows"])
    check_books(r)
    assert r["cpus"] == smp


@drawn
def test_text():
    result = vm("profile /bin/tester", "--icount", "1", smp=1)
    lines = result.output.splitlines()
    assert lines[0].startswith("Profile of /bin/tester (task ")
    assert lines[1] == "Source:  nmi-hpet at 1000 Hz on 1 CPU, at random"
    for word in ("expected", "taken", "lost", "unknown", "user", "kernel"):
        assert word in lines[2], result
    assert "missed" in lines[3] and "cycles a sample" in lines[4]
    assert re.fullmatch(r"Shares:  of time, by \d+ samples: 50 % \+- [\d.]+, 10 "
                        r"% \+- [\d.]+, 1 % \+- [\d.]+ \(95 % sure\)", lines[5])
    # In 3 of 100 draws a sample is in the kernel; two, in 1 of 2000, are not by chance.
    assert re.match(r"Check:   user (?:100\.0|99\.\d) % \(ledger 100\.0\), kernel 0\.\d % "
                    r"\(ledger 0\.0\): no(?: more than chance \(p = [\d.e-]+\)|t by chance)",
                    lines[6]), result
    # (A row of the kernel makes the column wider.)
    head, = [i for i, line in enumerate(lines)
             if line.lstrip() == "Address  Samples  Percent  Symbol"]
    assert lines[head + 1].split()[0].startswith("0x")
    assert lines[head + 1].split()[3] == "burn_a"


CHECKED = ("tester 60 & tester 20 & /test/call_share read 40 & "
           "for i in 1 2 3; do true; done; wait")


@drawn
@pytest.mark.parametrize("command,tasks", (
    (f"profile -C -F 4000 --json sh -c '{CHECKED}'", 3),
    (f"sprofile -F 4000 --json sh -c '{CHECKED}'", 3),
    # Two that had consumed time before, one of which ends in the session.
    ("tester 60 & tester 200 & tester 3; sprofile -F 4000 --json tester 100", 3),
    # The session begins with a running task that has children.
    ("sh -c 'tester 60; tester 100 & tester 20; wait' & sleep 0.1; "
     "profile -C -F 4000 --json -t $!", 2),
))
def test_check_by_task(command, tasks):
    """Each task's samples are compared with its exact times of the session: of tasks
    that were forked, called exec, ended or went on, they differ by chance."""
    result = vm(command, "--icount", "3", smp=1)
    r = report(result)
    check = r["check"]
    assert r["taken"] > 5000 and check["p"] > FALSE_ALARM, result
    cells = [c for c in check["tasks"] if c.get("name") == "tester"]
    assert sum(c.get("user", 0) > 0.02 for c in cells) >= tasks - 1, check
    for c in check["tasks"]:
        low, high = c["ledger"]
        share = c["user" if "user" in c else "kernel"]
        exact = min(max(share, low), high)
        assert share == exact or \
            chance(r["taken"], round(share * r["taken"]), exact) > FALSE_ALARM, check
        assert c["p"] >= check["p"] / 100, check


def test_random_repeats():
    """In virtual time random distances repeat, too."""
    first, second = (vm("profile --json /bin/tester", "--icount", "1", smp=1)
                     for _ in range(2))
    assert first.status == 0 and first.output == second.output, first
    assert report(first)["random"], first


@pytest.mark.parametrize("tool", ("profile", "sprofile"))
def test_distances(tool):
    """Distances are random unless --fixed (the last of both options counts); a source in
    use keeps its own."""
    run = f"{tool} --json tester 3"
    show = "grep '\"random\"'"
    result = vm(f"{run} | {show}; {run.replace('--', '--fixed --')} | {show};"
                f"{run.replace('--', '--fixed -R --')} | {show};"
                f"{run.replace('--', '-R --fixed --')} | {show};"
                "tester 100000 & profile --fixed --json -t $! >/dev/null & p=$!;"
                f"{TAKING}; {run} | {show}; kill -TERM $p; killall tester",
                smp=1)
    assert result.output.split() == [
        '"random":', "1,", '"random":', "0,", '"random":', "1,",
        '"random":', "0,", '"random":', "0,"], result


def test_rates():
    results = batch({str(hz): f"profile -F {hz} --json tester 20"
                     for hz in (100, 2000, 8000)}, smp=1)
    assert results.pop(None).status == 0
    for hz, result in results.items():
        assert result.status == 0, result
        r = report(result)
        assert r["rate_hz_asked"] == int(hz)
        assert abs(r["rate_hz"] - int(hz)) <= int(hz) * 0.02, r
        check_books(r)


# Until exec, a child is still the shell.
TESTER = "until pidof tester >/dev/null; do usleep 20000; done"
SCRIPTS = {
    "status": "profile sh -c 'exit 5' >/dev/null",
    "signal": "profile sh -c 'kill -9 $$' >/dev/null",
    "arguments": "profile --json echo -n 1 --json | head -n 1",
    "output goes on": "profile echo hi | head -n 1",
    "input goes in": "echo word | profile cat | head -n 1",
    "missing": "profile nothing-of-that-name",
    "no program": "profile /etc/passwd",
    "no task": "profile -t 99999",
    "bad option": "profile -x",
    "bad number": "profile -F 0 true",
    "bad number 2": "profile --rows many true",
    "nothing": "profile",
    "both": "profile -t 1 true",
    "bad event": "profile -e cycle true",
    "no lines here": "profile --by line true",
    "long buffers": "profile -m 3600 -F 20000 -g true >/dev/null",
    "bad source": "profile -s no-such-source true",
    "help": "profile --help",
    "text is no program": "echo nonsense >f; chmod +x f; profile ./f",
    "rows": "profile --rows 1 tester 10",
    "error": "profile --json --error tester 10",
    "error in text": "profile --error tester 10",
    "rows of a tree": "profile -g --rows 12 lua -e"
                      " 'for i=1,20000 do s=tostring(i) end'",
    "ends at once": "for i in 1 2 3 4 5 6 7 8 9 10; do"
                    " profile true >/dev/null || exit 1; done",
    "task": f"tester 100000 & {TESTER}; profile -t $! --json & p=$!; {TAKING};"
            " sleep 1; kill -TERM $p; wait $p; kill %1",
    "task that ends": f"tester 1000 & {TESTER}; profile -t $! --json",
    # An existing child, and a new one, beside unrelated tasks.
    "family": "tester 100000 & o=$!; sh -c 'sh -c \"tester 100000 & cp"
              " /bin/tester own; ./own 100000 & wait\" & wait' & t=$!;"
              " until [ $(pidof own tester | wc -w) = 3 ]; do sleep 0.1; done;"
              " used() { awk '{ print $14 }' /proc/$(pidof $1)/stat; };"
              f" profile -C -t $t --json & p=$!; {TAKING}; n=$(used own);"
              " until [ $(used own) -ge $((n + 50)) ]; do sleep 0.1; done;"
              " kill -TERM $p; wait $p; kill $o $(pidof own tester)",
    "forking": "profile --json sh -c 'for i in 1 2 3; do tester 5; done;"
               " while [ $((n += 1)) -lt 20000 ]; do :; done'",
    "threads": "profile --json /test/threads",
    "two at once": "profile --json tester 30 >a & profile --json tester 30 >b;"
                   " wait; cat a b | grep -c '\"burn_a\"'",
    "killed profiler": "profile tester 100000 & p=$!;"
                       f" {TESTER};"
                       " sleep 0.1; kill -9 $p; wait $p; echo $?; killall tester; profile true |"
                       " grep -c Samples:",
    "seventeenth": "tester 100000 & t=$!;"
                   " for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do"
                   " profile -t $t >/dev/null 2>&1 & p=\"$p $!\"; done;"
                   " until [ $(sysinfo system.profile.sessions | grep -c taking)"
                   " = 16 ]; do sleep 0.1; done; profile -s lapic -t $t;"
                   " echo $?; kill -9 $p $t; wait; profile true |"
                   " grep -c Samples:",
    "nested": "profile --rows 3 profile --rows 3 tester 10 | grep -c Samples:",
    # The task's program file was replaced.
    # (They run until they are killed, at any speed of the host.)
    "replaced": "cd /tmp; cp /bin/tester q; ./q 1000000 & t=$!;"
                " until grep -q q /proc/$t/comm; do :; done;"
                " rm q; cp /bin/lua q; cmp /proc/$t/exe /bin/tester &&"
                f" {{ profile --json -t $t & p=$!; {TAKING}; sleep 0.5;"
                " kill $p; wait $p || :; kill $t; }",
    # The file is replaced, or deleted, while it is profiled.
    "replaced while it runs": "cd /tmp; cp /bin/tester r; profile --json sh -c"
                              " 'cp /bin/lua s; ./r 200 & mv s r; wait' >/dev/null;"
                              " cp /bin/tester r; profile --json ./r 200 & p=$!;"
                              " until pidof r; do :; done >/dev/null;"
                              " cp /bin/lua s; mv s r; wait $p",
    "deleted in a system profile":
        "cd /tmp; cp /bin/tester d; sprofile --json --for 2 >out & p=$!;"
        f" {TAKING}; ./d 1000000 & t=$!; until pidof d; do :; done >/dev/null;"
        " rm d; wait $p; kill $t; cat out",
    "code of no file": "profile --json /test/jit 2000",
    "tree of code of no file": "profile --json -g /test/jit 2000",
    "code of no file, nameless": "profile --json /test/jit 2000 nameless",
    "code without a frame": "profile --json -g /test/jit 500 bare",
}


@pytest.fixture(scope="module", params=BOTH)
def results(request):
    return batch(SCRIPTS, smp=request.param)


@pytest.mark.parametrize("name,status,output,errors", [
    ("status", 5, None, ""),
    ("signal", 137, None, ""),
    ("arguments", 0, "1 --json{\n", ""),
    ("output goes on", 0, "hi\n", ""),
    ("input goes in", 0, "word\n", ""),
    ("missing", 127, "", "no such program"),
    ("no program", 126, "", "chmod +x"),
    ("no task", 1, "", "no such task"),
    ("bad option", 2, "", "Usage:"),
    ("bad number", 2, "", "-F 0: not a number from 1 to"),
    ("bad number 2", 2, "", "--rows many"),
    ("nothing", 2, "", "nothing to profile: give a program or -t TASK"),
    ("both", 2, "", "do not go together"),
    ("bad event", 1, "", "cycle: no such event; available: cycles,"),
    ("no lines here", 2, "", "strobe lines FILE"),
    ("long buffers", 0, "", "the buffers hold 4 s at most"),
    ("bad source", 1, "", "no such sample source"),
    ("help", 0, None, ""),
    ("text is no program", 126, "", "not a program for this machine"),
    ("ends at once", 0, "", ""),
    ("two at once", 0, "2\n", ""),
    ("killed profiler", 0, "137\n1\n", ""),
    ("seventeenth", 0, "1\n1\n", "as many sessions as there can be"),
    ("nested", 0, "2\n", ""),
])
def test_behaviour(results, name, status, output, errors):
    result = results[name]
    assert result.status == status, result
    assert output is None or result.output == output, result
    assert errors in result.errors, result


def test_help(results):
    for option in ("-F", "-s", "-n", "-t", "--json"):
        assert option in results["help"].output


def test_complaint_stays_on_the_screen(results):
    for name in ("bad option", "bad number", "both"):
        assert len(results[name].errors.splitlines()) < 24, results[name]


@pytest.mark.parametrize("command, waited", [
    ("profile sleep 5", r"in ([45]) of \1 checks .*it waited on sleep \(\1\)"),
    ("sleep 3 & profile -t $!", r"in ([23]) of \1 checks .* on sleep \(\1\)"),
    ("profile sh -c 'sleep 3; true'", r"in ([23]) of \1 checks .* on wait \(\1\)"),
    ("profile tester", None),
    ("profile -C sh -c 'sleep 2; true'", None),
])
def test_what_does_not_run_waits(command, waited):
    """A program that does not run is reported, with what it waits for."""
    line = re.search("^Waits:.*", vm(command, smp=1).output, re.MULTILINE)
    if waited is None:
        assert line is None, line
    else:
        assert re.search("not running " + waited, line[0]), line[0]


def test_rows(results):
    assert "more rows with" in results["rows"].output, results["rows"]
    tree = results["rows of a tree"].output
    lines = tree[tree.index("  Total    Self  Calls\n"):].splitlines()[1:]
    assert len(lines) == 13 and "--rows 0 shows all" in lines[12], tree


def test_error(results):
    """--error: each row's share has its own confidence interval (Wilson's)."""
    r = report(results["error"])
    whole, z2 = sum(row["period"] for row in r["rows"]), 1.959964 ** 2
    for row in r["rows"]:
        n, share = r["taken"], row["period"] / whole
        middle = (share + z2 / 2 / n) / (1 + z2 / n)
        half = (z2 * (share * (1 - share) / n + z2 / 4 / n ** 2)) ** 0.5 / (1 + z2 / n)
        low, high = row["interval"]
        if r["missed"]:  # samples that stand for several ticks are as good as fewer
            assert low < middle - half + 2e-6 and high > middle + half - 2e-6, (row, r)
        else:
            assert [low, high] == pytest.approx([middle - half, middle + half],
                                                abs=2e-6), (row, r)
    assert re.search(r"^ *Address +Samples +Percent +95 % sure  Symbol\n *0x\w+ +\d+ +"
                     r"[\d.]+% +[\d.]+-[\d.]+%  burn_a$",
                     results["error in text"].output, re.M), results["error in text"]


def test_turns():
    """Under --icount CPUs take turns: the header says why their ticks come late, and
    that the cost has the other CPUs' time."""
    result = vm("sprofile sh -c 'tester 20 & tester 20; wait'", "--icount", "1", smp=2)
    assert result.status == 0, result
    turns = r"the host, or \(QEMU --icount\) the other CPUs' turns,"
    assert re.search(rf"^Late:    {turns} kept the CPUs for \d+ of \d+ ms:\n(.*\n)+"
                     rf"Cost: .*\n         That is much for sampling alone: this CPU is slow, or "
                     rf"{turns}$",
                     result.output, re.M), result


@pytest.mark.parametrize("name", ("task", "task that ends"))
def test_running_task(results, name):
    r = report(results[name])
    assert r["program"].endswith("tester"), r
    assert rows(r)["burn_a"] > 0, r
    check_books(r)


def test_forking(results):
    """Only the task itself is sampled, not its children."""
    r = report(results["forking"])
    assert r["program"] == "/bin/sh" and "burn_a" not in rows(r), r
    check_books(r)


def test_family(results):
    """Existing descendants of a task are profiled with it, by their own symbols; other
    tasks are not."""
    r = report(results["family"])
    check_books(r)
    images = {row["image"] for row in r["rows"] if row["symbol"] == "burn_a"}
    assert {path.rsplit("/", 1)[1] for path in images} == {"own", "tester"}, r
    assert r["others"] > 0, r


def test_threads(results):
    result = results["threads"]
    assert result.status == 0, result
    check_books(report(result))


def test_symbols_damaged_and_missing(tmp_path):
    """Damaged or missing symbol tables: no crash, and addresses instead of names."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    good = open(f"{ROOT}/build/user/tester", "rb").read()
    stripped = bin_folder / "stripped"
    stripped.write_bytes(good)
    stripped.chmod(0o755)
    subprocess.run(["strip", stripped], check=True)
    beside = bin_folder / "beside"
    beside.write_bytes(stripped.read_bytes())
    names = subprocess.run(["nm", f"{ROOT}/build/user/tester"],
                           capture_output=True, check=True).stdout
    (bin_folder / "beside.sym").write_bytes(names)
    shoff = int.from_bytes(good[32:36], "little")
    damaged = {
        "shoff": good[:32] + b"\xf0\xff\xff\xff" + good[36:],
        "shnum": good[:48] + b"\xff\xff" + good[50:],
        "zeros": good[:shoff] + b"\0" * (len(good) - shoff),
        "ones": good[:shoff + 40] + b"\xff" * (len(good) - shoff - 40),
        "cut": good[:shoff + 100],
    }
    for name, data in damaged.items():
        (bin_folder / name).write_bytes(data)
    for file in bin_folder.iterdir():
        file.chmod(0o755)
    scripts = {name: f"profile --json /bin/{name} 30"
               for name in ("stripped", "beside", *damaged)}
    results = batch(scripts, "--add", str(tmp_path), smp=1)
    assert results.pop(None).status == 0
    for name, result in results.items():
        assert result.status == 0, (name, result)
        r = report(result)
        check_books(r)
        if name == "beside":
            check_ratio(r, 0.3)
        elif name in ("stripped", "zeros", "cut", "shoff"):
            assert "addresses are shown instead" in result.errors, result
            if name != "zeros":
                advice = "Link it without -s" in result.errors
                assert advice == (name == "stripped"), result
            assert r["rows"][0]["address"] > 0x08000000, r


def names_in(branches):
    for branch in branches:
        yield branch["name"]
        yield from names_in(branch["calls"])


@pytest.mark.parametrize("option", ("-g", "-G"))
def test_tree_without_names(tmp_path, option):
    """The tree of code without names has addresses."""
    (tmp_path / "bin").mkdir()
    stripped = tmp_path / "bin/stripped"
    stripped.write_bytes(open(f"{ROOT}/build/user/tester", "rb").read())
    stripped.chmod(0o755)
    subprocess.run(["strip", stripped], check=True)
    result = vm(f"profile --json {option} /bin/stripped 30", "--add",
                str(tmp_path), smp=1)
    names = list(names_in(report(result)["tree"]))
    assert all(names) and any(name.startswith("0x80") for name in names), names


@pytest.mark.parametrize("name,image", (
    ("replaced", "/tmp/q"),
    ("replaced while it runs", "/tmp/r"),
    ("deleted in a system profile", "/tmp/d"),
))
def test_file_that_was_replaced(results, name, image):
    """A replaced file's samples have the symbols of the file that ran."""
    result = results[name]
    r = report(result)
    assert result.status == 0 and "instead" not in result.errors, result
    own = {row["symbol"] for row in r["rows"] if row["image"] == image}
    assert "burn_a" in own and None not in own, r


def test_code_of_no_file(results):
    """Generated code has the names that the program provides, as with perf."""
    r = report(results["code of no file"])
    check_books(r)
    top = r["rows"][0]
    assert top["symbol"] == "spin" and top["image"].startswith("[JIT] task"), r
    assert top["samples"] > 0.9 * r["taken"], r
    r = report(results["tree of code of no file"])
    chain = [next(names_in([branch])) for branch in r["tree"]]
    deep = list(names_in(r["tree"]))
    main = deep.index("main")
    assert deep[main + 1].startswith("twice the spin [JIT]"), (chain, deep)
    assert deep[main + 2].startswith("spin [JIT]"), deep
    r = report(results["code of no file, nameless"])
    top = r["rows"][0]
    assert top["symbol"] is None and top["image"] == "[anon]", r


def test_no_call_of_another_function(results):
    """Generated code without a frame hides its caller. The next one known calls that
    caller, so it is not taken for the generated code's."""
    r = report(results["code without a frame"])
    deep = list(names_in(r["tree"]))
    main = deep.index("main")
    assert deep[main + 1].startswith("[callers not found]"), deep
    assert deep[main + 2].startswith("bare [JIT]"), deep
    assert deep[main + 3].startswith("burn"), deep
    assert r["cut_broken"] > 0.9 * r["taken"], r
