"""Checks a file against Firefox Profiler's processed profile format, version 57
(github.com/firefox-devtools/profiler: src/types/profile.ts and markers.ts,
docs-developer/CHANGELOG-formats.md): members and their types, lengths of columns, and
that each index is inside its table."""
import json
import re

VERSION = 57
NUMBER = (int, float)
COLORS = {"transparent", "purple", "green", "orange", "yellow", "lightblue",
          "blue", "brown", "magenta", "red", "lightred", "darkgrey", "grey"}
DISPLAYS = {"marker-chart", "marker-table", "timeline-overview",
            "timeline-memory", "timeline-ipc", "timeline-fileio"}
FORMATS = {"string", "pid", "tid", "integer", "time", "duration", "file-path",
           "url", "bytes", "unique-string", "sanitized-string", "hexadecimal"}
LIBRARY = 1  # type of a resource

META = {
    "interval": NUMBER, "startTime": NUMBER, "processType": int, "product": str,
    "stackwalk": int, "version": int, "preprocessedProfileVersion": int,
    "markerSchema": list}
META_OPTIONAL = {
    "profilingStartTime": NUMBER, "profilingEndTime": NUMBER,
    "categories": list, "debug": bool, "oscpu": str, "platform": str,
    "arguments": str, "symbolicated": bool, "symbolicationNotSupported": bool,
    "sampleUnits": dict, "importedFrom": str, "usesOnlyOneStackType": bool,
    "sourceCodeIsNotOnSearchfox": bool, "extra": list,
    "keepProfileThreadOrder": bool}
THREAD = {
    "processType": str, "processStartupTime": NUMBER,
    "processShutdownTime": (*NUMBER, type(None)), "registerTime": NUMBER,
    "unregisterTime": (*NUMBER, type(None)), "pausedRanges": list, "name": str,
    "isMainThread": bool, "pid": str, "tid": (int, str), "samples": dict,
    "markers": dict, "stackTable": dict, "frameTable": dict, "funcTable": dict,
    "resourceTable": dict, "nativeSymbols": dict}
THREAD_OPTIONAL = {"processName": str, "showMarkersInTimeline": bool}
LIB = {"arch": str, "name": str, "path": str, "debugName": str,
       "debugPath": str, "breakpadId": str, "codeId": (str, type(None))}


def members(value, required, optional=()):
    """A check of an object with exactly these members."""
    optional = dict(optional)
    assert isinstance(value, dict), value
    assert required.keys() <= value.keys(), required.keys() - value.keys()
    extra = value.keys() - required.keys() - optional.keys()
    assert not extra, extra
    for key, member in value.items():
        type_ = {**required, **optional}[key]
        types = type_ if isinstance(type_, tuple) else (type_,)
        assert isinstance(member, types), (key, member)
        assert bool in types or not isinstance(member, bool), (key, member)


def table(value, columns, optional=()):
    """A check of columns of equal length; each column checks its elements."""
    length = value["length"]
    assert isinstance(length, int)
    optional = dict(optional)
    assert columns.keys() <= value.keys() - {"length"}
    assert value.keys() - {"length"} <= columns.keys() | optional.keys()
    for name, check in {**columns, **optional}.items():
        if name not in value:
            continue
        assert len(value[name]) == length, name
        for element in value[name]:
            assert check(element), (name, element)


def index(of, *others):
    """A check of an index into a table of `of` rows, or one of `others`."""
    return lambda n: n in others or (
        isinstance(n, int) and not isinstance(n, bool) and 0 <= n < of)


def is_null(element):
    return element is None


def is_time(element):
    return isinstance(element, NUMBER) and element >= 0


def check_meta(meta):
    members(meta, META, META_OPTIONAL)
    assert meta["preprocessedProfileVersion"] == VERSION
    assert meta["interval"] > 0 and meta["stackwalk"] in (0, 1)
    for category in meta["categories"]:
        members(category, {"name": str, "color": str, "subcategories": list})
        assert category["color"] in COLORS and category["subcategories"]
    assert any(c["color"] == "grey" for c in meta["categories"])
    if "sampleUnits" in meta:
        assert meta["sampleUnits"].keys() == {"time", "eventDelay",
                                              "threadCPUDelta"}
        assert meta["sampleUnits"]["threadCPUDelta"] in (
            "ns", "\u00b5s", "variable CPU cycles")
    for section in meta.get("extra", ()):
        members(section, {"label": str, "entries": list})
        for entry in section["entries"]:
            members(entry, {"label": str, "format": str, "value": str})
    for schema in meta["markerSchema"]:
        check_schema(schema)
    names = [schema["name"] for schema in meta["markerSchema"]]
    assert len(set(names)) == len(names)


def check_schema(schema):
    members(schema, {"name": str, "display": list, "fields": list},
            {"tooltipLabel": str, "tableLabel": str, "chartLabel": str,
             "description": str})
    assert set(schema["display"]) <= DISPLAYS
    keys = {field["key"] for field in schema["fields"]}
    for field in schema["fields"]:
        members(field, {"key": str, "format": str},
                {"label": str, "hidden": bool})
        assert field["format"] in FORMATS
    for label in ("tooltipLabel", "tableLabel", "chartLabel"):
        for used in re.findall(r"\{marker\.data\.(\w+)\}",
                               schema.get(label, "")):
            assert used in keys


def check_shared(shared):
    members(shared, {"stringArray": list})
    strings = shared["stringArray"]
    assert all(isinstance(text, str) for text in strings)
    assert len(set(strings)) == len(strings)


def check_markers(markers, meta, strings):
    def data(payload):
        schema = schemas[payload["type"]]
        fields = {field["key"] for field in schema["fields"]}
        return payload.keys() - {"type"} <= fields

    schemas = {schema["name"]: schema for schema in meta["markerSchema"]}
    table(markers, {
        "data": data, "name": index(len(strings)), "startTime": is_time,
        "endTime": is_null, "phase": lambda phase: phase == 0,
        "category": index(len(meta["categories"]))})
    assert markers["startTime"] == sorted(markers["startTime"])


def check_samples(samples, stacks):
    assert samples["weightType"] in ("samples", "tracing-ms")
    columns = {k: v for k, v in samples.items() if k != "weightType"}
    table(columns, {"stack": index(stacks, None), "time": is_time, "weight": is_time},
          {"threadCPUDelta": is_time})
    assert samples["time"] == sorted(samples["time"])


def check_thread(thread, profile):
    members(thread, THREAD, THREAD_OPTIONAL)
    meta, strings = profile["meta"], profile["shared"]["stringArray"]
    length = {name: thread[name]["length"] for name in (
        "stackTable", "frameTable", "funcTable", "resourceTable",
        "nativeSymbols")}
    libs, names = len(profile["libs"]), len(strings)
    check_samples(thread["samples"], length["stackTable"])
    check_markers(thread["markers"], meta, strings)
    stacks = thread["stackTable"]
    table(stacks, {"frame": index(length["frameTable"]),
                   "prefix": index(length["stackTable"], None)})
    # A stack's prefix precedes it.
    assert all(prefix is None or prefix < i
               for i, prefix in enumerate(stacks["prefix"]))
    table(thread["frameTable"], {
        "address": lambda a: isinstance(a, int) and -1 <= a < 2**32,
        "inlineDepth": lambda depth: isinstance(depth, int) and depth >= 0,
        "category": index(len(meta["categories"]), None),
        "subcategory": lambda n: n == 0,
        "func": index(length["funcTable"]),
        "nativeSymbol": index(length["nativeSymbols"], None),
        "innerWindowID": lambda n: n in (0, None),
        "line": lambda line: line is None or line > 0, "column": is_null})
    table(thread["funcTable"], {
        "name": index(names), "isJS": lambda flag: flag is False,
        "relevantForJS": lambda flag: flag is False,
        "resource": index(length["resourceTable"], -1),
        "fileName": index(names, None),
        "lineNumber": is_null, "columnNumber": is_null})
    table(thread["resourceTable"], {
        "lib": index(libs), "name": index(names), "host": is_null,
        "type": lambda type_: type_ == LIBRARY})
    table(thread["nativeSymbols"], {
        "libIndex": index(libs), "name": index(names),
        "address": lambda a: isinstance(a, int) and 0 <= a < 2**32,
        "functionSize": lambda size: size is None or size > 0})


def check(profile):
    members(profile, {"meta": dict, "libs": list, "shared": dict,
                      "threads": list})
    check_meta(profile["meta"])
    check_shared(profile["shared"])
    for lib in profile["libs"]:
        members(lib, LIB)
        assert re.fullmatch("[0-9A-F]{33}", lib["breakpadId"]), lib
    for thread in profile["threads"]:
        check_thread(thread, profile)
    ids = [(t["pid"], t["tid"]) for t in profile["threads"]]
    assert len(set(ids)) == len(ids)
    for pid in {pid for pid, _ in ids}:
        mains = [t for t in profile["threads"]
                 if t["pid"] == pid and t["isMainThread"]]
        assert len(mains) == 1, pid


def no_number(text):
    raise AssertionError(f"{text} is no JSON")


def read(path):
    """The profile; fails if a check does."""
    with open(path, "rb") as file:
        text = file.read().decode("utf-8")  # strict
    profile = json.loads(text, parse_constant=no_number)
    check(profile)
    return profile


def chain(profile, thread, stack):
    """[(category, library, function, inline depth)], outermost first."""
    strings = profile["shared"]["stringArray"]
    categories = profile["meta"]["categories"]
    frames, functions = thread["frameTable"], thread["funcTable"]
    found = []
    while stack is not None:
        frame = thread["stackTable"]["frame"][stack]
        function = frames["func"][frame]
        resource = functions["resource"][function]
        lib = thread["resourceTable"]["lib"][resource] if resource >= 0 else None
        found.append((
            categories[frames["category"][frame]]["name"],
            profile["libs"][lib]["path"] if lib is not None else None,
            strings[functions["name"][function]],
            frames["inlineDepth"][frame]))
        stack = thread["stackTable"]["prefix"][stack]
    return found[::-1]
