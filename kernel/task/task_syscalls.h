// Statistics of the system calls of each task.
//
// A thread counts in a table of its own, which it borrows from its task when it
// is created and returns when it is destroyed. The counts of ended threads stay
// in the table, and the next thread continues there; sums are computed only
// when they are read. A table has room for a limited number of different calls.
// If a thread makes more, it leaves the table and continues in a larger one.
// Tables are freed with their task: the holder of a reference to the task may
// read them without a lock.
#pragma once

#include "kernel/sched/thread.h"
#include "kernel/task/syscall_table.h"

struct task;

struct call_table {
    struct call_table *next;      // all tables of the task: only pushed
    struct call_table *next_free; // task->lock
    u32 used, room;               // entries
    u8 entry_of[CALL_COUNT];      // 0: the call has none yet
    // The first entry counts calls for which there was no memory for a table
    // with room.
    struct syscall_counts entries[];
};

// Gives a new thread a table. 0, -ENOMEM.
int call_table_borrow(struct task *task, struct thread *t);
// Returns the table of a destroyed thread. Any context but NMI.
void call_table_return(struct task *task, struct thread *t);
// Frees all tables. There is no reference to the task any more.
void call_tables_free(struct task *task);
// Makes an entry for the first call of this kind of the current thread.
// Interrupts off.
struct syscall_counts *call_table_enter(struct thread *t, u32 call);

// The entry of the thread's table that counts this call. Interrupts off.
static ALWAYS_INLINE struct syscall_counts *syscall_own_counts(struct thread *t,
                                                               u32 call)
{
    struct call_table *table = t->calls;
    u32 entry = table->entry_of[call];
    return likely(entry) ? &table->entries[entry] : call_table_enter(t, call);
}
