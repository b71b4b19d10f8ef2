"""v86, npm's PC in WebAssembly: no read-back command of the PIT, an I/O APIC that
delivers no NMI, an RTC whose alarm does not come, a cascade that stays in service."""
import json
import re
import subprocess

import pytest

from machine import PATIENCE, VM, vm
from selftest_rows import rows
from tiers import realtime

# v86 runs in real time, and its timers wait for node's event loop: a host that stops it
# for seconds at a time may fail a run.
CHANCE = 1e-3
MACHINES = ("v86", "v86,acpi=off")
# The TSC counts v86's microseconds, times this.
TSC_HZ = 1e9
SCRIPT = """
dmesg >&2
sysinfo --json system.clock
echo ===
profile --list --json
echo ===
selftest
echo ===
read from idle </proc/uptime; sleep 2; read to idle </proc/uptime; echo $from $to
echo ===
profile --json /test/shares 500
echo === $?
i=0; while [ $i -lt 200 ]; do echo 0123456789012345678901234567890123456789; i=$((i+1)); done
exit 7"""


def by_name(records):
    return {record["name"]: record for record in records}


@realtime(CHANCE)
@pytest.mark.parametrize("machine", MACHINES)
def test_clocks_and_sources(machine):
    run = vm(SCRIPT, "--machine", machine, smp=1)
    assert run.status == 7, run
    clocks, sources, tested, sleep, profile, rest = run.output.split("===", 5)
    tsc = [r for r in json.loads(clocks) if r["name"] == "tsc"][0]
    assert abs(tsc["frequency"] / TSC_HZ - 1) < 0.05 and tsc["chosen"], tsc
    assert ("acpi_pm" if machine == "v86" else "pit") in tsc["why"], tsc
    # Hundredths: in binary, 2.28 - 0.28 is less than 2.
    begun, ended = (int(seconds.replace(".", "")) for seconds in sleep.split())
    assert 200 <= ended - begun < 6000, sleep
    # What does not interrupt is not offered, and what is offered does.
    sources = by_name(json.loads(sources))
    for name in ("nmi-pit", "nmi-rtc"):
        assert not sources[name]["usable"], sources
    if machine == "v86":
        assert "self-test" in sources["nmi-pit"]["why"], sources
        assert "the source nmi-pit is not used" in run.errors, run
    # selftest says so, and what is there and works.
    tested = rows(tested)
    assert {name: tested[name][0] for name in (
        "clock hpet", "clock pit", "timer rtc", "timer lapic", "source clock",
        "source nmi-pit", "source nmi-hpet", "accounts")} == {
            "clock hpet": "not there", "clock pit": "ok", "timer rtc": "ok",
            "timer lapic": "ok" if machine == "v86" else "not there",
            "source clock": "ok",
            "source nmi-pit": "WRONG" if machine == "v86" else "not there",
            "source nmi-hpet": "not there", "accounts": "ok"}, run
    assert "an 8253: no read-back command" in tested["clock pit"][1] or \
        machine == "v86", run
    report = json.loads(profile[profile.index("{"):]) # after the program's "ok"
    assert report["source"] == ("lapic" if machine == "v86" else "clock"), report
    assert report["taken"] > 0 and not report["starved"], report
    # The second serial port's interrupts arrive, after the RTC's were withdrawn.
    assert rest.startswith(" 0\n") and rest.count("0123456789\n") == 200, rest


@pytest.mark.parametrize("options, said", (
    (["--machine", "v86,hpet=on"], "v86,acpi=off"),
    (["--machine", "v86", "--smp", "2"], "--smp"),
    (["--machine", "v86", "--icount"], "--icount"),
    (["--machine", "v86", "--cpu", "max"], "--cpu")))
def test_what_v86_lacks_is_said(options, said):
    done = subprocess.run([VM, *options, "--", "true"], timeout=PATIENCE,
                          capture_output=True, text=True, env={})
    assert done.returncode == 2 and said in done.stderr, done
