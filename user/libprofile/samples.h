// Samples, counted: how many of which chain, in which thread, on which CPU. All
// that a report shows is made from these counts.
#pragma once

#include "chains.h"
#include "images.h"
#include "programs.h"
#include "stream.h"

enum sample_mode { MODE_USER, MODE_KERNEL, MODE_IRQ, MODE_IDLE, MODES };

struct sample_count {
    uint32_t chain; // its innermost node
    uint32_t task, thread;
    uint32_t image;   // what the task ran,
    uint32_t program; // and its index in `programs`: what it was called then
    uint16_t cpu;
    uint8_t mode;
    bool irqs_off;
    uint8_t event; // of several that are counted together (perf_read.h); or 0
    uint64_t samples, period;
    double squares; // of each sample's period; filled in by samples_count
    uint32_t next;  // in its bucket
};

// A sample of the stream as it was counted.
struct counted_sample {
    const struct stream_sample *in;
    const struct program *program; // NULL: not known
    const uint32_t *user;          // the user's chain made whole
    uint32_t user_depth;
};

// Is called with what the stream says once it is counted; any may be NULL.
struct samples_observer {
    void (*sample)(void *arg, const struct counted_sample *s);
    void (*task)(void *arg, const struct sprofile_task *t);
    void (*lost)(void *arg, uint32_t cpu, uint64_t count);
    void *arg;
};

// The callers of the last user's chain, the outermost first, and their nodes:
// the next chain begins like it as a rule, and so has no need of the hash
// table.
struct last_chain {
    uint32_t image, load_bias, depth;
    uint32_t jit_task;             // whose own code is among them; 0: of none
    uint32_t back[USER_CHAIN_MAX]; // return addresses
    uint32_t node[USER_CHAIN_MAX];
};

struct samples {
    struct images images;
    struct programs programs;
    struct chains chains;
    struct sample_count *counts;
    uint32_t count, room;
    uint32_t *buckets;
    uint32_t vdso; // where the vDSO lies in every program; 0: nowhere known
    uint64_t total, period;
    uint64_t uncounted; // no memory for more counts
    uint64_t lost;      // as the stream says
    struct stream_reader reader;
    struct samples_observer observer;
    struct last_chain last;
};

// -1: no memory. Give it its place first: the reader points to it.
int samples_init(struct samples *s, image_reader read);
void samples_free(struct samples *s);
// Forgets all samples; images and programs stay.
void samples_clear(struct samples *s);
// Counts samples that are alike; the chain is in `chains`.
void samples_count(struct samples *s, const struct sample_count *c);
// Of all of them: how many have a chain that is not whole, and of which kinds.
struct samples_cut {
    uint64_t any, deep, unreadable, broken;
};
struct samples_cut samples_cut(const struct samples *s);
// Takes a piece of the stream, as stream_read.
size_t samples_add_stream(struct samples *s, const void *bytes, size_t size);
