// The tables of system call numbers and names, generated from syscalls.def, and
// the statistics of each call.

#include "kernel/task/syscall_table.h"

#include "arch/trap.h"
#include "kernel/base/log.h"
#include "kernel/task/task_syscalls.h"
#include "lib/cpu_memory.h"

#define FAMILY_OF(family) FAMILY_NAMED(family)
#define FAMILY_NAMED(family) IN_##family
#define SYSCALL(number, name, ...) [CALL_##name] = FAMILY_OF(FAMILY),
const enum subsystem syscall_family[CALL_COUNT] = {
    [CALL_unknown] = IN_OTHER,
#include <strobe/syscalls.def>
};

static const char *const names[CALL_COUNT] = {
#define SYSCALL(number, name, ...) [CALL_##name] = #name,
#include <strobe/syscalls.def>
};

// Linux's calls have numbers below 1000, Strobe's own from 1000 on.
#define IS_LINUX(number) ((number) < SYSCALL_STROBE_FIRST)
_Static_assert(CALL_COUNT <= 256, "calls are kept in bytes");
_Static_assert(SYSCALL_LINUX_CALLS <= SYSCALL_STROBE_FIRST, "two ranges");

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
#define SYSCALL(number, name, ...) \
    [IS_LINUX(number) ? number : 0] = IS_LINUX(number) ? CALL_##name : 0,
const u8 syscall_linux_calls[SYSCALL_LINUX_CALLS] = {
#include <strobe/syscalls.def>
};
// An extra element at the end takes the entries of Linux's calls.
#define SYSCALL(number, name, ...)                       \
    [IS_LINUX(number) ? SYSCALL_STROBE_CALLS : (number)- \
        SYSCALL_STROBE_FIRST] = CALL_##name,
const u8 syscall_strobe_calls[SYSCALL_STROBE_CALLS + 1] = {
#include <strobe/syscalls.def>
};
#pragma GCC diagnostic pop

static struct syscall_counts *counts[CPU_MAX];
CPU_MEMORY(counts, CALL_COUNT);

void syscall_init_cpu(struct cpu *cpu)
{
    assert(!cpu->syscalls && counts[cpu->id]);
    cpu->syscalls = counts[cpu->id];
}

void syscall_count_error(struct thread *t, struct syscall_counts *own,
                         struct syscall_counts *all)
{
    assert_checked(!irqs_enabled());
    t->call_failed = false;
    struct ledger *l = ledger_write_begin();
    WRITE_ONCE(own->errors, own->errors + 1);
    WRITE_ONCE(all->errors, all->errors + 1);
    ledger_write_end(l);
}

static void add_call(struct syscall_counts *c, u64 cycles)
{
    WRITE_ONCE(c->count, c->count + 1);
    WRITE_ONCE(c->cycles, c->cycles + cycles);
}

void syscall_count_last(struct thread *t)
{
    assert_checked(!irqs_enabled());
    const struct trapframe *tf = thread_trapframe(t);
    u64 cycles = thread_kernel_cycles(t) - t->counted;
    if (!t->counted) // never in user mode: the frame is a copy of its creator's
        return;
    if (trap_is_syscall(tf)) {
        u32 call = syscall_call(trap_call(tf));
        struct syscall_counts *own = syscall_own_counts(t, call);
        struct ledger *l = ledger_write_begin();
        add_call(own, cycles);
        add_call(&counts[this_cpu()->id][call], cycles);
        ledger_write_end(l);
    } else if (trap_vector(tf) < LEDGER_EXCEPTIONS) {
        ledger_count_exception(trap_vector(tf), cycles);
    }
}

u32 syscall_strobe_call(u32 number)
{
    u32 i = number - SYSCALL_STROBE_FIRST;
    return i < SYSCALL_STROBE_CALLS ? syscall_strobe_calls[i] : CALL_unknown;
}

const char *syscall_name(u32 number)
{
    u32 call = syscall_call(number);
    return call ? names[call] : NULL;
}

enum subsystem syscall_subsystem(u32 number)
{
    return syscall_family[syscall_call(number)];
}

u32 syscall_next(u32 number)
{
    for (; number < SYSCALL_LINUX_CALLS; number++) {
        if (syscall_linux_calls[number])
            return number;
    }
    u32 i = MAX(number, SYSCALL_STROBE_FIRST) - SYSCALL_STROBE_FIRST;
    for (; i < SYSCALL_STROBE_CALLS; i++) {
        if (syscall_strobe_calls[i])
            return SYSCALL_STROBE_FIRST + i;
    }
    return SYSCALL_UNKNOWN;
}

void syscall_counts(u32 number, struct syscall_counts *out)
{
    u32 call = syscall_call(number), seq;
    *out = (struct syscall_counts){ 0 };
    for (u32 i = 0; i < cpu_count; i++) {
        const struct syscall_counts *c = &counts[i][call];
        struct syscall_counts now;
        do {
            seq = ledger_read_begin(i);
            now.count = READ_ONCE(c->count);
            now.errors = READ_ONCE(c->errors);
            now.cycles = READ_ONCE(c->cycles);
        } while (ledger_read_retry(i, seq));
        out->count += now.count;
        out->errors += now.errors;
        out->cycles += now.cycles;
    }
}
