"""The system tests: pytest, a process for each file."""
import os
import shlex
import subprocess
import tempfile
import xml.etree.ElementTree

from runner.cases import Case

FOLDER = "tests/system"
TRIES_MAX = 3
PYTEST = "pytest"  # the case that it ended as it should


def files():
    return sorted(name for name in os.listdir(FOLDER)
                  if name.startswith("test_") and name.endswith(".py"))


def case_of(element, redraw):
    name = f"{element.get('classname').split('.')[-1]}.py::" \
           f"{element.get('name')}"
    case = Case(name, seconds=float(element.get("time")),
                where=(f"{FOLDER}/{name}",))
    problems = element.findall("failure") + element.findall("error")
    if problems:
        said = {p.get("name"): p.get("value")
                for p in element.iter("property")}
        case.verdict = "failed"
        case.promise = said.get("promise", "")
        case.expected = said.get("expected", "")
        case.got = said.get("got") or problems[0].get("message")
        again = ["/usr/bin/python3", "-m", "pytest", f"{FOLDER}/{name}"]
        if redraw:
            again.insert(0, f"REDRAW={redraw}")
        case.again = shlex.join(again)
    elif element.find("skipped") is not None:
        case.verdict = "skipped"
    return case


def pytest(*arguments, environment=None):
    """The cases and the output of pytest, which says in its status when
    something went wrong with itself."""
    environment = {**os.environ, **(environment or {})}
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        done = subprocess.run(
            ["/usr/bin/python3", "-m", "pytest", "-q", "--tb=short",
             "-p", "no:cacheprovider", f"--junitxml={report.name}", *arguments],
            env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
        try:
            tree = xml.etree.ElementTree.parse(report.name)
        except xml.etree.ElementTree.ParseError:
            tree = None
    cases = [case_of(element, environment.get("REDRAW")) for element in
             (tree.iter("testcase") if tree else ())]
    nothing_to_run = done.returncode == 5
    if done.returncode and not nothing_to_run and \
            not any(case.failed for case in cases):
        cases.append(Case(PYTEST, "failed", got=(
            f"it ended with status {done.returncode}"),
            again=shlex.join(["/usr/bin/python3", "-m", "pytest", *arguments]),
            where=arguments))
    return cases, done.stdout


def run(files, tier="not realtime"):
    """The tests of files, or `FILE::TEST`, that are in a tier."""
    return pytest("-m", tier, *(f"{FOLDER}/{file}" for file in files))


def draw(environment):
    """Those that hold for every draw, with that of the environment."""
    return pytest("-m", "drawn and not realtime", FOLDER, environment=environment)


def run_again(cases, output, note):
    """What has failed in real time gets two tries more. `note(case)` is called
    with each failure that is not the last."""
    for attempt in range(2, TRIES_MAX + 1):
        failed = [case for case in cases if case.failed]
        if not failed:
            break
        for case in failed:
            note(case)
        again, said = pytest(*(part for case in failed for part in case.where))
        output += said
        after = {case.name: case for case in again}
        for case in failed:
            tell_of_try(case, after.pop(case.name, None), attempt)
        # Those that a pytest which ended early had not come to.
        known = {case.name for case in cases}
        cases += [case for name, case in after.items() if name not in known]
    return cases, output


def tell_of_try(case, again, attempt):
    """What came of a case's next try; nothing of it, of pytest's own status,
    means that this was as it should be."""
    case.tries = attempt
    if again is None and case.name != PYTEST:
        return
    case.seconds += again.seconds if again else 0
    if again is None or not again.failed:
        case.verdict = "passed"
    else:
        case.got = again.got
