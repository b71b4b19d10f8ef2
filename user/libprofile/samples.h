// Counted samples: how many samples of each chain, thread and CPU. All reports
// are made from these counts.
#pragma once

#include "chains.h"
#include "images.h"
#include "programs.h"
#include "stream.h"
#include "task_times.h"

enum sample_mode { MODE_USER, MODE_KERNEL, MODE_IRQ, MODE_IDLE, MODES };

struct sample_count {
    uint32_t chain; // innermost node
    uint32_t task, thread;
    uint32_t image;   // the task's image,
    uint32_t program; // and index in `programs`: its name at the time
    uint16_t cpu;
    uint8_t mode;
    bool irqs_off;
    uint8_t event; // of events that are counted together (perf_read.h); or 0
    uint64_t samples, period;
    double squares; // sum of the squared periods; set by samples_count
    uint32_t next;  // next in the same bucket
};

// A sample of the stream as it was counted.
struct counted_sample {
    const struct stream_sample *in;
    const struct program *program; // NULL: unknown
    const uint32_t *user;          // the completed user chain (user_chain.h)
    uint32_t user_depth;
};

// Callbacks for each record of the stream, after it was counted. Any may be
// NULL.
struct samples_observer {
    void (*sample)(void *arg, const struct counted_sample *s);
    void (*task)(void *arg, const struct sprofile_task *t);
    void (*lost)(void *arg, uint32_t cpu, uint64_t count);
    void *arg;
};

// A cache: the callers of the last user chain, the outermost first, and their
// nodes. The next chain usually has the same outermost callers and so needs no
// lookup in the hash table.
struct last_chain {
    uint32_t image, load_bias, depth;
    uint32_t jit_task; // the task whose generated code is in the chain; 0: none
    uint32_t back[USER_CHAIN_MAX]; // return addresses
    uint32_t node[USER_CHAIN_MAX];
};

struct samples {
    struct images images;
    struct programs programs;
    struct programs threads; // names: of thread `task`, which is `parent`'s
    struct task_times times;
    struct chains chains;
    struct sample_count *counts;
    uint32_t count, room;
    uint32_t *buckets;
    uint32_t vdso; // address of the vDSO in every program; 0: unknown
    uint64_t total, period;
    uint64_t uncounted; // samples not counted for want of memory
    uint32_t max;       // limit of `room`
    uint64_t lost;      // as the stream reports
    struct stream_reader reader;
    struct samples_observer observer;
    struct last_chain last;
};

// Returns -1 when out of memory. `*s` must not move afterwards: the reader
// points to it.
int samples_init(struct samples *s, image_reader read);
void samples_free(struct samples *s);
// Removes all samples; images and programs remain.
void samples_clear(struct samples *s);
// Adds the count of equal samples; their chain is in `chains`. Returns its
// index in `counts`, or SAMPLES_UNCOUNTED without memory for it.
#define SAMPLES_UNCOUNTED UINT32_MAX
uint32_t samples_count(struct samples *s, const struct sample_count *c);
// The number of samples whose chain is incomplete, by reason.
struct samples_cut {
    uint64_t any, deep, unreadable, broken, beyond_copy;
};
struct samples_cut samples_cut(const struct samples *s);
// The name of the task's thread: its last own one, or that of the task's last
// program; "?": unknown. thread == task: of the task.
const char *samples_thread_name(const struct samples *s, uint32_t task,
                                uint32_t thread);
// Reads a piece of the stream; the arguments and result are stream_read's.
size_t samples_add_stream(struct samples *s, const void *bytes, size_t size);
