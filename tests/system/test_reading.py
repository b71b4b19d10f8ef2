"""docs/reading.md: the files that it names exist, with the lengths that it states."""
import re

from machine import ROOT

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
