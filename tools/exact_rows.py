"""Instructions of a call by path and line, as strobe calls prints them, and the
difference of two: for tools/guard and tools/bisect."""
import collections
import difflib
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
ROWS_SHOWN = 30

# The rows of a call: {path: Row}. `lines`: [(FILE:LINE, instructions)], or of accepted
# rows [(None, instructions)]. `folded`: what it calls is in it.
Row = collections.namedtuple("Row", "self lines folded")


def read_calls(text):
    """[(instructions, {path: Row})] of the output of strobe calls, one of each path."""
    found = []
    for line in text.splitlines():
        head = re.match(r"\S+: (\d+) instructions in each of \d+ calls", line)
        row = re.fullmatch(r" *(\d+)  (\S.*?)  +(\S.*?) *", line)
        if head:
            found.append((int(head[1]), {}))
        elif row:
            lines = []
            for file in re.finditer(r"(\S+?)((?::\d+=\d+)+)", row[3]):
                name = re.sub(r"^\./", "", file[1])
                lines += [(f"{name}:{at}", int(n)) for at, n in
                          re.findall(r":(\d+)=(\d+)", file[2])]
            found[-1][1][tuple(row[2].split(";"))] = Row(int(row[1]), lines, False)
    return found


def source(place, root):
    """The text of FILE:LINE, a file of the sources in `root`."""
    file, _, number = place.rpartition(":")
    path = os.path.join(root, file)
    try:
        with open(path, errors="replace") as lines:
            return lines.read().splitlines()[int(number) - 1].strip()
    except (OSError, IndexError, ValueError):
        return ""


def changed_lines(before, now):
    """The lines of a function whose counts differ: [(change, FILE:LINE)]. Accepted counts
    have no line numbers: both are aligned by their values, equal beginnings first, since
    every function begins with its entry."""
    same = 0
    while same < min(len(before), len(now)) and before[same][1] == now[same][1]:
        same += 1
    before, now = before[same:], now[same:]
    old, new = [n for _, n in before], [n for _, n in now]
    found = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
        if tag == "equal":
            continue
        was = old[a:b] + [0] * (d - c - (b - a))
        for i in range(c, d):
            if now[i][1] != was[i - c]:
                found.append((now[i][1] - was[i - c], now[i][0]))
        gone = sum(was[d - c:])
        if gone:
            found.append((-gone, None))
    return found


def moved(changes):
    """{new path: path that is gone} of rows whose function is the same."""
    gone, pairs = {}, {}
    for path, before, now in changes:
        if now is None:
            gone.setdefault((path[-1], before.self), []).append(path)
    for path, before, now in changes:
        if before is None and gone.get((path[-1], now.self)):
            pairs[path] = gone[path[-1], now.self].pop(0)
    return pairs


def explain(rows, accepted, limit=ROWS_SHOWN, root=ROOT):
    """The exact difference by path, as lines of text."""
    changes = [(path, accepted.get(path), rows.get(path))
               for path in sorted(rows.keys() | accepted.keys())]
    changes = [(p, b, n) for p, b, n in changes if (b.self if b else 0) !=
               (n.self if n else 0)]
    pairs = moved(changes)
    changes.sort(key=lambda c: -abs((c[2].self if c[2] else 0) - (c[1].self if c[1] else 0)))
    text = []
    for path, before, now in changes[:limit]:
        was, is_ = before.self if before else 0, now.self if now else 0
        if path in pairs:
            text.append(f"{0:+8}  {';'.join(path)}: {is_}, moved from "
                        f"{';'.join(pairs[path])}")
        elif path not in pairs.values():
            state = "new" if before is None else "gone" if now is None else \
                f"{was} before, {is_} now"
            text.append(f"{is_ - was:+8}  {';'.join(path)}: {state}")
            for change, place in changed_lines(before.lines, now.lines) \
                    if before and now else []:
                text.append(f"{change:+18}  " + (f"{place}  {source(place, root)}".rstrip()
                                                 if place else "in lines that are gone"))
    rest = [(n.self if n else 0) - (b.self if b else 0) for _, b, n in changes[limit:]]
    if rest:
        text.append(f"{sum(rest):+8}  in {len(rest)} more")
    return text
