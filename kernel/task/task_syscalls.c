#include "kernel/task/task_syscalls.h"

#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/mm/heap.h"
#include "kernel/task/task.h"
#include "lib/string.h"

// Bytes of a table: the first size fits the calls of a usual program, the last
// one all calls.
static const u32 sizes[] = { 1024, 8192 };

#define HEAD offsetof(struct call_table, entries)
_Static_assert(HEAD + (CALL_COUNT + 1) * sizeof(struct syscall_counts) <= 8192,
               "all calls fit");
_Static_assert(CALL_COUNT + 1 <= 256, "entries are kept in bytes");

static struct call_table *create(struct task *task, u32 bytes)
{
    assert_checked(bytes > HEAD + sizeof(struct syscall_counts));
    struct call_table *table = kmalloc(bytes);
    if (!table)
        return NULL;
    u32 room = (bytes - HEAD) / sizeof(struct syscall_counts);
    memset(table, 0, HEAD + sizeof(table->entries[0]));
    table->room = MIN(room, CALL_COUNT + 1u);
    table->used = 1;
    table->next = READ_ONCE(task->call_tables);
    while (!__atomic_compare_exchange_n(&task->call_tables, &table->next, table,
                                        false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        ;
    return table;
}

static struct call_table *take_free(struct task *task)
{
    if (!READ_ONCE(task->free_call_tables))
        return NULL;
    u32 flags = spin_lock_irq(&task->lock);
    struct call_table *table = task->free_call_tables;
    if (table)
        WRITE_ONCE(task->free_call_tables, table->next_free);
    spin_unlock_irq(&task->lock, flags);
    return table;
}

int call_table_borrow(struct task *task, struct thread *t)
{
    assert_checked(!t->calls);
    t->calls = take_free(task);
    if (!t->calls)
        t->calls = create(task, sizes[0]);
    return t->calls ? 0 : -ENOMEM;
}

void call_table_return(struct task *task, struct thread *t)
{
    // A zombie has no threads that could use the table.
    if (!t->calls || READ_ONCE(task->zombie))
        return;
    u32 flags = spin_lock_irq(&task->lock);
    t->calls->next_free = task->free_call_tables;
    WRITE_ONCE(task->free_call_tables, t->calls);
    spin_unlock_irq(&task->lock, flags);
}

void call_tables_free(struct task *task)
{
    struct call_table *next;
    for (struct call_table *t = task->call_tables; t; t = next) {
        next = t->next;
        kfree(t);
    }
}

struct syscall_counts *call_table_enter(struct thread *t, u32 call)
{
    assert_checked(!irqs_enabled() && call < CALL_COUNT);
    struct call_table *table = t->calls;
    assert_checked(table->used && table->used <= table->room);
    if (table->used == table->room) {
        struct call_table *bigger = create(t->task, sizes[1]);
        if (!bigger)
            return &table->entries[0];
        t->calls = table = bigger;
    }
    u32 entry = table->used++;
    memset(&table->entries[entry], 0, sizeof(table->entries[entry]));
    // A reader that sees the entry's number sees the zeroed entry.
    __atomic_store_n(&table->entry_of[call], (u8)entry, __ATOMIC_RELEASE);
    return &table->entries[entry];
}

static struct syscall_counts read_counts(const struct syscall_counts *c)
{
    return (struct syscall_counts){ READ_ONCE(c->count), READ_ONCE(c->errors),
                                    READ_ONCE(c->cycles) };
}

// Lock-free read of an entry that its thread, on any CPU, may update
// concurrently. The entry has no sequence counter, which each call would have
// to write twice (+1.5 % of getpid). Instead: updates are made within a write
// section of the CPU's ledger. The read is repeated after ledger_writers_done,
// which waits for those of all CPUs, until it gives the same values twice.
static void add_entry(const struct syscall_counts *c,
                      struct syscall_counts *out)
{
    struct syscall_counts now = read_counts(c), before;
    do {
        before = now;
        ledger_writers_done();
        now = read_counts(c);
    } while (memcmp(&now, &before, sizeof(now)));
    out->count += now.count;
    out->errors += now.errors;
    out->cycles += now.cycles;
}

void syscall_task_counts(const struct task *task, u32 number,
                         struct syscall_counts *out)
{
    u32 call = syscall_call(number);
    *out = (struct syscall_counts){ 0 };
    for (const struct call_table *t =
             __atomic_load_n(&task->call_tables, __ATOMIC_ACQUIRE);
         t; t = t->next) {
        u32 entry = __atomic_load_n(&t->entry_of[call], __ATOMIC_ACQUIRE);
        if (entry)
            add_entry(&t->entries[entry], out);
        if (call == CALL_unknown)
            add_entry(&t->entries[0], out);
    }
}

u64 syscall_task_total(const struct task *task)
{
    struct syscall_counts sum = { 0 };
    for (const struct call_table *t =
             __atomic_load_n(&task->call_tables, __ATOMIC_ACQUIRE);
         t; t = t->next) {
        add_entry(&t->entries[0], &sum);
        for (u32 call = 0; call < CALL_COUNT; call++) {
            u32 entry = __atomic_load_n(&t->entry_of[call], __ATOMIC_ACQUIRE);
            if (entry)
                add_entry(&t->entries[entry], &sum);
        }
    }
    return sum.count;
}
