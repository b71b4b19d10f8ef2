"""The tools `sensors` and `strobe sensors`, and the header for programs, in C and C++."""
import json
import os
import re
import shutil
import subprocess

from machine import ROOT, batch

DECODER = ("/test/sensor_decoder 300 60 >out & until grep -q fork out; do usleep 10000;"
           " done; ")
SHOW = DECODER + "cd /sensors/verner; sensors "

SCRIPTS = {
    "decoder": "/test/sensor_decoder 300",
    "list": DECODER + "sensors; kill $!",
    "list json": "sensors --json",
    "show": SHOW + "misses decode.cost frames; kill $!",
    "json": SHOW + "--json misses steps frames; kill $!",
    "closed": DECODER + "exec 3</sensors/verner/misses; kill $!; wait $!;"
              " sensors /sensors/verner/misses",
    "watch": "sensors -w -n 3 -s 1 /sensors/mm/free",
    "kernel": "sensors /sensors/sched/latency",
    "wrong": "sensors /etc/passwd; echo $?; sensors /nothing; echo $?; sensors -w;"
             " echo $?; sensors -w -n 0 /sensors/mm/free; echo $?",
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
    assert re.search(r"^/sensors/verner/frames +list +open +\d+ +0 +\d+$",
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


def test_json():
    result = run("json")
    misses, steps, frames = map(json.loads, result.output.splitlines())
    assert misses["type"] == "scalar" and misses["value"] > 7, result
    cells = steps["cells"]
    assert sum(cell[3] for cell in cells) == steps["count"] == 300, result
    assert sum(cell[4] for cell in cells) == steps["sum"], result
    assert [e["number"] for e in frames["events"]] == list(range(44, 300)), result
    assert frames["events"][0]["event"] == "frame", result


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


PROGRAM = """
#include "user/libstrobe/sensor.h"
static struct sensor_scalar scalar = SENSOR_GAUGE_INIT;
static struct sensor_histogram flat = SENSOR_LOG2_INIT(4, 2, 60);
static struct sensor_histogram wide = SENSOR_LINEAR_2D_INIT(0, 1, 4, 0, 1, 4);
#define POINT(F) F(u32, x) F(s64, y)
#define TYPES(T) T(point, 3, POINT)
SENSOR_TYPES_OF(TYPES)
static struct sensor_events events = SENSOR_EVENTS_INIT(16, 32);
int main(void)
{
    if (sensor_scalar_open(&scalar, "FOLDER/scalar", "a gauge") ||
        sensor_hist_open(&flat, "FOLDER/flat", "flat") ||
        sensor_hist_open(&wide, "FOLDER/wide", "wide") ||
        sensor_events_open(&events, "FOLDER/events", SENSOR_TEXT(TYPES)))
        return 1;
    sensor_set(&scalar, 5000000000u);
    sensor_hist_add(&flat, 100);
    sensor_hist_add_2d(&wide, 1, 2);
    struct sensor_of_point point = { 1, -2 };
    sensor_post(&events, sensor_type_point, &point);
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
        files = [str(folder / name) for name in ("scalar", "flat", "wide", "events")]
        shown = subprocess.run([f"{ROOT}/tools/strobe", "sensors", "--json", *files],
                               capture_output=True, text=True, check=True).stdout
        scalar, flat, wide, events = map(json.loads, shown.splitlines())
        assert scalar["value"] == 5000000000
        assert flat["cells"] == [[0, 0, 96, 1, 0]]
        assert wide["cells"] == [[0, 2, 1, 1, 0]]
        assert events["events"][0]["y"] == -2
        os.truncate(files[1], 5000)
        refused = subprocess.run([f"{ROOT}/tools/strobe", "sensors", *files],
                                 capture_output=True, text=True, check=False)
        assert refused.returncode == 1 and "flat: it is cut off" in refused.stderr
