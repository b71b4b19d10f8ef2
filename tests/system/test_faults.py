"""Faults of the machine: each is an error, a counted loss or a panic that says
what happened (docs/reliability.md)."""
import json

import pytest

from machine import vm
from monitor import Monitored

SPURIOUS = "spurious_vectors_sent,spurious_vectors_raised,spurious_exceptions"


def errors(text):
    """stats --errors --json: how often what went wrong."""
    return {row["name"]: row["count"] for row in json.loads(text)}


@pytest.mark.parametrize("options", (
    ("--cpu", "max,-apic"),                      # the 8259 alone
    ("--machine", "isapc", "--cpu", "pentium2"),  # through the LAPIC
    ()), ids=("8259", "8259-lapic", "ioapic"))
def test_no_driver_expects_an_interrupt(options):
    """Of any vector, sent or raised: it is counted."""
    run = vm(None, "--console", *options, "--kargs", f"test={SPURIOUS}")
    assert run.status == 0 and "# 3 passed, 0 failed" in run.output, run


def test_nothing_happens_unasked():
    """A machine that works well counts nothing, not even while it profiles."""
    run = vm("profile -o /dev/null tester >/dev/null 2>&1; stats --errors --json")
    assert run.status == 0 and set(errors(run.output).values()) == {0}, run


def test_an_nmi_from_outside():
    with Monitored("echo at''work >/dev/kmsg; while ! dmesg | grep -q"
                   " 'unexpected NMI'; do usleep 9999; done;"
                   " stats --errors --json") as machine:
        machine.wait_for("atwork")
        machine.ask("nmi")
        result = machine.result()
    assert result.status == 0, result
    assert errors(result.output)["unexpected NMIs"] == 1, result
