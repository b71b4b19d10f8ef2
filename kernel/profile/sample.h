// Sampling: sources interrupt, sessions collect.
//
//     source (who interrupts, how often) -> sample_take() -> every session that
//     wants it -> its ring of this CPU -> the phone that the user tool reads
#pragma once

#include "lib/ring.h"
#include "lib/set.h"
#include <strobe/kbox.h>

struct trapframe;
struct task;
struct waitq;

// --- sources (linker set sample_sources) ------------------------------------

struct sample_source {
    const char *name;
    u32 rank; // the highest usable one is the default
    u32 min_hz, max_hz;
    const char *(*why_not)(void); // NULL: usable, else the reason
    // Starts on all CPUs, at about `hz`; returns the rate really set or -errno.
    // May sleep. Calls sample_take in interrupt context on each CPU.
    int (*start)(u32 hz);
    void (*stop)(void); // after it no sample_take runs or will
};
#define SAMPLE_SOURCE(s) LINKER_SET_ADD(sample_sources, s)

// One interrupt of a source: `tf` is what it interrupted, `weight` how many
// periods it stands for (>= 1). Interrupts off; takes no lock, never faults.
void sample_take(const struct trapframe *tf, u32 weight);

// --- sessions ---------------------------------------------------------------

struct session;

// `task` NULL: the whole system but the caller's task. `readers` is woken when
// there is something to read. 0, -EBUSY (too many sessions), -ENOMEM, -EINVAL
// (options), -ENODEV (the source is unknown or not usable).
int session_begin(struct task *task, const struct sprofile_options *options,
                  struct waitq *readers, struct session **out);
void session_end(struct session *s); // frees it; sleeps
void session_pause(struct session *s, bool pause);
void session_info(struct session *s, struct sprofile_info *out);
// True when a read should be answered without waiting longer.
bool session_readable(struct session *s);
bool session_ended(struct session *s); // the task is gone
// Copies whole records to user memory: bytes or -EFAULT. One reader at a time.
int session_read(struct session *s, u32 addr, u32 size);
