"""Runs the system tests: a pytest process for each file."""
import os
import shlex
import subprocess
import tempfile
import xml.etree.ElementTree

from runner.cases import Case

FOLDER = "tests/system"
TRIES_MAX = 3
NOTHING_TO_RUN = 5  # pytest's exit status
PYTEST = "pytest"  # name of the case that pytest itself ended normally


def files():
    return sorted(name for name in os.listdir(FOLDER)
                  if name.startswith("test_") and name.endswith(".py"))


def files_with(tier):
    """The files with tests of a tier. All, if pytest cannot tell: then the file that it
    cannot read fails."""
    done = subprocess.run(
        ["/usr/bin/python3", "-m", "pytest", "--collect-only", "-q", "-p",
         "no:cacheprovider", "-m", tier, FOLDER], stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, NOTHING_TO_RUN):
        return files()
    with_tests = {os.path.basename(line.split("::")[0])
                  for line in done.stdout.splitlines() if "::" in line}
    return [file for file in files() if file in with_tests]


def case_of(element, redraw):
    name = f"{element.get('classname').split('.')[-1]}.py::" \
           f"{element.get('name')}"
    said = {p.get("name"): p.get("value") for p in element.iter("property")}
    case = Case(name, seconds=float(element.get("time")),
                cpu=float(said.get("cpu", 0)), where=(f"{FOLDER}/{name}",))
    problems = element.findall("failure") + element.findall("error")
    if problems:
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
    """Runs pytest; returns its cases and output. A failure of pytest itself (by its
    exit status) is a case, too."""
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
    if done.returncode not in (0, NOTHING_TO_RUN) and \
            not any(case.failed for case in cases):
        cases.append(Case(PYTEST, "failed", got=(
            f"it ended with status {done.returncode}"),
            again=shlex.join(["/usr/bin/python3", "-m", "pytest", *arguments]),
            where=arguments))
    return cases, done.stdout


def run(files, tier="not realtime"):
    """Runs the tests of files, or `FILE::TEST`, in a tier. The matrix of machines is in
    none but its own."""
    if tier != "machines":
        tier = f"({tier}) and not machines"
    return pytest("-m", tier, *(f"{FOLDER}/{file}" for file in files))


def draw(environment):
    """Runs the tests that hold for every draw, with the environment's draw."""
    return pytest("-m", "drawn and not realtime", FOLDER, environment=environment)


def run_again(cases, output, note):
    """Repeats failed real-time tests up to TRIES_MAX tries in all. Calls `note(case)`
    for each failure except the last."""
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
        # Tests that an earlier pytest did not reach before it ended early.
        known = {case.name for case in cases}
        cases += [case for name, case in after.items() if name not in known]
    return cases, output


def tell_of_try(case, again, attempt):
    """Updates a case after its next try. For the case PYTEST, `again` is None if
    pytest ended normally."""
    case.tries = attempt
    if again is None and case.name != PYTEST:
        return
    case.seconds += again.seconds if again else 0
    if again is None or not again.failed:
        case.verdict = "passed"
    else:
        case.got = again.got
