// Dispatch: the tables that syscalls.def generates, and what each call has
// cost.

#include "kernel/syscall/dispatch.h"

#include "kernel/sched/task.h"

#define LINUX_CALLS SYSCALL_LINUX_CALLS
#define UNKNOWN SYSCALL_UNKNOWN_INDEX

#define SYSCALL(number, name, args) SYSCALL_HANDLER(name);
#include "kernel/syscall/syscalls.def"
#undef SYSCALL

#define INDEX(number)                  \
    ((number) % SYSCALL_STROBE_FIRST + \
     ((number) < SYSCALL_STROBE_FIRST ? 0 : LINUX_CALLS))

static SYSCALL_HANDLER(unknown)
{
    return -ENOSYS;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
#define SYSCALL(number, name, args) [INDEX(number)] = sys_##name,
const syscall_fn syscall_handlers[UNKNOWN + 1] = {
    [0 ... UNKNOWN] = sys_unknown,
#include "kernel/syscall/syscalls.def"
};
#undef SYSCALL
#pragma GCC diagnostic pop

#define SYSCALL(number, name, args) [INDEX(number)] = { #name, args },
static const struct syscall_entry entries[UNKNOWN + 1] = {
#include "kernel/syscall/syscalls.def"
    [UNKNOWN] = { "unknown", "" },
};
#undef SYSCALL

static struct syscall_counts counts[CPU_MAX][UNKNOWN + 1];

void syscall_init_cpu(struct cpu *cpu)
{
    cpu->syscalls = counts[cpu->id];
}

u32 syscall_index(u32 number)
{
    if (number < LINUX_CALLS)
        return number;
    u32 index = number - SYSCALL_STROBE_FIRST + LINUX_CALLS;
    return number >= SYSCALL_STROBE_FIRST && index < UNKNOWN ? index : UNKNOWN;
}

const struct syscall_entry *syscall_entry(u32 number)
{
    u32 index = syscall_index(number);
    return entries[index].name ? &entries[index] : NULL;
}

u32 syscall_next(u32 number)
{
    if (number >= LINUX_CALLS && number < SYSCALL_STROBE_FIRST)
        number = SYSCALL_STROBE_FIRST;
    for (u32 index = syscall_index(number); index < UNKNOWN; index++) {
        if (entries[index].name)
            return index < LINUX_CALLS
                       ? index
                       : index - LINUX_CALLS + SYSCALL_STROBE_FIRST;
    }
    return SYSCALL_UNKNOWN;
}

// A 64-bit count that its CPU may be changing: read until it stands still.
static u64 read_count(const u64 *count)
{
    const volatile u32 *half = (const volatile u32 *)count;
    u32 high, low;
    do {
        high = half[1];
        low = half[0];
    } while (half[1] != high || half[0] != low);
    return (u64)high << 32 | low;
}

static void add_counts(struct syscall_counts *out, u32 index)
{
    for (u32 i = 0; i < cpu_count; i++) {
        out->count += read_count(&counts[i][index].count);
        out->errors += read_count(&counts[i][index].errors);
        out->cycles += read_count(&counts[i][index].cycles);
    }
}

void syscall_counts(u32 number, struct syscall_counts *out)
{
    *out = (struct syscall_counts){ 0 };
    u32 index = syscall_index(number);
    if (index < UNKNOWN) {
        add_counts(out, index);
        return;
    }
    for (index = 0; index <= UNKNOWN; index++) { // all that have no entry
        if (!entries[index].name || index == UNKNOWN)
            add_counts(out, index);
    }
}

struct trapframe *syscall_frame(void)
{
    return thread_trapframe(current);
}

// The program sees neither: the way to user mode finds out which it is.
s32 syscall_interrupted(u32 number, s32 error)
{
    current->restart_call = number;
    current->restart_error = (u32)-error;
    WRITE_ONCE(current->signal_pending, true);
    return -EINTR;
}
