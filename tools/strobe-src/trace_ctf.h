// What the parts of the writer of the Common Trace Format share: trace_ctf.c
// has the directory, its packets and the kernel's events, trace_ctf_sensors.c
// what sensors had.
#pragma once

#include "user/libtrace/file.h"

#include <stdio.h>

#define CTF_MAGIC 0xc1fc1fc1u
#define CTF_PACKET_BYTES 65536u

// The begin of a packet.
struct ctf_context {
    uint32_t magic, stream;
    uint64_t begin, end;
    uint64_t content_bits, packet_bits;
    uint64_t lost;
    uint32_t number;
} __attribute__((packed));

// Ids of kinds of streams: all CPUs have one, each sensor has its own.
enum { CTF_CPUS, CTF_SENSORS }; // and those of the other sensors

struct ctf_stream {
    FILE *out;
    uint32_t id, number; // of the CPU, the sensor
    uint8_t packet[CTF_PACKET_BYTES];
    uint32_t used; // bytes of `packet`; 0: none is begun
    uint64_t begin, end;
    uint64_t lost;
    // Of a sensor: bit N: there are events of type N, described and not.
    uint8_t types[65536 / 8];
    bool others;
};

struct ctf {
    const char *directory;
    struct trace_file *file;
    struct ctf_stream *cpus[TRACE_CPUS_MAX];
    struct ctf_stream **sensors; // of each of the file's
    uint64_t unknown;            // events of no known type
    int error;                   // of the first call that failed
};

// The stream *s, which is created with the file KIND_NUMBER if there is none.
// NULL: c->error.
struct ctf_stream *ctf_stream_of(struct ctf *c, struct ctf_stream **s,
                                 const char *kind, uint32_t number, uint32_t id,
                                 uint64_t time);
// Makes room for an event of at most `most` bytes. Returns its time, which is
// not before the last one's.
uint64_t ctf_begin_event(struct ctf *c, struct ctf_stream *s, uint64_t time,
                         size_t most);
void ctf_add(struct ctf_stream *s, const void *bytes, size_t size);
void ctf_lose(struct ctf *c, struct ctf_stream *s, uint64_t time,
              uint64_t lost);
void ctf_end_packet(struct ctf *c, struct ctf_stream *s);
// A string of the format's language, of printable characters.
void ctf_put_string(FILE *out, const char *text);

// trace_ctf_sensors.c: `arg` is a struct ctf.
void ctf_on_sensed(void *arg, const struct recorded *one);
// Lines of the environment: the names of the sensors.
void ctf_put_sensor_names(const struct trace_file *f, FILE *out);
// What the metadata say of the sensors' streams.
void ctf_put_sensors(const struct ctf *c, FILE *out);
