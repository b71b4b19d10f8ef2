// Streams: who is measured, for how long, and where what is measured goes.
//
// A stream is one measurement of a task, with its children on request, or of
// the whole system. What it measures is its kind's business: sampling, counting
// and address bins (kernel/profile) are kinds.
//
//     who        targets.c  a bit of task->streams for each stream; fork, exec
//                           and exit keep it
//     how long   stream.c   begin, wait for exec, pause, end
//     where to   rings.c    a ring for each CPU, and one for what becomes of
//                           the targets; waking the readers
//     who reads  read.c     whole records, copied
//                map.c      the rings mapped, and spans of them lent
//
// `streams_lock` guards begin, pause and end; `tasks_lock` which tasks are
// targets and which slots are filled, so that a slot that is seen to be filled
// under it stays so.
#pragma once

#include <strobe/kbox.h>

#include "arch/cpu.h"
#include "kernel/sync/mutex.h"
#include "kernel/sync/spinlock.h"
#include "kernel/time/callout.h"
#include "lib/ring.h"

#define STREAMS_MAX 32 // bits of task->streams

struct task;
struct waitq;
struct stream;

struct stream_kind {
    u32 most; // at once; of an ordinary user a quarter, and one at least
    // It begins to measure, and ceases to. streams_lock.
    void (*start)(struct stream *s);
    void (*stop)(struct stream *s);
    // Ends and frees it. May sleep. NULL: it is no phone's.
    void (*end)(struct stream *s);
    // `t` is the current task and its target no more: its last thread leaves
    // user mode for good, or it runs a program that `s` may not see.
    // tasks_lock.
    void (*left)(struct stream *s, struct task *t);
    // Its task runs another program. streams_lock. May be NULL.
    void (*execed)(struct stream *s);
    // No target lives any more. streams_lock. May be NULL.
    void (*over)(struct stream *s);
};

// Where the records of a stream go. A CPU's ring has one writer, which may be
// an NMI, and the stream one reader.
struct stream_rings {
    struct ring *of_cpu[CPU_MAX]; // the kind's, which writes them
    struct ring events;           // of targets, with many writers
    struct spinlock event_lock;
    u32 events_lost;
    bool wake; // readers are to be woken; marked
    struct callout look;
    u32 looks; // its own
    // Where the reader has mapped the rings, and how much of them it is reading
    // there (kbox's lock): those of the CPUs, then `events`.
    bool mapped;
    u32 mapped_at[CPU_MAX + 1], lent[CPU_MAX + 1];
};

struct stream {
    const struct stream_kind *kind;
    struct task *task;        // referenced; NULL: the system
    struct task *profiler;    // left out of a stream of the system; likewise
    u32 owner;                // its id
    u32 uid;                  // whose it is
    bool limited;             // to what an ordinary user may see, and have
    bool children;            // targets' children become targets
    bool paused, wait_exec;   // streams_lock
    bool ended;               // no target lives any more, and readers know
    u32 slot;                 // its bit in task->streams
    u32 live;                 // targets; tasks_lock; read without it
    u64 since_ns, elapsed_ns; // of the running stretch; before it
    struct waitq *readers;    // of the rings; NULL: it has none
    struct stream_rings rings;
};

extern struct mutex streams_lock;
// Changed under streams_lock and tasks_lock.
extern struct stream *streams[STREAMS_MAX];

// --- how long (stream.c) ----------------------------------------------------

// For the current task. `flags`: SPROFILE_O_FROM_EXEC, _CHILDREN. References
// `task`.
void stream_init(struct stream *s, const struct stream_kind *kind,
                 struct task *task, u32 flags);
// Gives back what stream_init took.
void stream_release(struct stream *s);

// Under streams_lock. Finds it a slot: 0 or -EUSERS.
int stream_find_slot(struct stream *s);
// Its targets are its targets; it starts, unless it is paused or waits for
// exec.
void stream_publish(struct stream *s);
// No task is its target any more, and its slot is free. It is not stopped.
void stream_withdraw(struct stream *s);
void stream_set_paused(struct stream *s, bool paused, bool wait_exec);
// What it has measured for, without pauses.
u64 stream_elapsed_ns(const struct stream *s);

// When it has paused it measures nothing any more, on any CPU. May sleep.
void stream_pause(struct stream *s, bool pause);

static inline bool stream_measures(const struct stream *s)
{
    return !s->paused && !s->wait_exec;
}

// --- who (targets.c) --------------------------------------------------------

// Calls fn(task, arg) for each target that lives. tasks_lock.
void stream_each_target(struct stream *s, void (*fn)(struct task *, void *),
                        void *arg);

// --- where to (rings.c) -----------------------------------------------------

// The most bytes that a ring of this stream may have.
u32 stream_most_ring_bytes(const struct stream *s);
// Memory of `bytes`, a power of two, for each of rings.of_cpu, which points to
// the kind's, and for `events`. 0 or -ENOMEM.
int stream_alloc_rings(struct stream *s, u32 bytes, struct waitq *readers);
void stream_free_rings(struct stream *s);
// Readers are woken at times from then on, until it is stopped.
void stream_start_looking(struct stream *s);
void stream_stop_looking(struct stream *s);

static inline bool stream_quarter_full(const struct ring *r)
{
    return ring_used(r) >= r->size / 4;
}

// Its readers are woken soon. Any context, NMI included.
void stream_wake_soon(struct stream *s);

// --- who reads (read.c, map.c) ----------------------------------------------

// True when a read should be answered without waiting longer.
bool stream_readable(struct stream *s);
bool stream_ended(struct stream *s); // no target lives any more
// Copies whole records to user memory: bytes or -EFAULT. One reader at a time.
int stream_read(struct stream *s, u32 addr, u32 size);
// One of these at a time, and no read beside them. Maps the rings into the
// current task: 0 or -ENOMEM.
int stream_map(struct stream *s);
// Stores struct sprofile_span of all records that there are: bytes, -EINVAL (no
// room for the most there can be, or the rings are not mapped), -EFAULT.
int stream_lend(struct stream *s, u32 addr, u32 size);
// What was lent is read: a new read begins.
void stream_take_back(struct stream *s);
