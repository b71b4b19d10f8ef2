// What the parts of the writer of trace.dat files share: trace_dat.c has the
// file and its pages, trace_dat_events.c what is in them.
#pragma once

#include "user/libtrace/file.h"

#include <stdio.h>

#define DAT_EVENT_MOST 64u // bytes; a multiple of 4

// The event as trace-cmd is to see it. Returns its bytes, a multiple of 4; 0:
// it is of no known type.
uint32_t dat_event(uint8_t out[DAT_EVENT_MOST], const struct trace_file *f,
                   const struct trace_event *e);
// What a sensor had, as text, which is cut off at some length.
#define DAT_SENSED_MOST 520u
uint32_t dat_sensed(uint8_t out[DAT_SENSED_MOST], const struct trace_file *f,
                    const struct recorded *one);
// The file's section of event formats.
void dat_put_formats(FILE *out);

// A number of 1 to 8 bytes.
void dat_put_number(FILE *out, uint64_t n, uint32_t bytes);
// What `put` writes, behind its size, a number of `size_bytes`, or 0: without
// it. Returns the size. Without memory it is nothing, of size 0.
size_t dat_put_made(FILE *out, uint32_t size_bytes,
                    void (*put)(FILE *made, const void *arg), const void *arg);
