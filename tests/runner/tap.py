"""Runs tests that report in TAP: host programs (cmocka) and in-kernel tests."""
import os
import re
import shlex
import subprocess
import time

import i386
from machine import LONG_PATIENCE, SHIFT
from result import VM_PROBLEM
from runner.cases import Case

SEED = re.compile(r"^# seed=(\d+)", re.MULTILINE | re.IGNORECASE)


def failures(output):
    """Yields (test, reason) of each `not ok`. The kernel prints the reason before that
    line, cmocka after it."""
    for before, test, behind in re.findall(
            r"((?:^# (?!running ).*\n)*)^not ok \d+ - (.*)\n"
            r"((?:^# (?!running |not ok ).*\n)*)", output, re.MULTILINE):
        yield test, ": ".join(text.lstrip("# ") for text in
                              (before or behind).splitlines()[:2])


def unaccounted(status, output, good):
    """A program that dies, or reports fewer tests than it planned or none, is one
    failure: [(test, reason)]."""
    planned = sum(map(int, re.findall(r"^1\.\.(\d+)", output, re.MULTILINE)))
    if status == 0 and planned == good > 0:
        return []
    problem = VM_PROBLEM.findall(output)
    running = re.findall("^# running (.*)", output, re.MULTILINE)
    return [((running or ["the program"])[-1], (problem or [
        f"it ended with status {status} after {good} of {planned} tests"])[-1])]


def run(suite, command, again, environment={}):
    """Runs a program; returns its cases and output. `again(test, seed)` returns the
    command that repeats a test; `seed` may be ""."""
    start = time.monotonic()
    program = subprocess.Popen(
        ["timeout", "--foreground", "-k", "10", str(LONG_PATIENCE), *command],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
        env={**os.environ, **environment, "CMOCKA_MESSAGE_OUTPUT": "TAP"})
    output = program.stdout.read()
    status, used = os.wait4(program.pid, 0)[1:]
    program.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - start
    good = re.findall(r"^ok \d+ - (.*?)(?: # SKIP (.*))?$", output, re.MULTILINE)
    bad = list(failures(output)) or \
        unaccounted(program.returncode, output, len(good))
    seed = SEED.search(output)
    seed = seed[1] if seed else ""
    cases = [Case(f"{suite}::{test}", "skipped" if skipped else "passed",
                  got=skipped) for test, skipped in good]
    for test, reason in bad:
        expected = re.search("expected (.*)", reason)
        cases.append(Case(f"{suite}::{test}", "failed", expected=(
            expected[1] if expected else ""), got=reason,
            promise=test.replace("_", " "), again=again(test, seed)))
    for case in cases:  # an equal share of the program's time
        case.seconds = seconds / len(cases)
        case.cpu = (used.ru_utime + used.ru_stime) / len(cases)
    return cases, output


def run_host(program, environment={}):
    command = i386.command(program) if "/replay/" in program else [program]
    again = shlex.join(command)
    return run(f"host {os.path.basename(program)}", command,
               lambda test, seed: f"{seed and f'SEED={seed} '}{again}",
               environment)


def run_kernel(names):
    """Runs in-kernel tests on one CPU, in virtual time. `names`: as in test=."""
    options = ["--icount", str(SHIFT), "--smp", "1", "--console"]
    if os.environ.get("REDRAW"):
        options += ["--kargs", f"start_delay={os.environ['REDRAW']}"]

    def again(test, seed):
        return shlex.join(["tools/vm", *options, "--kargs",
                           f"test={test} seed={seed}"])
    return run("kernel", [
        "tools/vm", *options, "--timeout", str(LONG_PATIENCE), "--kargs",
        f"test={names}"], again)
