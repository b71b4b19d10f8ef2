"""Reads traces in Perfetto's format with protoc: by the fields' names, with a schema of what
strobe writes, and by their numbers."""
import ast
import collections
import subprocess

# What of Perfetto's messages is used (trace_perfetto.c says where they are published).
SCHEMA = """syntax = "proto2";
message Trace { repeated Packet packet = 1; }
message Packet {
  optional Bundle ftrace = 1; optional uint64 timestamp = 8; optional uint32 sequence = 10;
  optional Event event = 11; optional Interned interned = 12; optional uint32 flags = 13;
  optional Track track = 60; optional bool first = 87; }
message Bundle { optional uint32 cpu = 1; repeated Ftrace event = 2; }
message Ftrace {
  optional uint64 timestamp = 1; optional uint32 pid = 2;
  optional Switch switch = 4; optional Waking waking = 20; }
message Switch {
  optional string prev_comm = 1; optional int32 prev_pid = 2; optional int64 prev_state = 4;
  optional string next_comm = 5; optional int32 next_pid = 6; }
message Waking {
  optional string comm = 1; optional int32 pid = 2; optional int32 success = 4;
  optional int32 target_cpu = 5; }
message Event {
  repeated Annotation annotation = 4; optional int32 type = 9; optional uint64 name_iid = 10;
  optional uint64 track = 11; optional string name = 23; optional int64 counter = 30;
  repeated fixed64 flow = 47; repeated fixed64 flow_end = 48; }
message Annotation {
  optional uint64 name_iid = 1; optional uint64 uint = 3; optional int64 int = 4;
  optional string text = 6; optional uint64 pointer = 7; }
message Interned { repeated Name event_name = 2; repeated Name annotation_name = 3; }
message Name { optional uint64 iid = 1; optional string name = 2; }
message Track {
  optional uint64 uuid = 1; optional string name = 2; optional Process process = 3;
  optional Thread thread = 4; optional uint64 parent = 5; optional Counter counter = 8; }
message Process { optional int32 pid = 1; optional string name = 6; }
message Thread { optional int32 pid = 1; optional int32 tid = 2; optional string name = 5; }
message Counter { optional int32 unit = 3; }
"""
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4  # types of Perfetto's events
THREADS, CPUS, LOSSES, RUNS, SENSOR = 1, 3, 5, 6, 8  # kinds of tracks
# A slice's begin or end, an instant or a counter: of a thread or CPU, with the annotations.
Event = collections.namedtuple("Event", "type ns kind track name fields counter flows ends")


def protoc(path, *arguments):
    with open(path, "rb") as file:
        return subprocess.run(["protoc", *arguments], stdin=file, check=True,
                              capture_output=True, text=True).stdout


def messages(text):
    """protoc's text: of each message a dictionary of the values of its fields."""
    stack = [collections.defaultdict(list)]
    for line in text.splitlines():
        name, _, value = line.strip().partition(": ")
        if name.endswith(" {"):
            stack.append(collections.defaultdict(list))
            stack[-2][name[:-2]].append(stack[-1])
        elif name == "}":
            stack.pop()
        else:
            stack[-1][name].append(value == "true" or ast.literal_eval(value))
    return stack[0]


def numbers_in(message):
    """The names that are numbers: of fields that are not in the schema."""
    return [name for name, values in message.items() if name.isdigit()] + [
        name for values in message.values() for value in values if isinstance(value, dict)
        for name in numbers_in(value)]


class Perfetto:
    """Its events, its switches and wakes (ns, CPU, fields), and the threads' names."""

    def __init__(self, path, directory):
        (directory / "schema.proto").write_text(SCHEMA)
        trace = messages(protoc(path, f"-I{directory}", "--decode=Trace",
                                directory / "schema.proto"))
        assert not numbers_in(trace)
        self.packets = trace["packet"]
        self.events, self.switches, self.wakes, self.threads = [], [], [], {}
        self.names, self.annotations = {}, {}
        for packet in self.packets:
            for interned in packet["interned"]:
                self.names.update((n["iid"][0], n["name"][0]) for n in interned["event_name"])
                self.annotations.update((n["iid"][0], n["name"][0])
                                        for n in interned["annotation_name"])
            for track in packet["track"]:
                for thread in track["thread"]:
                    self.threads[thread["tid"][0]] = (thread["name"] or ["?"])[0]
            for bundle in packet["ftrace"]:
                for event in bundle["event"]:
                    place = (event["timestamp"][0], bundle["cpu"][0])
                    self.switches += [(*place, s) for s in event["switch"]]
                    self.wakes += [(*place, w) for w in event["waking"]]
            self.events += [self.event(packet["timestamp"][0], e) for e in packet["event"]]

    def event(self, ns, event):
        fields = {self.annotations[a["name_iid"][0]]:
                  (a["uint"] + a["int"] + a["text"] + a["pointer"])[0]
                  for a in event["annotation"]}
        uuid = event["track"][0]
        names = event["name"] + [self.names[n] for n in event["name_iid"]] or [None]
        return Event(event["type"][0], ns, uuid >> 32, uuid & 0xffffffff, names[0], fields,
                     (event["counter"] or [None])[0], event["flow"], event["flow_end"])

    def count(self, kind, track=None, field=None):
        """How many events of this kind, by name."""
        return collections.Counter(e.name for e in self.events
                                   if e.type == kind and track in (None, e.kind)
                                   and (field is None or field in e.fields))

    def counters(self):
        return [e.counter for e in self.events if e.type == COUNTER]


class RawPerfetto:
    """The same with `protoc --decode_raw`, which knows no schema: numbers only, as it may take
    a name for a message."""

    def __init__(self, path):
        packets = messages(protoc(path, "--decode_raw"))["1"]
        self.packets = len(packets)
        events = [e for packet in packets for e in packet["11"]]
        ftrace = [e for packet in packets for bundle in packet["1"] for e in bundle["2"]]
        self.events = len(events)
        # By type and kind of track; flows' numbers; the counter's values.
        self.types = collections.Counter((e["9"][0], e["11"][0] >> 32) for e in events)
        self.flows = [flow for e in events for flow in e["47"]]
        self.flow_ends = [flow for e in events for flow in e["48"]]
        self.counters = [value for e in events for value in e["30"]]
        self.switches = sum(len(e["4"]) for e in ftrace)
        self.wakes = sum(len(e["20"]) for e in ftrace)
