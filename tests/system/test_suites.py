"""Foreign test suites on Strobe: BusyBox's, its shell's and bash's.

tests/suites/expected.txt lists the tests that do not pass, with reasons; a listed test
that passes and an unlisted one that fails are failures. `make test` runs those that take
seconds; `make suites` all (SUITES=all)."""
import collections
import os
import re

import pytest

from machine import LONG_PATIENCE, ROOT, vm

ALL = os.environ.get("SUITES") == "all"
LINE = re.compile(r"^(\w+): (PASS|FAIL|SKIPPED): (.*)$", re.MULTILINE)
FILES = f"{ROOT}/build/suites/root"
EXPECTED = f"{ROOT}/tests/suites/expected.txt"
# Versions in the older Debian, for which the list was made.
RECORDED = {"busybox": "1.35.0", "bash": "5.2.15"}
# bash's `read` test leaves up to 2,000 running processes.
MEMORY = "1024"
QUICK = {"busybox": "cat cp cut dd expr find gzip ln ls mkdir mv rm rmdir tail tar"
                    " tee touch wc xargs cmp md5sum grep od test pwd id du",
         "ash": "ash-signals ash-redir ash-psubst ash-read ash-heredoc ash-glob",
         "bash": "appendop arith-for case cond dbg-support dollars dirstack errors extglob2"
                 " getopts ifs input-test procsub"}


def read_expected():
    """{suite: Counter of (result, name)}, {suite: least number of passes}."""
    listed, passes = collections.defaultdict(collections.Counter), {}
    with open(EXPECTED) as file:
        lines = [line.rstrip("\n") for line in file if line[0] not in "#\n"]
    for line, reason in zip(lines, lines[1:] + [""]):
        if line.startswith(" "):
            continue
        count = re.fullmatch(r"(\w+): (\d+) PASS", line)
        if count:
            passes[count[1]] = int(count[2])
            continue
        suite, result, name = LINE.fullmatch(line).groups()
        assert reason.startswith("    "), f"no reason is given for: {line}"
        listed[suite][result, name] += 1
    return listed, passes


def version(suite):
    source = {"busybox": "build/busybox/src", "bash": "build/suites/bash"}
    changelog = f"{ROOT}/{source[suite]}/debian/changelog"
    if not os.path.exists(changelog):
        pytest.skip(f"the sources of {suite} could not be fetched "
                    "(tools/build/suites says why)")
    with open(changelog) as file:
        return re.search(r"\((?:\d+:)?([\d.]+)", file.readline())[1]


def compare(suite, names=""):
    package = "bash" if suite == "bash" else "busybox"
    if version(package) != RECORDED[package]:
        pytest.skip(f"{package} {version(package)}: what is expected is known of "
                    f"{RECORDED[package]} (tests/suites/linux runs it on Linux)")
    listed, passes = read_expected()
    # Not the last command: BusyBox's shell would exec it, with SIGQUIT ignored.
    result = vm(f"/suite/run {suite} {names}; true", "--add", FILES, "--mem",
                MEMORY, timeout=LONG_PATIENCE)
    assert result.status == 0, result
    found = LINE.findall(result.output)
    other = collections.Counter((kind, name) for _, kind, name in found
                                if kind != "PASS")
    new = other - listed[suite]
    assert not new, (sorted(new), result)
    if not names:
        assert not listed[suite] - other, sorted(listed[suite] - other)
        assert len(found) - other.total() >= passes[suite], result
    assert len(found) >= len(names.split()), result


@pytest.mark.parametrize("suite", QUICK)
def test_suite(suite):
    compare(suite, "" if ALL else QUICK[suite])
