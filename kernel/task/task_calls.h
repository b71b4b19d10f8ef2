// What system calls each task has made.
//
// A thread counts in a table of its own, which it borrows from its task when it
// is created and gives back when it is gone: what ended threads did stays where
// it was counted, the next thread counts on there, and nothing is added up
// before somebody asks. A table has room for the first calls that a thread
// makes; when it makes more, the table is left as it is and a bigger one taken.
// Tables are freed with their task, so whoever has a reference to it may read
// them without a lock.
#pragma once

#include "kernel/sched/thread.h"
#include "kernel/task/calls.h"

struct task;

struct call_table {
    struct call_table *next;      // of the task's: only ever pushed
    struct call_table *next_free; // task->lock
    u32 used, room;               // entries
    u8 entry_of[CALL_COUNT];      // 0: the call has none yet
    // The first is for calls that there was no memory to tell apart.
    struct syscall_counts entries[];
};

// For a new thread. 0, -ENOMEM.
int call_table_borrow(struct task *task, struct thread *t);
// When it is gone. Any context but NMI.
void call_table_return(struct task *task, struct thread *t);
// All tables, when nobody knows the task any more.
void call_tables_free(struct task *task);
// A call's entry when the current thread makes it for the first time.
// Interrupts off.
struct syscall_counts *call_table_enter(struct thread *t, u32 call);

// The entry of the thread's table where it counts this call. Interrupts off.
static ALWAYS_INLINE struct syscall_counts *syscall_own_counts(struct thread *t,
                                                               u32 call)
{
    struct call_table *table = t->calls;
    u32 entry = table->entry_of[call];
    return likely(entry) ? &table->entries[entry] : call_table_enter(t, call);
}
