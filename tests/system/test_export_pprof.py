"""strobe export --pprof: the file agrees with the guest's report; protoc and speedscope
read it."""
import collections
import gzip
import subprocess

import pytest

from exports import read_measured, strobe
from machine import PATIENCE, vm
from protobuf import fields, numbers
from shares import LOOPS
from speedscope import speedscope

# Fields of profile.proto (github.com/google/pprof), by message.
SAMPLE_TYPE, SAMPLE, MAPPING, LOCATION, FUNCTION, STRING = range(1, 7)
DURATION, PERIOD, COMMENT = 10, 12, 13


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pprof")
    result = vm("profile -g --json -o /out/one.data tester 20 >/out/one.json;"
                "sprofile -g --json -o /out/all.data sh -c 'tester 4; sleep 0.1'"
                " >/out/all.json", "--get", str(folder), "--icount", "1", smp=2)
    assert result.status == 0, result
    return {name: read_measured(folder, name)[0] for name in ("one", "all")}


class Pprof:
    """A pprof file as a reader sees it: chains of (file, function), innermost first."""

    def __init__(self, path):
        with gzip.open(path) as file:
            self.bytes = file.read()
        self.profile = profile = fields(self.bytes)
        self.texts = [text.decode() for text in profile[STRING]]
        assert self.texts[0] == "" and len(set(self.texts)) == len(self.texts)
        files = {m[1][0]: self.text(m, 5) for m in map(fields, profile[MAPPING])}
        names = {f[1][0]: self.text(f, 2) for f in map(fields, profile[FUNCTION])}
        self.place = {}
        for location in map(fields, profile[LOCATION]):
            line = fields(location[4][-1])  # earlier ones are inlined
            self.place[location[1][0]] = (
                files.get(location[2][0] if location[2] else 0),
                names[line[1][0]], line[2][0] if line[2] else 0)
        self.samples = [self.sample(s) for s in map(fields, profile[SAMPLE])]

    def text(self, message, field):
        return self.texts[message[field][0]] if message[field] else ""

    def sample(self, message):
        labels = {}
        for label in map(fields, message[3]):
            labels[self.text(label, 1)] = \
                self.text(label, 2) or (label[3][0] if label[3] else 0)
        return ([self.place[n] for n in numbers(message[1][0])],
                numbers(message[2][0]), labels)


@pytest.mark.parametrize("run", ("one", "all"))
def test_what_it_says(measured, run, tmp_path):
    measured = measured[run]
    made = Pprof(measured.export("pprof", tmp_path / "out.pb.gz"))
    types = [(made.text(t, 1), made.text(t, 2))
             for t in map(fields, made.profile[SAMPLE_TYPE])]
    assert types == [("samples", "count"), ("cpu", "nanoseconds")]
    assert made.profile[PERIOD] == [1000000]
    assert made.profile[DURATION] == [measured.json["elapsed_ns"]]
    own, total, periods = (collections.Counter() for _ in range(3))
    for chain, (count, period), labels in made.samples:
        assert chain and labels["cpu"] < 2
        if chain[-1][1] == "[idle]":
            assert "task" not in labels
        else:
            assert labels["program"] and labels["thread"]
        own[chain[0][:2]] += count
        periods[chain[0][:2]] += period
        for function in {place[:2] for place in chain}:
            total[function] += count
    assert sum(own.values()) == measured.json["taken"]
    names = [(row["image"], row["symbol"]) for row in measured.json["rows"]]
    for name, row in zip(names, measured.json["rows"]):
        # (Callers of the idle loop are not in a file.)
        if names.count(name) == 1 and (row["samples"] or name[0][0] == "/"):
            assert (own[name], total[name]) == (row["samples"],
                                                row["total"]), row
            assert periods[name] == row.get("period", periods[name]), row
    lines = [line for chain, _, _ in made.samples for _, name, line in chain
             if name == "main"]
    assert lines and min(lines) > 0
    comments = "\n".join(made.texts[n]
                         for n in numbers(made.profile[COMMENT][0]))
    assert f"{measured.json['taken']} taken, 0 lost" in comments, comments


def test_protoc_reads_it(measured, tmp_path):
    made = Pprof(measured["one"].export("pprof", tmp_path / "out.pb.gz"))
    text = subprocess.run(
        ["protoc", "--decode_raw"], input=made.bytes, check=True,
        capture_output=True, timeout=PATIENCE).stdout.decode()
    assert text.count("\n2 {") == len(made.samples)
    assert '6: "burn_a"' in text


def test_speedscope_reads_it(measured, tmp_path):
    one = measured["one"]
    path = one.export("pprof", tmp_path / "out.pb.gz")
    shares, = speedscope(path, LOOPS, ["out.pb.gz"]).values()
    periods = {r["symbol"]: r["period"] for r in one.json["rows"]
               if r["image"] == "/bin/tester"}
    whole = sum(r["period"] for r in one.json["rows"])
    for function, share in shares.items():
        assert abs(share - 100 * periods[function] / whole) < 0.6


def test_a_task_is_chosen(measured, tmp_path):
    """A task can be chosen; without samples the file is still valid."""
    path = tmp_path / "none.pb.gz"
    strobe("export", "--pprof", "-t", 999, "-o", path, measured["one"].file)
    assert Pprof(path).samples == []
