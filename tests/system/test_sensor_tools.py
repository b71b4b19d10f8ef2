"""The tools `sensors` and `strobe sensors`, and the header for programs, in C and C++."""
import base64
import json
import os
import re
import shutil
import subprocess

from machine import ROOT, batch

DECODER = ("/test/sensor_decoder 300 60 >out & until grep -q fork out; do usleep 10000;"
           " done; ")
SHOW = DECODER + "cd /sensors/verner; sensors "

RECORD = "sensors record -o rec"

SCRIPTS = {
    "decoder": "/test/sensor_decoder 300",
    "list": DECODER + "sensors; kill $!",
    "list json": "sensors --json",
    "show": SHOW + "misses decode.cost frames; kill $!",
    "json": SHOW + "--json misses steps frames; kill $!",
    "closed": DECODER + "exec 3</sensors/verner/misses; kill $!; wait $!;"
              " sensors /sensors/verner/misses",
    "watch": "sensors watch -n 3 -s 1 /sensors/mm/free",
    "over time": "sensors watch -n 4 -s 1 /sensors/sched/latency",
    "rates": "/test/sensor_decoder 100000 0 >out & sleep 0.1; sensors; kill $!",
    "record": "while usleep 20000; do :; done & " + RECORD + " -i 0.05 -d 1"
              " /sensors/mm/free /sensors/sched/latency /sensors/sched/switch.0; echo $?;"
              " base64 rec; kill $!",
    "record command": RECORD + " -i 0.02 /sensors/verner/frames /sensors/verner/steps"
                      " /sensors/verner/misses -- /test/sensor_decoder 300; echo $?;"
                      " base64 rec",
    "record full": "trap '' XFSZ; (ulimit -f 8; sensors record -o rec -i 0.001 -d 2"
                   " /sensors/mm/free); echo $?; base64 rec",
    "record wrong": "sensors record /sensors/mm/free; echo $?; sensors record -o x; echo"
                    " $?; sensors record -o /none/x /sensors/mm/free; echo $?; sensors"
                    " record -o x -i 0 /sensors/mm/free; echo $?; sensors record -o x"
                    " /sensors/none; echo $?; sensors record -o x /sensors/none -- true;"
                    " echo $?; sensors record -o x /sensors/mm/free -- none; echo $?;"
                    " sensors record -i 0.01 -o x /sensors/mm/free -- sh -c 'exit 7';"
                    " echo $?",
    "kernel": "sensors /sensors/sched/latency",
    "wrong": "sensors /etc/passwd; echo $?; sensors /nothing; echo $?; sensors watch;"
             " echo $?; sensors watch -n 0 /sensors/mm/free; echo $?",
}


def run(name):
    if not hasattr(run, "results"):
        run.results = batch(SCRIPTS)
    return run.results[name]


def test_decoder():
    result = run("decoder")
    assert result.status == 0, result
    assert "ok fork: parent and child are both counted" in result.output, result


def test_list():
    result = run("list")
    assert result.status == 0, result
    assert re.search(r"^/sensors/verner/frames +list +open +\d+ +0 +\d+ +\d+$",
                     result.output, re.M), result
    assert re.search(r"^/sensors/mm/free +scalar +", result.output, re.M), result
    result = run("list json")
    paths = [s["path"] for s in json.loads(result.output)]
    assert "/sensors/sched/latency" in paths, result


def test_show():
    result = run("show")
    assert result.status == 0, result
    assert "misses: scalar, open, of task" in result.output, result
    count = re.search(r"^count (\d+), sum (\d+), least \d+, most \d+, under 0, over 0$",
                      result.output, re.M)
    bars = re.findall(r"^ +(\d+) +(\d+) #*$", result.output, re.M)
    assert sum(int(n) for _, n in bars) == int(count[1]) == 300, result
    events = re.findall(r"^ +(\d+) \d+ CPU \d+ thread \d+ frame number=(\d+) cost=(\d+) "
                        r"buffer=\d+ quality=\d+$", result.output, re.M)
    assert [int(n) for n, _, _ in events] == list(range(44, 300)), result
    assert all(number == field for number, field, _ in events), result
    assert "next number 300, lost 0, spoilt 0" in result.output, result


def unique(pairs):
    """An object without a key that is there twice."""
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)


def test_json():
    result = run("json")
    misses, steps, frames = (json.loads(line, object_pairs_hook=unique)
                             for line in result.output.splitlines())
    assert misses["type"] == "scalar" and misses["value"] > 7, result
    cells = steps["cells"]
    assert sum(cell[3] for cell in cells) == steps["count"] == 300, result
    assert sum(cell[4] for cell in cells) == steps["sum"], result
    assert [e["number"] for e in frames["events"]] == list(range(44, 300)), result
    assert frames["events"][0]["event"] == "frame", result
    # The example's events have a field "number", as each event has a number.
    assert [e["fields"]["number"] for e in frames["events"]] == list(range(44, 300)), result


def test_closed():
    """A sensor whose owner has ended stays for its readers."""
    result = run("closed")
    assert "/sensors/verner/misses: scalar, closed, of task" in result.output, result


def test_watch_and_the_kernels():
    result = run("watch")
    assert result.status == 0, result
    assert result.output.count("/sensors/mm/free: scalar, open, of task 0") == 3, result
    result = run("kernel")
    assert result.status == 0 and "histogram" in result.output, result


def test_wrong():
    result = run("wrong")
    assert result.output.split() == ["1", "1", "2", "2"], result
    assert "/etc/passwd: it is " in result.errors, result
    assert "/nothing: No such file" in result.errors, result


def converted(result, folder, *formats):
    """The exit status that the script printed, and the recording as strobe prints it."""
    assert result.status == 0, result
    status, data = re.search(r"^(\d+)\n(.*)", result.output, re.M | re.S).groups()
    path = folder / "recording"
    path.write_bytes(base64.b64decode(data))
    return [status] + [subprocess.run(
        [f"{ROOT}/tools/strobe", "sensors", *options, path], capture_output=True,
        text=True, check=True).stdout for options in formats]


def test_over_time():
    """A heat map of a histogram over time has a row for each interval."""
    rows = re.findall(r"^ +(\d+) \|.{52}\| at most (\d+)$", run("over time").output, re.M)
    assert [int(row) for row, _ in rows] == [1, 1, 2, 1, 2, 3], run("over time")
    assert int(rows[0][1]) > 0, rows


def test_rates():
    """Only what is open has a rate."""
    rates = dict(re.findall(r"^(/sensors/\S+) .* (\S+)$", run("rates").output, re.M))
    assert rates["/sensors/mm/free"] == "-", rates
    assert int(rates["/sensors/verner/decode.cost"]) > 1000, rates
    assert int(rates["/sensors/verner/frames"]) > 1000, rates


def test_record(tmp_path):
    status, text, lines, csv = converted(run("record"), tmp_path, (), ("--json",), ("--csv",))
    assert status == "0", text
    head, *rest = map(json.loads, lines.splitlines())
    assert head["ended"] and not head["cut_off"] and not head["unknown"], head
    assert head["samples"] == 21 and 0.99e9 < head["ns"] < 1.01e9, head
    assert [s["type"] for s in rest[:3]] == ["scalar", "histogram", "ring"], rest[:3]
    free = [x["value"] for x in rest[3:] if x["path"] == "/sensors/mm/free"]
    assert len(free) == head["samples"] and all(free), free
    times = [x["seconds"] for x in rest[3:]]
    assert times == sorted(times), times
    switches = [x["event"] for x in rest[3:] if "event" in x]
    assert [s["number"] for s in switches] == list(range(len(switches))), switches
    assert len(switches) > 5 and all(
        a["fields"]["next"] == b["fields"]["prev"]
        for a, b in zip(switches, switches[1:])), switches
    # The last state of the histogram has all its samples' changes.
    cells = {}
    for x in rest[3:]:
        cells |= {tuple(c[:3]): c[3] for c in x.get("cells", ())}
    assert f"count {sum(cells.values())}, " in text, text
    rows = csv.splitlines()
    assert rows[0] == "seconds,sensor,event,name,value"
    assert sum(',"/sensors/mm/free",,value,' in row for row in rows) == len(free)
    assert sum(row.split(",")[3] == "prev" for row in rows) == len(switches)


def test_record_cut_off(tmp_path):
    """Up to its last whole chunk it is read, wherever it is cut."""
    converted(run("record"), tmp_path, ())
    path = tmp_path / "recording"
    data = path.read_bytes()
    before = 0
    for size in (36, 100, 1000, len(data) // 2, len(data) - 9, len(data) - 8, len(data)):
        path.write_bytes(data[:size])
        done = subprocess.run([f"{ROOT}/tools/strobe", "sensors", "--json", path],
                              capture_output=True, text=True, check=True)
        head, *rest = map(json.loads, done.stdout.splitlines())
        assert head["ended"] == (size == len(data)) and len(rest) >= before, head
        before = len(rest)
    path.write_bytes(data[:35])
    done = subprocess.run([f"{ROOT}/tools/strobe", "sensors", path], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 1 and "cut off in its head" in done.stderr, done


def test_record_a_command(tmp_path):
    """Sensors that the command creates, from their first event on."""
    result = run("record command")
    status, lines = converted(result, tmp_path, ("--json",))
    assert status == "0", result
    _, *rest = map(json.loads, lines.splitlines())
    frames = [x for x in rest if x["path"].endswith("frames")]
    read = [x["event"]["number"] for x in frames if "event" in x]
    lost = sum(x.get("lost", 0) for x in frames)
    assert len(read) + lost == 300 and read[-1] == 299, frames
    assert sum(c[3] for c in {tuple(c[:3]): c for x in rest
                              for c in x.get("cells", ())}.values()) == 300, rest


def test_record_until_the_disk_is_full(tmp_path):
    result = run("record full")
    assert re.search(r"rec: .*; it has what was recorded in the first \d\.\d+ s",
                     result.errors), result
    status, text = converted(result, tmp_path, ())
    assert status == "1" and "cut off" in text, result
    assert text.count("/sensors/mm/free") > 50, text


def test_record_wrong():
    result = run("record wrong")
    assert result.output.split() == ["2", "2", "1", "2", "1", "1", "127", "7"], result
    for text in ("-o FILE is missing", "which sensors?", "/none/x: No such file",
                 "-i '0': not a number of seconds", "/sensors/none: No such file",
                 "/sensors/none: it was not created", "none: no such program"):
        assert text in result.errors, (text, result)


PROGRAM = """
#include "user/libstrobe/sensor.h"
static struct sensor_scalar scalar = SENSOR_GAUGE_INIT;
static struct sensor_histogram flat = SENSOR_LOG2_INIT(4, 2, 60);
static struct sensor_histogram wide = SENSOR_LINEAR_2D_INIT(0, 1, 4, 0, 1, 4);
#define POINT(F) F(u32, x) F(s64, y)
#define TYPES(T) T(point, 3, POINT)
SENSOR_TYPES_OF(TYPES)
static struct sensor_events events = SENSOR_EVENTS_INIT(16, 32);
static struct sensor_records records = SENSOR_RECORDS_INIT(4096);
int main(void)
{
    if (sensor_scalar_open(&scalar, "FOLDER/scalar", "a gauge") ||
        sensor_hist_open(&flat, "FOLDER/flat", "flat") ||
        sensor_hist_open(&wide, "FOLDER/wide", "wide") ||
        sensor_events_open(&events, "FOLDER/events", SENSOR_TEXT(TYPES)) ||
        sensor_records_open(&records, "FOLDER/records", SENSOR_TEXT(TYPES)))
        return 1;
    sensor_set(&scalar, 5000000000u);
    sensor_hist_add(&flat, 100);
    sensor_hist_add_2d(&wide, 1, 2);
    struct sensor_of_point point = { 1, -2 };
    sensor_post(&events, sensor_type_point, &point);
    sensor_write(&records, sensor_type_point, &point);
    point.y = 7;
    sensor_write(&records, sensor_type_point, &point);
    return 0;
}
"""
COMPILERS = (("gcc", "-std=c11", "c"), ("clang", "-std=c11", "c"),
             ("g++", "-std=c++17", "cc"), ("clang++", "-std=c++17", "cc"))


def test_header_on_the_host(tmp_path):
    """C11 and C++17; the tool on the host shows what the program wrote."""
    for number, (compiler, standard, suffix) in enumerate(COMPILERS):
        if not shutil.which(compiler):
            continue
        folder = tmp_path / str(number)
        source = tmp_path / f"program.{suffix}"
        source.write_text(PROGRAM.replace("FOLDER", str(folder)))
        subprocess.run([compiler, standard, "-D_DEFAULT_SOURCE", "-O2", "-Wall", "-Wextra",
                        "-Werror", f"-I{ROOT}", f"-I{ROOT}/include", source, "-o",
                        tmp_path / "program"], check=True)
        folder.mkdir()
        subprocess.run([tmp_path / "program"], check=True)
        files = [str(folder / name) for name in ("scalar", "flat", "wide", "events",
                                                     "records")]
        shown = subprocess.run([f"{ROOT}/tools/strobe", "sensors", "--json", *files],
                               capture_output=True, text=True, check=True).stdout
        scalar, flat, wide, events, records = map(json.loads, shown.splitlines())
        assert scalar["value"] == 5000000000
        assert flat["cells"] == [[0, 0, 96, 1, 0]]
        assert wide["cells"] == [[0, 2, 1, 1, 0]]
        assert events["events"][0]["fields"]["y"] == -2
        assert [r["fields"]["y"] for r in records["records"]] == [-2, 7]
        os.truncate(files[1], 5000)
        refused = subprocess.run([f"{ROOT}/tools/strobe", "sensors", *files],
                                 capture_output=True, text=True, check=False)
        assert refused.returncode == 1 and "flat: it is cut off" in refused.stderr
