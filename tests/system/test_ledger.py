"""The ledger: balanced under stress, times split exactly by mode, load averages compared
with real-number ones, and the same values in BusyBox's tools."""
import json
import math
import re

import pytest

from machine import LONG_PATIENCE, batch, vm
from tiers import realtime

STORM_SECONDS = 20


def test_split_is_exact():
    """Times of a busy loop, a sleeper, system calls and interrupts are exact."""
    result = vm("/test/ledger_split exact", "--icount", "1", smp=1)
    assert result.status == 0, result
    assert len(re.findall("^ok ", result.output, re.MULTILINE)) == 4, result


def test_the_ways_in_and_out_are_the_kernels():
    """Kernel entry and exit are charged to the kernel, except 2 instructions of a fault:
    a program is charged with its own instructions between system calls and faults.
    The loop around the libc's getppid has 8. (An instruction is a nanosecond;
    getrusage has microseconds.)"""
    result = vm("/test/entry_times", "--icount", "0", smp=1)
    assert result.status == 0, result
    times = {name: list(map(int, numbers)) for name, *numbers in re.findall(
        r"^(\w+) turns (\d+) user (\d+) kernel (\d+)$", result.output,
        re.MULTILINE)}
    assert times.keys() == {"calls", "faults", "libc"}, result
    charged = {"calls": 4, "faults": 4 + 2, "libc": 8}
    for name, (turns, user, kernel) in times.items():
        assert abs(user * 1000 - charged[name] * turns) < 3000, (name, times)
        assert kernel * 1000 > 150 * turns, (name, times)


@realtime()
def test_books_balance_under_stress():
    """Every audit is 0 under stress on 8 CPUs: forks, kills, threads, migrations,
    signals, pipes, timers, faults, a profiler's interrupts."""
    script = f"""
        tester 1000000 & busy=$!
        profile -F 5000 -t $busy --json >/dev/null 2>&1 & profiler=$!
        /test/ledger_storm {STORM_SECONDS} >/tmp/storm & storm=$!
        readings=0 wrong=0
        while kill -0 $storm 2>/dev/null; do
            stats --audit --json >/tmp/audit || wrong=$((wrong + 1))
            readings=$((readings + 1))
        done
        wait $storm; echo storm $?
        kill $busy; wait $profiler
        stats --audit || wrong=$((wrong + 1))
        echo readings $readings wrong $wrong
        cat /tmp/storm"""
    result = vm(script, smp=8, timeout=LONG_PATIENCE)
    assert result.status == 0, result
    assert "storm 0\n" in result.output, result
    readings, wrong = map(int, re.search(r"readings (\d+) wrong (\d+)",
                                         result.output).groups())
    assert readings >= 2 and wrong == 0, result
    assert "ok every reading of the audit balances" in result.output, result
    created = int(re.search(r"(\d+) tasks created", result.output).group(1))
    assert created > 100, result


# ---- load averages

DECAY = [math.exp(-5 / (60 * minutes)) for minutes in (1, 5, 15)]
ONE = 65536


def test_load_averages_of_a_recorded_history():
    """Load averages equal those that real numbers give for kload's recorded history,
    within rounding errors."""
    script = """
        record() { for i in $(seq $1); do
            echo $(sysinfo --json system.load); cat /proc/loadavg
            sleep 2.5; done; }
        record 4
        tester 1000000 & tester 1000000 & tester 1000000 &
        record 12
        kill %1 %2
        record 8
        kill %3
        record 6"""
    result = vm(script, "--icount", "8", smp=1, timeout=LONG_PATIENCE)
    assert result.status == 0, result
    lines = result.output.splitlines()
    history = {}
    for record, loadavg in zip(lines[::2], lines[1::2]):
        load, = json.loads(record)
        history[load["updates"]] = load
        shown = list(map(float, loadavg.split()[:3]))
        averages = [load[name] for name in ("one", "five", "fifteen")]
        # An update may be between the two.
        assert all(abs(s - a) < 0.35 for s, a in zip(shown, averages))
    updates = sorted(history)
    assert updates[-1] >= 14
    assert updates == list(range(updates[0], updates[-1] + 1)), "one was missed"
    seen = [history[n]["runnable"] for n in updates]
    assert max(seen) >= 3 and min(seen) == 0, seen

    first = history[updates[0]]
    real = [first[name] for name in ("one", "five", "fifteen")]
    off = [0.5 / ONE] * 3  # JSON values are rounded to 16-bit fractions
    for number in updates[1:]:
        load = history[number]
        for i, name in enumerate(("one", "five", "fifteen")):
            constant = abs(DECAY[i] - round(DECAY[i] * ONE) / ONE)
            off[i] = off[i] * DECAY[i] + 0.5 / ONE + \
                constant * abs(real[i] - load["runnable"])
            real[i] = real[i] * DECAY[i] + load["runnable"] * (1 - DECAY[i])
            assert abs(load[name] - real[i]) <= off[i] + 1 / ONE, (number, name)
    assert history[updates[-1]]["one"] > 0.1


# ---- BusyBox's tools


@pytest.fixture(scope="module")
def both():
    """Output of BusyBox's and Strobe's tools on a nearly idle machine."""
    return batch({
        "ps": "sleep 60 & sleep 60 & tester 3 >/dev/null; "
              "ps -o pid,ppid,comm,vsz,rss,stat,nice; echo ===; tasks --json",
        "stat": "cat /proc/[0-9]*/stat; echo ===; tasks --json; echo ===;"
                "sysinfo --json system.cpus.0",
        "free": "free -k; echo ===; stats --memory --json; echo ===; free -k",
        "uptime": "until read a b < /proc/loadavg; [ $a != 0.00 ]; do :; done;"
                  "uptime; stats --json; cat /proc/uptime",
        "top": "tester 1000000 & tester 1000000 & sleep 0.5;"
               "top --json -n 1 -d 3 >/tmp/ours & ours=$!;"
               "/bin/busybox top -b -n 2 -d 3 >/tmp/theirs; wait $ours;"
               "cat /tmp/theirs; echo ===; cat /tmp/ours; kill %1 %2",
        "time": "busybox time -f '%U %S' /test/ledger_exits 2>&1",
    }, "--icount", "3", smp=1)


def parts(both, name):
    assert both[name].status == 0, both[name]
    return both[name].output.split("===\n")


def kib(text):
    """A size of BusyBox in KiB; suffix m: MiB."""
    return float(text[:-1]) * 1024 if text[-1] == "m" else float(text)


def test_ps(both):
    theirs, ours = parts(both, "ps")
    tasks = {t["id"]: t for t in json.loads(ours)["tasks"]}
    compared = 0
    for line in theirs.splitlines()[1:]:
        pid, ppid, name, size, resident, state, nice = line.split()[:7]
        task = tasks.get(int(pid))
        if task is None or name in ("sh", "ps"):
            continue  # ended, or runs this script
        assert (task["parent"], task["name"]) == (int(ppid), name)
        assert task["nice"] == int(nice)
        assert abs(task["virtual"] / 1024 - kib(size)) <= 52, line
        assert abs(task["resident"] / 1024 - kib(resident)) <= 52, line
        assert {"waiting": "S", "sleeping": "D"}[task["state"]] == state[0]
        compared += 1
    assert compared >= 3, theirs


def test_times_in_proc(both):
    theirs, ours, cpu = parts(both, "stat")
    hz = json.loads(cpu)[0]["frequency"]
    tasks = {t["id"]: t for t in json.loads(ours)["tasks"]}
    compared = 0
    for line in theirs.splitlines():
        pid, rest = int(line.split()[0]), line.rsplit(")", 1)[1].split()
        if pid not in tasks or rest[0] != "S":
            continue
        user, kernel = int(rest[11]), int(rest[12])
        assert 0 <= tasks[pid]["user"] * 100 // hz - user <= 1
        assert 0 <= tasks[pid]["kernel"] * 100 // hz - kernel <= 2
        compared += 1
    assert compared >= 1, theirs


def test_free(both):
    first, ours, second = parts(both, "free")
    memory = json.loads(ours)
    before, after = (list(map(int, re.search(r"Mem: +(.*)", text).group(1)
                              .split())) for text in (first, second))
    assert before[0] == after[0] == memory["total"] // 1024
    slack = 512  # KiB, for these programs
    assert min(before[2], after[2]) - slack <= memory["free"] / 1024 <= \
        max(before[2], after[2]) + slack
    assert memory["used"] + memory["free"] == memory["total"]


def test_uptime(both):
    theirs, ours, proc = both["uptime"].output.splitlines()
    ours = json.loads(ours)
    clock = [f"{t // 3600 % 24:02}:{t // 60 % 60:02}:{t % 60:02}"
             for t in (ours["time"], ours["time"] - 1)]
    assert theirs.split()[0] in clock
    loads = list(map(float, theirs.rsplit("average:", 1)[1].split(",")))
    for shown, name in zip(loads, ("one", "five", "fifteen")):
        assert abs(shown - ours["load"][name]) <= 0.00501
    assert 0 <= float(proc.split()[0]) - ours["uptime"]["seconds"] < 3


def test_time(both):
    """BusyBox's time has the CPU time of the program and all its descendants."""
    used = re.search(r"(\d+) us user, (\d+) us system", both["time"].output)
    user, system = re.search(r"^([\d.]+) ([\d.]+)$", both["time"].output,
                             re.MULTILINE).groups()
    family = (int(used[1]) + int(used[2])) / 1e6
    # The program itself also ran five threads of 10 ms.
    assert family + 0.05 <= float(user) + float(system) + 0.02
    assert float(user) + float(system) < family + 0.2


def test_top(both):
    """Both tops show two tasks that are busy in the same three seconds."""
    theirs, ours = parts(both, "top")
    second = theirs.split("Mem:")[-1]
    theirs = {int(pid): float(share) for pid, share in re.findall(
        r"^ *(\d+) +\d+ root .{5} *\S+ +[\d.]+ +\d+ +([\d.]+) tester",
        second, re.MULTILINE)}
    data = json.loads(ours)
    rows = {row["id"]: row for row in data["rows"] if row["name"] == "tester"}
    assert len(rows) == 2 and rows.keys() <= theirs.keys(), (theirs, rows)
    for pid, row in rows.items():
        assert abs(row["cpu"] / len(data["cpus"]) - theirs[pid]) <= 6, \
            (theirs, rows)
    shares = re.search(r"CPU: +([\d.]+)% usr +([\d.]+)% sys", second)
    user = sum(cpu["user"] for cpu in data["cpus"]) / len(data["cpus"])
    assert abs(float(shares.group(1)) - user) <= 6, (second, data["cpus"])
