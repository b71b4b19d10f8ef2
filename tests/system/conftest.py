"""System tests need what `make` builds. One that fails tells the whole story of
the machines and the tools that it ran (result.py), and the line for summaries
begins with what went wrong with the machine, if something did."""
import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from machine import ROOT, Console, Results  # noqa: E402
from result import Result, of_process  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


def pytest_configure():
    for file in ("build/kernel.elf", "build/initrd", "build/strobe.iso"):
        if not os.path.exists(f"{ROOT}/{file}"):
            pytest.exit(f"there is no {file}: run make", returncode=2)


def results_of(value):
    """The Results in a variable of a test."""
    if isinstance(value, Result):
        return [value]
    if isinstance(value, Results):
        return [value.last] if value.last else []
    if isinstance(value, Console):
        return [value.result()]
    if isinstance(value, (subprocess.CompletedProcess,
                          subprocess.TimeoutExpired)):
        return [of_process(value)]
    if isinstance(value, (list, tuple)):
        return [r for r in value if isinstance(r, Result)]
    return []


def results_in(error):
    """Those in the variables of our functions on the way to an error, each
    once, the innermost first."""
    values = [error.value]
    for entry in reversed(error.traceback):
        if os.path.dirname(str(entry.path)) == HERE:
            values += entry.frame.f_locals.values()
    once = {id(value): value for value in values}.values()
    results = [result for value in once for result in results_of(value)]
    return list({id(result): result for result in results}.values())


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(call):
    report = (yield).get_result()
    if not report.failed or call.excinfo is None:
        return
    results = results_in(call.excinfo)
    for result in results:
        report.sections.append(("what was run", result.story()))
    crash = getattr(report.longrepr, "reprcrash", None)
    problems = [result.problem for result in results if result.problem]
    if crash and problems and problems[0] not in crash.message.split("\n")[0]:
        crash.message = f"{problems[0]}\n{crash.message}"
