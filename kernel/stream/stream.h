// Streams: which tasks are measured, for how long, and where the records go.
//
// A stream is one measurement of a task, optionally with its children, or of
// the whole system. What it measures is up to its kind: sampling, counting and
// address bins (kernel/profile) are kinds.
//
//     targets    targets.c  a bit of task->streams for each stream; fork, exec
//                           and exit keep it
//     duration   stream.c   begin, wait for exec, pause, end
//     storage    rings.c    a ring for each CPU, and one for events of the
//                           targets; waking the readers
//     reading    read.c     whole records, copied
//                map.c      the rings mapped read-only, and spans of them
//                           reported
//
// `streams_lock` guards begin, pause and end. `tasks_lock` guards which tasks
// are targets and which slots are filled: a slot that is found filled under it
// stays filled while the lock is held.
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
    u32 max_streams; // streams at a time; an ordinary user: a quarter, at least
                     // one
    bool once;       // when it has been paused, it cannot be resumed
    // Its records name tasks that are no targets: readers learn of all of them.
    bool names_all;
    // Begins and ceases to measure. streams_lock.
    void (*start)(struct stream *s);
    void (*stop)(struct stream *s);
    // Ends and frees the stream. May sleep. NULL: no phone has one.
    void (*end)(struct stream *s);
    // `t`, the current task, is no longer a target: it has released its memory
    // and files, or execs a program that `s` may not see. Of a stream of the
    // system with rings: any task that has released them. tasks_lock.
    void (*target_left)(struct stream *s, struct task *t);
    // The stream's task has called exec. streams_lock. May be NULL.
    void (*execed)(struct stream *s);
    // The last target has ended. streams_lock. May be NULL.
    void (*all_ended)(struct stream *s);
    // Of a kind that has its own storage for each CPU, and no rings.of_cpu;
    // else NULL. What stream_readable, stream_read and SPROFILE_M_INFO do.
    bool (*readable)(struct stream *s);
    int (*read)(struct stream *s, u32 addr, u32 size);
    int (*info)(struct stream *s, u32 addr);
    // SPROFILE_M_TRACE_COPY. May be NULL.
    int (*copy)(struct stream *s, u32 addr, u32 size);
};

// The rings of a stream. A CPU's ring has one writer, which may be an NMI, and
// the stream has one reader.
struct stream_rings {
    struct ring *of_cpu[CPU_MAX]; // owned and written by the kind, or NULL
    // struct sprofile_task and sprofile_times; many writers, under event_lock
    struct ring events;
    struct spinlock event_lock;
    u32 events_lost, times_lost;
    bool wake; // readers are to be woken; marked accesses
    struct callout check;
    u32 checks; // calls of check_rings; used by it alone
    // Where the reader has mapped the rings, and how many bytes of each it is
    // reading in place (kbox's lock): first the rings of the CPUs, then
    // `events`.
    bool mapped;
    u32 mapped_at[CPU_MAX + 1], mapped_bytes[CPU_MAX + 1];
};

struct stream {
    const struct stream_kind *kind;
    struct task *task;     // reference held; NULL: the whole system
    struct task *profiler; // reference held; a stream of the system excludes it
    u32 owner;             // the profiler's task id
    u32 uid;               // user id of the profiler
    bool limited;          // by the permissions and quotas of an ordinary user
    bool children;         // targets' children become targets
    bool paused, wait_exec; // streams_lock
    bool ended;             // no target is alive; seen by readers
    u32 slot;               // its bit in task->streams
    u32 live;         // number of living targets; tasks_lock, also read without
    u64 published_ns; // tasks_lock
    // Start of the current interval; the sum of those before it.
    u64 since_ns, elapsed_ns;
    struct waitq *readers; // of the rings; NULL: no rings
    struct stream_rings rings;
};

extern struct mutex streams_lock;
// Changed under streams_lock and tasks_lock.
extern struct stream *streams[STREAMS_MAX];

// --- duration (stream.c) ----------------------------------------------------

// Initialises a stream whose profiler is the current task. `flags`:
// SPROFILE_O_FROM_EXEC, _CHILDREN. Takes a reference to `task`.
void stream_init(struct stream *s, const struct stream_kind *kind,
                 struct task *task, u32 flags);
// Drops the references of stream_init.
void stream_release(struct stream *s);

// Under streams_lock, down to stream_elapsed_ns. Finds a slot for `s`: 0 or
// -EUSERS.
int stream_find_slot(struct stream *s);
// Puts `s` into its slot and marks its targets. Starts it, unless it is paused
// or waits for exec.
void stream_publish(struct stream *s);
// Unmarks all its targets and frees its slot, and quiesces the other CPUs: no
// interrupt uses the stream any more, so it may be freed. Does not stop it.
void stream_withdraw(struct stream *s);
void stream_set_paused(struct stream *s, bool paused, bool wait_exec);
// Time for which it has measured, without pauses.
u64 stream_elapsed_ns(const struct stream *s);

// Pauses or resumes. When paused, it measures nothing on any CPU on return. May
// sleep.
void stream_pause(struct stream *s, bool pause);

static inline bool stream_measures(const struct stream *s)
{
    return !s->paused && !s->wait_exec;
}

// --- targets (targets.c) ----------------------------------------------------

// Calls fn(task, arg) for each living target. tasks_lock.
void stream_each_target(struct stream *s, void (*fn)(struct task *, void *),
                        void *arg);
// Writes a struct sprofile_times into the event ring, unless that is half full:
// the rest is for struct sprofile_task. tasks_lock.
void stream_put_times(struct stream *s, const struct task *t,
                      enum sprofile_times_kind kind, u64 user, u64 kernel);

// --- storage (rings.c) ------------------------------------------------------

// The largest size in bytes that a ring of this stream may have.
u32 stream_most_ring_bytes(const struct stream *s);
// Allocates `bytes`, a power of two, for each of rings.of_cpu that the kind has
// set, and memory for `events`. 0 or -ENOMEM.
int stream_alloc_rings(struct stream *s, u32 bytes, struct waitq *readers);
void stream_free_rings(struct stream *s);
// Starts and stops the callout that wakes readers periodically.
void stream_start_checks(struct stream *s);
void stream_stop_checks(struct stream *s);

static inline bool stream_quarter_full(const struct ring *r)
{
    return ring_used(r) >= r->size / 4;
}

// Wakes the readers soon, in an interrupt of this CPU. Any context, NMI
// included.
void stream_wake_soon(struct stream *s);

// --- reading (read.c, map.c) ------------------------------------------------

// True if a read should be answered without further waiting.
bool stream_readable(struct stream *s);
bool stream_ended(struct stream *s); // no target lives any more
// Copies whole records to user memory: bytes copied or -EFAULT. One reader at a
// time.
int stream_read(struct stream *s, u32 addr, u32 size);
// The same of `events` alone, for kinds with their own storage.
int stream_read_events(struct stream *s, u32 addr, u32 size);
// One of the following at a time, and no read concurrently. Maps the rings
// read-only into the current task: 0 or -ENOMEM; -EINVAL: a kind with its own
// storage.
int stream_map(struct stream *s);
// Reports all records in the mapped rings as struct sprofile_span: bytes
// stored, -EINVAL (no room for the largest number of spans, or the rings are
// not mapped), -EFAULT. The records stay in place until stream_consume.
int stream_map_ring(struct stream *s, u32 addr, u32 size);
// Consumes the records that the last stream_map_ring reported. Called when a
// new read begins.
void stream_consume(struct stream *s);
