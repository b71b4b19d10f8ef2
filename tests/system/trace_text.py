"""Reads the texts of `strobe trace summary` and `report`, and runs `strobe trace`."""
import collections
import re
import subprocess

from machine import ROOT

STROBE = f"{ROOT}/build/strobe"
Event = collections.namedtuple("Event", "ns cpu thread name text")


def strobe(*arguments, **more):
    return subprocess.run([STROBE, "trace", *arguments], capture_output=True, text=True, **more)


class Summary:
    """The tables of `trace summary`. Times are microseconds."""

    def __init__(self, text):
        self.text = text
        self.events = {row: int(numbers[0]) for row, numbers in self.rows("Event").items()}
        missing = re.search(r"MISSING: (\d+) events.*: (\d+) where it says LOST", text)
        # Reported where they are missing, and in all.
        self.lost_there, self.lost = (int(missing[2]), int(missing[1])) if missing else (0, 0)
        self.ns = int(re.search(r" events in (\d+\.\d{6}) s", text)[1].replace(".", "")) * 1000

    def rows(self, title):
        """{first column: the other columns} of a table; none if it is not there."""
        if f"\n{title} " not in self.text:
            return {}
        table = self.text.split(f"\n{title} ", 1)[1].split("\n\n")[0].splitlines()[1:]
        return {line.split()[0]: [float(n) for n in re.findall(r" ([\d.]+)(?= |$)", line)]
                for line in table if not line.startswith("Calls that")}

    def spans(self, title):
        """{what: its count} of the table of system calls, interrupts or page faults."""
        return {row: int(numbers[0]) for row, numbers in self.rows(title).items()}

    def unfinished_calls(self):
        """Those that ended with their thread, and those that go on at the end."""
        return sum(map(int, re.search(r"^Calls that ended with their thread: (\d+); that go on: "
                                      r"(\d+)", self.text, re.MULTILINE).groups()))


def number_of(thread):
    """Of a thread's name as in the texts: NAME:NUMBER or [idle]."""
    return 0 if thread == "[idle]" else int(thread.split(":")[1])


def report(path):
    """The events of `trace report`, with the ns since the first one."""
    text = strobe("report", path, check=True).stdout
    lines = re.findall(r"^ +(\d+\.\d{9}) +\d+ +(\d+)  (\S+) +(\S+) *(.*)$", text, re.MULTILINE)
    assert len(lines) == len([line for line in text.splitlines()
                              if line[:1] == " " and "Thread" not in line])
    return [Event(int(at.replace(".", "")), int(cpu), number_of(thread), *rest)
            for at, cpu, thread, *rest in lines]
