"""docs/reading.md: the files that it names exist, with the lengths that it states.
docs/architecture.md: the files that it names exist, and commands print what it shows."""
import os
import re
import shlex

from machine import ROOT, vm

ROW = re.compile(r"^\| `([^`]+)`(?: \(`(\w+)`\))? \| (\d+) \| (.*) \|$", re.M)
ALL = 2300 # lines, to be read in an hour and a quarter
WORD = re.compile(r"`([a-z_]\w+)`")


def rows():
    with open(f"{ROOT}/docs/reading.md") as file:
        return ROW.findall(file.read())


def text_of(path):
    with open(f"{ROOT}/{path}") as file:
        return file.read()


def test_what_is_to_be_read_is_there():
    found = rows()
    assert len(found) > 20
    for path, function, lines, remark in found:
        text = text_of(path)
        for word in [function, *WORD.findall(remark)]:
            assert re.search(rf"\b{word}\b", text) or \
                word in ("struct io",), (path, word)
        there = text.count("\n")
        if function or path.endswith(".def"):
            assert there > int(lines), path
        else:
            assert abs(there - int(lines)) < 0.1 * there + 5, (path, there)


def test_it_is_an_hour_and_a_quarter():
    assert 0.9 * ALL < sum(int(lines) for _, _, lines, _ in rows()) < 1.1 * ALL


# --- docs/architecture.md -------------------------------------------------------

ARCHITECTURE = text_of("docs/architecture.md")
FILE = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.(?:c|h|S|def|txt|md)|(?:[\w.-]+/)+)`")
# A command at a prompt, and the lines below it.
PASTED = re.compile(r"^    \$ tools/vm (.*) -- (.*)\n((?:    (?!\$).*\n)+)", re.M)


def test_the_architecture_names_files_that_exist():
    there = [f"{folder[len(ROOT):]}/{name}" for top in (
        "arch", "docs", "include", "kernel", "lib", "tests", "tools", "user")
             for folder, _, names in os.walk(f"{ROOT}/{top}") for name in names]
    named = FILE.findall(ARCHITECTURE)
    assert len(named) > 80
    for name in named:
        assert any(path.endswith(f"/{name}") or name.endswith("/") and f"/{name}" in path
                   for path in there), name


def shape(text):
    """The words of the text's lines, with numbers of two and more digits, which depend
    on the build, as one."""
    return [re.sub(r"\d\d+", "N", line).split() for line in text.splitlines()]


def test_the_architecture_shows_what_commands_print():
    pasted = PASTED.findall(ARCHITECTURE)
    assert pasted
    for options, command, shown in pasted:
        command, = shlex.split(command)
        result = vm(command, *shlex.split(options.replace("--smp 1", "")), smp=1)
        assert result.status == 0 and shape(result.output) == shape(shown), result
