// What all traces for Perfetto are made of: packets of one sequence
// (github.com/google/perfetto, protos/perfetto/trace/trace_packet.proto).
#pragma once

#include "protobuf.h"

#include <stdio.h>

// Field numbers of TracePacket.
enum {
    PACKET_FTRACE = 1,
    PACKET_PROCESS_TREE,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_TRACK_EVENT,
    PACKET_INTERNED,
    PACKET_FLAGS,
    PACKET_TRACK = 60,
    PACKET_PERF_SAMPLE = 66,
    PACKET_FIRST = 87,
};
// Values of PACKET_FLAGS.
enum { FLAG_CLEARED = 1, FLAG_NEEDS_INTERNED = 2 };

// Writes the packet and empties it. Errors of `out` are the caller's to find;
// lack of memory ends the program.
void perfetto_put(FILE *out, struct message *packet);
