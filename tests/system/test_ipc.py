"""Messages between tasks: ipctest on several numbers of CPUs, irqwatch, and the cost of
a round trip."""
import re

import pytest

from machine import vm


@pytest.mark.parametrize("smp", (1, 2, 4, 8))
def test_ipctest(smp):
    result = vm("ipctest", smp=smp)
    assert result.status == 0, result
    assert len(re.findall("^ok ", result.output, re.MULTILINE)) == 7, result


def test_irqwatch():
    result = vm("irqwatch -n 3 0xe0; irqwatch 0xdf; echo $?; irqwatch 20;"
                "echo $?; irqwatch; echo $?")
    line = r" *\d+\.\d{6}  irq 224  vector 0xe0  count [1-9]\d*  cpu [01]\n"
    assert re.fullmatch(f"({line}){{3}}1\n2\n2\n", result.output), result
    assert "nothing uses this interrupt" in result.errors, result


def test_naming_service_is_one():
    result = vm("ipctest >/dev/null; ns; echo $?; ps | grep -c '[/]bin/ns'")
    assert result.output == "1\n1\n", result
    assert "a naming service is already running" in result.errors, result


def test_round_trip_is_cheaper_than_a_pipe():
    result = vm("ipctest -b; bench pipe-ping-pong", "--icount", "1", smp=1)
    cost = dict(re.findall(r"^(\S+) (\d+)$", result.output, re.MULTILINE))
    assert int(cost["ipc-round-trip"]) < 0.95 * int(cost["pipe-ping-pong"])
