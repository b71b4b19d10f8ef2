"""sprofile: the whole system, by the symbols of all programs."""
import json
import re
import subprocess

import pytest

from machine import ROOT, TAKING, batch, vm
from shares import LOOPS, PROGRAM, by_chance, check_shares, samples
from tiers import BOTH, drawn, realtime

# Two programs, one of them the kernel's child twice.
TWICE = "sprofile {0} --json sh -c '{1} & {1}; wait'"


def report(result):
    return json.loads(result.output[result.output.index("{\n"):])


def check_books(r):
    """Every sample and every tick is accounted for."""
    assert r["taken"] == r["user"] + r["kernel"] + r["irq"] + r["idle"]
    assert sum(row["samples"] for row in r["rows"]) == r["taken"] - r["lost"]
    assert r["malformed"] == 0


def check_programs(r, program, whole):
    """The profiler itself has few samples: its child's, between fork and exec."""
    programs = {p["path"]: p["samples"] for p in r["programs"]}
    assert program in programs
    assert programs.get("/bin/sprofile", 0) <= whole / 10, r


@drawn
def test_shares():
    """Shares are right in virtual time."""
    result = vm(TWICE.format("-F 2000", "tester 40"), "--icount", "1", smp=1)
    assert result.status == 0, result
    r = report(result)
    check_books(r)
    tester = {row["symbol"]: row["samples"] for row in r["rows"]
              if row["image"] == "/bin/tester"}
    whole = sum(tester[name] for name in LOOPS)
    # (Of 1,000 samples other shares differ by more.)
    assert by_chance(0.5, whole) < 0.125, whole
    assert abs(tester["burn_a"] / whole - 0.5) < by_chance(0.5, whole), r
    check_programs(r, "/bin/tester", whole)


def test_a_slow_cpu_misses_no_tick_of_the_hpet():
    """A random tick that is past when it is set comes at once: the driver knows how
    long this CPU takes to set one."""
    result = vm("sprofile -s nmi-hpet -R -F 20000 ls", "--icount", "6", smp=1)
    assert result.status == 0, result
    text = result.output
    assert "nmi-hpet at 20000 Hz on 1 CPU, at random\n" in text, text
    assert int(re.search(r"^Samples:.* (\d+) taken", text, re.MULTILINE)[1]) > 100, text
    assert "\nTicks:   0 missed" in text and "\nLate:" not in text, text


SOURCES = ("nmi-hpet", "nmi-pit", "nmi-rtc", "lapic", "rtc")


def test_a_slower_cpu_gets_the_highest_rate_that_it_can_do():
    """Of 4 MIPS: at 20 kHz a tick comes each 195 instructions, which is less than each of
    these takes. The programs run nevertheless; and the cost is not said to be the host's."""
    scripts = {f"{source} {how}": f"sprofile {how} -s {source} -F 20000 ls"
               for source in SOURCES for how in ("", "--fixed")}
    results = batch(scripts, "--icount", "8", smp=1)
    for name in scripts:
        result = results[name]
        assert result.status == 0, result
        hz, = map(int, re.findall(r"^Source: +\S+ at (\d+) Hz on 1 CPU, .*; 20000 Hz was asked$",
                                  result.output, re.MULTILINE))
        assert 1500 < hz < 8000, (name, result)
        cost, percent = re.search(r"^Cost: +(\d+) cycles a sample, ([\d.]+) % of",
                                  result.output, re.MULTILINE).groups()
        assert 20 < float(percent) < 75, (name, result)
        much = "That is much for sampling alone: this CPU is slow, or the host\n"
        assert (much in result.output) == (int(cost) > 100_000), (name, result)


def test_own_cpu_time():
    """The tool sleeps while it waits for samples, also longer than the two seconds of
    `top`'s refresh."""
    result = vm("for s in 2 12; do time -p sprofile --for $s >/dev/null; done",
                "--icount", "4", smp=1)
    assert result.status == 0, result
    seconds = [float(n) for n in
               re.findall(r"^(?:user|sys) (\S+)", result.errors, re.MULTILINE)]
    assert len(seconds) == 4, result
    # (A second is 62.5 million instructions here: the report takes a quarter.)
    assert sum(seconds[2:]) - sum(seconds[:2]) < 0.5, result


@realtime(chance=1e-6)
@pytest.mark.parametrize("smp", (2, 4))
def test_shares_on_several_cpus(smp):
    """Each function has its share on any CPU, in real time. (In virtual time CPUs take
    turns, and a waiting one is sampled where it stands.)"""
    result = vm(TWICE.format("-R -F 4000", f"{PROGRAM} 800"), smp=smp)
    assert result.status == 0, result
    r = report(result)
    check_books(r)
    assert r["cpus"] == smp
    check_shares(r["rows"])
    check_programs(r, PROGRAM, sum(samples(r["rows"])))


SCRIPTS = {
    "text": "sprofile --for 1 -p 5",
    "same name": "mkdir -p /tmp/a /tmp/b; cp /bin/tester /tmp/a/prog;"
                 " cp /bin/lua /tmp/b/prog; sprofile --json sh -c"
                 " '/tmp/a/prog 30; /tmp/b/prog -e"
                 " \"for i = 1, 3e6 do end\"'",
    "short lives": "sprofile --json sh -c 'n=0; while [ $n -lt 60 ]; do"
                   " tester 1; n=$((n+1)); done'",
    "kernel": "sprofile --json dd if=/dev/zero of=/dev/null bs=1 count=400000",
    "status": "sprofile sh -c 'exit 7' >/dev/null",
    "missing": "sprofile nothing-of-that-name >/dev/null",
    "tree": "sprofile -g sh -c 'lua -e \"for i=1,20000 do s=tostring(i) end\";"
            " ls -lR /bin /bin >/dev/null;"
            " dd if=/dev/zero of=/dev/null bs=1 count=20000'",
    "inverted": "sprofile -G --rows 7 -m 2 lua -e"
                " 'for i=1,20000 do s=tostring(i) end'",
    "seconds": "sprofile -t 5",
    "rows": "sprofile -n 5",
    "bad option": "sprofile -x",
    "bad percentage": "sprofile -p many",
    "bad top": "sprofile top --json",
    "bad source": "sprofile -s none true",
    "bad quiet": "sprofile -q true",
    "pipe": "sprofile -q -o /proc/self/fd/3 tester 5 3>&1 | cat >file;"
            " profile --repair file",
    "interrupted": f"sprofile --json >/tmp/r & p=$!; {TAKING}; sleep 1;"
                   " kill -INT $p; wait $p; cat /tmp/r",
    "signals": "sprofile --json sh -c 'tester 5; kill -INT $PPID; sleep 0.2;"
               " kill -INT $PPID; sleep 0.2'",
    "killed": f"sprofile >/dev/null & p=$!; {TAKING}; kill -9 $p; wait $p;"
              " sprofile --for 1 | grep -c Samples:",
    "top": "sprofile top --for 5 | tail -n 20",
    "short top": "sprofile top sh -c 'usleep 300000'",
    "cpus": "sprofile -a --for 1 | grep -c '^CPU '; grep -c ^processor"
            " /proc/cpuinfo",
}


@pytest.fixture(scope="module", params=BOTH)
def results(request):
    return batch(SCRIPTS, smp=request.param)


def test_text(results):
    lines = results["text"].output.splitlines()
    assert lines[0].startswith("System profile, ")
    for word in ("Source:", "Samples:", "Ticks:", "Cost:"):
        assert any(line.startswith(word) for line in lines[:lines.index("")]), lines
    idle = [line for line in lines if " Idle: " in line][0]
    assert int(idle.split("(")[1].split("%")[0]) > 50, lines


def test_pipe(results):
    """What is written to a pipe is a file that was not ended; -q: only that."""
    found = re.fullmatch(r"file: repaired; (\d+) records, (\d+) of them samples\n",
                         results["pipe"].output)
    assert found and int(found[1]) > int(found[2]) > 0, results["pipe"]
    result = results["bad quiet"]
    assert result.status == 2 and "-q needs -o FILE" in result.errors, result


def test_programs_of_one_name(results):
    r = report(results["same name"])
    check_books(r)
    paths = {p["path"]: p["name"] for p in r["programs"]}
    assert paths["/tmp/a/prog"] == paths["/tmp/b/prog"] == "prog"
    found = {(row["image"], row["symbol"]) for row in r["rows"]}
    assert ("/tmp/a/prog", "burn_a") in found
    assert ("/tmp/b/prog", "luaV_execute") in found


def test_signals_while_the_last_samples_are_fetched(results):
    """A second ^C and the command's end before the last samples are read lose no
    samples."""
    r = report(results["signals"])
    check_books(r)
    assert r["taken"] > 0, r


def test_names_of_the_time(results):
    """Samples of sh before its exec of sleep have the name sh."""
    names = {p["name"]: p for p in report(results["signals"])["programs"]}
    assert "tester" in names and "/bin/sprofile" not in {
        p["path"] for p in names.values() if p["name"] == "sleep"}, names


def test_tasks_that_come_and_go(results):
    """Samples of short-lived tasks have symbols."""
    r = report(results["short lives"])
    check_books(r)
    tester = [p for p in r["programs"] if p["path"] == "/bin/tester"]
    assert len(tester) == 1 and tester[0]["samples"] > 10, r["programs"]
    unknown = sum(row["samples"] for row in r["rows"]
                  if row["image"] == "[unknown]")
    assert unknown <= r["taken"] * 0.01, r


def test_exec_has_no_callers_in_the_next_program(tmp_path):
    """After exec's point of no return samples have no callers in the old program, whose
    addresses are invalid in the new one. (A program that profile starts is delayed there,
    until the profiler is quiescent.)"""
    result = vm("sprofile -g -F 20000 -o /out/f"
                " sh -c 'n=0; while [ $n -lt 20 ]; do"
                " profile -F 10 tester 0 >/dev/null; n=$((n+1)); done'",
                "--get", str(tmp_path))
    assert result.status == 0, result
    stacks = subprocess.run([f"{ROOT}/tools/strobe", "export", "--folded",
                             f"{tmp_path}/f"], capture_output=True, text=True,
                            check=True).stdout
    callers = {line.split(";")[1] for line in stacks.splitlines()
               if ";execed_[k]" in line}
    assert callers == {"trap_syscall_[k]"}, callers


def test_no_change_is_missed():
    """No task event is lost: forks and ends that overfill the event ring in 50 ms wake
    the profiler in time. (Their program has a long path.)"""
    result = vm("""
        d=/tmp/$(printf %0100d 0)/$(printf %0100d 0); mkdir -p $d
        cp /bin/busybox $d/sh
        sprofile -F 100 --json $d/sh -c '
            n=0; while [ $n -lt 1000 ]; do (:); n=$((n+1)); done'
        """, "--icount", "1", smp=1)
    assert result.status == 0, result
    assert report(result)["tasks_lost"] == 0, result


def test_kernel_symbols(results):
    r = report(results["kernel"])
    kernel = {row["symbol"]: row["total"] for row in r["rows"]
              if row["image"] == "[kernel]"}
    assert any("trap_syscall" in (name or "") or "read" in (name or "")
               for name in kernel), kernel
    assert r["kernel"] > r["taken"] * 0.05, r


@pytest.mark.parametrize("name,status,errors", [
    ("status", 7, ""),
    ("missing", 127, "nothing-of-that-name"),
    ("seconds", 2, "--for 5"),
    ("rows", 2, "--rows 5"),
    ("bad option", 2, "Usage:"),
    ("bad percentage", 2, "not a percentage"),
    ("bad top", 2, "no JSON"),
    ("bad source", 1, "source"),
    ("interrupted", 0, ""),
    ("killed", 0, ""),
    ("cpus", 0, ""),
    ("top", 0, ""),
    ("short top", 0, ""),
])
def test_use(results, name, status, errors):
    assert results[name].status == status, results[name]
    assert errors in results[name].errors, results[name]


def test_outputs(results):
    check_books(report(results["interrupted"]))
    assert results["killed"].output.strip() == "1"
    shown, there = map(int, results["cpus"].output.split())
    assert shown == there
    for name in ("top", "short top"):
        screen = results[name].output
        assert re.search(r"\b[1-9]\d* samples in \d+\.\d s", screen), screen
        assert "\33[J" in screen


def tree_lines(result):
    """The tree's lines: total, whether it has a dash, column of the name, name."""
    lines = result.output.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("  Total"))
    for line in lines[head + 1:]:
        found = re.fullmatch(r"\s*([\d.]+)% +([\d.]+%)?  ( *)(- )?(.*)", line)
        if found is None:
            break
        yield (float(found[1]), bool(found[4]),
               len(found[3]) + len(found[4] or ""), found[5])


def test_tree_of_the_machine(results):
    """The tree has programs and kernel; a chain without branches is not indented."""
    result = results["tree"]
    assert result.status == 0, result
    lines = list(tree_lines(result))
    names = [name for _, _, _, name in lines]
    assert "lua luaV_execute" in names and "busybox ls_main" in names, result
    assert any("[kernel]" in name for name in names), result
    straight = [(above, line) for above, line in zip(lines, lines[1:])
                if not line[1] and "less than" not in line[3]]
    assert len(straight) > len(lines) / 3, lines
    for above, line in straight:
        assert line[2] == above[2] and line[0] <= above[0], (above, line)


def test_rows_of_a_tree(results):
    result = results["inverted"]
    assert result.status == 0, result
    lines = list(tree_lines(result))
    assert len(lines) == 7, result
    assert len({name for _, dash, column, name in lines
                if dash and column == 2}) > 1, lines
    assert re.search(r"^\d+ more rows with [\d.]+% at most \(--rows 0 shows all\)$",
                     result.output, re.MULTILINE), result
