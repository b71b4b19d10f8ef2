"""Reads Chrome's trace events, and computes what speedscope shows of them."""
import collections
import json


def events_of(chrome, phase, process=None):
    return [e for e in chrome["traceEvents"]
            if e["ph"] == phase and (process is None or e["pid"] == process)]


def tracks_of(chrome):
    """{process, thread: its slices (begin ns, -ns, name with arguments)}, in their order."""
    tracks = collections.defaultdict(list)
    for e in events_of(chrome, "X"):
        name = e["name"]
        if "args" in e:
            name += " " + json.dumps(e["args"], separators=(",", ":"))
        tracks[e["pid"], e["tid"]].append((round(e["ts"] * 1000), -round(e["dur"] * 1000), name))
    return {track: sorted(slices) for track, slices in tracks.items()}


def times_of(slices):
    """{name: its time and that without what is nested in it}, ns."""
    times, open_ = collections.defaultdict(lambda: [0, 0]), []
    for begin, duration, name in slices:
        while open_ and open_[-1][0] <= begin:
            open_.pop()
        times[name][0] -= duration
        times[name][1] -= duration
        if open_:
            times[open_[-1][1]][1] += duration
        open_.append((begin - duration, name))
    return times


def profile_names(chrome):
    """{process, thread: the name that speedscope gives its profile}."""
    names = {(e["name"], e["pid"], e["tid"]): e["args"]["name"]
             for e in events_of(chrome, "M") if e["name"] != "process_sort_index"}
    return {(pid, tid): f"{names['process_name', pid, 0]} (pid {pid}), {name} (tid {tid})"
            for (what, pid, tid), name in names.items() if what == "thread_name"}
