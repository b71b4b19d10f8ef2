"""/sensors in the shell: `cat`, system.sensors, the kernel's sensors while they are open,
and from the start by `sensors=`."""
import json
import re

from machine import vm

OPEN = "tail -f /sensors/{} >/dev/null & sleep 0.1; "


def numbers(output):
    """Counts by bin."""
    return {int(x): int(n) for x, n in re.findall(r"^x (\d+): (\d+)$", output, re.M)}


def test_off_until_opened():
    result = vm("cat /sensors/sched/latency; sysinfo system.sensors", smp=2)
    assert result.status == 0, result
    assert "time from ready to running" in result.output, result
    assert re.search("/sensors/sched/latency +histogram +off +0 +0 +0$",
                     result.output, re.M), result


def test_opening_is_asking():
    sensors = ("sched/latency", "mm/fault", "time/lateness", "irq/duration",
               "syscall/duration")
    result = vm("".join(OPEN.format(s) for s in sensors) +
                "for i in 1 2 3 4 5; do sleep 0.01; ls / >/dev/null; done;" +
                "sysinfo system.sensors;" +
                "".join(f"echo @{s}; cat /sensors/{s};" for s in sensors))
    assert result.status == 0, result
    table, *texts = result.output.split("@")
    for sensor, text in zip(sensors, texts):
        assert re.search(rf"/sensors/{sensor} +histogram +open +0 +1 +\d+$", table,
                         re.M), result
        assert text.startswith(sensor), result
    latency, fault, lateness, irq, syscall = texts
    for text in (latency, fault, lateness):
        assert sum(numbers(text).values()) >= 5, result
    assert re.search(r"^y \d+ x \d+: \d+$", irq, re.M), result
    # nanosleep_time64: 10 ms five times, in the bin of 2^23 or 2^24 ns
    slept = re.findall(r"^y (?:162|407) x (?:8388608|16777216): (\d+)$", syscall, re.M)
    assert sum(map(int, slept)) >= 5, result


def test_from_the_start():
    result = vm("cat /sensors/sched/latency; sysinfo system.sensors; cat /proc/cmdline",
                "--kargs", "sensors=sched/latency")
    assert result.status == 0, result
    assert sum(numbers(result.output).values()) >= 2, result
    assert re.search("/sensors/sched/latency +histogram +open", result.output), result


def test_from_start_up_on():
    result = vm("sensors --json /sensors/irq/duration", "--smp", "2", "--kargs", "sensors=irq/duration")
    created = json.loads(result.output)["created_ns"]
    other_cpus = re.search(r"\[ *([0-9.]+)\] smp: 2 CPUs", result.console)
    assert 0 < created < float(other_cpus[1]) * 1e9, result


def test_an_unknown_sensor():
    result = vm("true", "--kargs", "sensors=sched/nothing")
    assert "sensors=sched/nothing: no such sensor; see /sensors" in result.console, result


def test_gauges():
    # A cache in which starting programs changes nothing.
    result = vm("cat /sensors/mm/free; cat /sensors/heap/tmpfs_node; sysinfo system.slabs | "
                "grep 'struct tmpfs_node '; rm /sensors/mm/free; echo x >/sensors/mm/free")
    assert re.search(r"free frames of 4 KiB\n\d+\n", result.output), result
    heap = re.search(r"the slabs of the cache take\n(\d+)\n", result.output)
    assert int(heap[1]) == int(result.output.split()[-1]), result
    assert result.errors.count("can't remove") == 1, result
    assert "Permission denied" in result.errors, result


def test_switches_are_not_for_every_user():
    """The context switches of all users' threads; sums of them are for everybody."""
    result = vm("su user -c 'cat /sensors/sched/latency >/dev/null && "
                "cat /sensors/sched/switch.0'", smp=1)
    assert result.status == 1 and not result.output, result
    assert "switch.0': Permission denied" in result.errors, result
