"""System tests need the files that `make` builds. A failure's report has the output of
all machines and tools that it ran (result.py); its summary line begins with the
machine's problem, if any."""
import ast
import os
import re
import resource
import subprocess
import sys
import textwrap

import pytest

sys.path[:0] = [os.path.dirname(__file__),
                os.path.join(os.path.dirname(__file__), "../../tools")]

from machine import ROOT, Console, Results, use_clock  # noqa: E402
from result import Result, of_process  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


def pytest_configure(config):
    config.addinivalue_line("markers", "realtime(chance): needs real time or "
                            "CPUs that run side by side; `chance` is how often "
                            "it fails by luck")
    config.addinivalue_line("markers", "drawn: holds for every draw of what is "
                            "left to chance (REDRAW=N)")
    config.addinivalue_line("markers", "machines: a row of the matrix of machines "
                            "(make test-machines)")
    for file in ("build/kernel.elf", "build/kernel-test.elf", "build/initrd",
                 "build/strobe.iso"):
        if not os.path.exists(f"{ROOT}/{file}"):
            pytest.exit(f"there is no {file}: run make", returncode=2)


def pytest_collection_modifyitems(config, items):
    """T=PATTERN: runs only the tests whose name matches."""
    pattern = re.compile(os.environ.get("T", ""), re.IGNORECASE)
    wanted = [item for item in items if pattern.search(item.nodeid)]
    left_out = [item for item in items if not pattern.search(item.nodeid)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = wanted


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    item.cpu_before = cpu_seconds()
    use_clock(virtual=not item.get_closest_marker("realtime"))


def cpu_seconds():
    """CPU time of this process and of all that it has waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in
               (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item):
    item.user_properties.append(
        ("cpu", f"{cpu_seconds() - item.cpu_before:.2f}"))


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
    """The Results in the local variables of a traceback's functions in this folder,
    each once, innermost first."""
    values = [error.value]
    for entry in reversed(error.traceback):
        if os.path.dirname(str(entry.path)) == HERE:
            values += entry.frame.f_locals.values()
    once = {id(value): value for value in values}.values()
    results = [result for value in once for result in results_of(value)]
    return list({id(result): result for result in results}.values())


def expectation(excinfo):
    """The source text of the failed assertion's condition."""
    for entry in reversed(excinfo.traceback):
        if os.path.dirname(str(entry.path)) == HERE:
            try:
                tree = ast.parse(textwrap.dedent(str(entry.statement)))
            except SyntaxError:
                return str(entry.statement)
            asserts = [node for node in ast.walk(tree)
                       if isinstance(node, ast.Assert)]
            return ast.unparse(asserts[0].test if asserts else tree)
    return ""


def what_came(message):
    """pytest's values of the assertion, and the test's own message."""
    lines = message.removeprefix("AssertionError: ").splitlines() or [""]
    compared = [line.removeprefix("assert ") for line in lines
                if line.startswith("assert ")]
    said = [] if lines[0].startswith("assert ") else lines[:1]
    return "; ".join(compared[:1] + said)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
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
    promise = (getattr(item.obj, "__doc__", None) or item.originalname or
               item.name).strip().splitlines()[0]
    # In the report for tools/build/test.
    item.user_properties += [
        ("promise", promise.replace("_", " ")),
        ("expected", expectation(call.excinfo)),
        ("got", what_came(crash.message if crash else str(call.excinfo)))]
