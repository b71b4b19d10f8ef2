// system.exceptions: exceptions and interrupts, by vector and CPU.

#include "arch/irq.h"
#include "arch/trap.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/monitor/sysinfo.h"
#include "kernel/monitor/sysinfo_values.h"
#include "kernel/sync/lockdep.h"
#include "kernel/time/ledger.h"
#include "lib/string.h"

#define EXCEPTIONS 32u // the vectors below are the CPU's own

// Exceptions by vector (SDM vol. 3, table 6-1). `hot`: expected in normal
// operation of programs and the kernel.
static const struct {
    const char *name;
    bool hot;
} exceptions[EXCEPTIONS] = {
    { "divide error", false },
    { "debug exception", false },
    { "NMI", false },
    { "breakpoint", false },
    { "overflow", false },
    { "bound range exceeded", false },
    { "invalid opcode", false },
    { "no FPU", true },
    { "double fault", false },
    { "coprocessor segment overrun", false },
    { "invalid TSS", false },
    { "segment not present", false },
    { "stack fault", false },
    { "general protection fault", false },
    { "page fault", true },
    { NULL, false },
    { "FPU error", false },
    { "alignment check", false },
    { "machine check", false },
    { "SIMD error", false },
    { "virtualization exception", false },
    { "control protection exception", false },
};

static const char *description(u32 vector)
{
    if (vector >= EXCEPTIONS)
        return irq_name(vector);
    return exceptions[vector].name ? exceptions[vector].name : "reserved";
}

static bool is_hot(u32 vector)
{
    return vector < EXCEPTIONS ? exceptions[vector].hot
                               : irq_name(vector)[0] != '\0';
}

static u64 cycles_on(u32 cpu, u32 vector)
{
    assert_checked(cpu < cpu_count && vector < VECTORS);
    // NMIs have an account of their own, as interrupts do.
    if (vector < EXCEPTIONS && vector != VECTOR_NMI)
        return ledger_exception_cycles(cpu, vector);
    return ledger_read(cpus[cpu], &cpus[cpu]->ledger->vectors[vector]);
}

static u64 count_on_all(u32 vector)
{
    u64 n = 0;
    for (u32 i = 0; i < cpu_count; i++)
        n += irq_count(i, vector);
    return n;
}

void sysinfo_fill_exception(u32 vector, u32 cpu, struct sysinfo_exception *out)
{
    assert_may_sleep();
    assert(vector < VECTORS && (cpu == SYSINFO_ALL || cpu < cpu_count));
    u32 first = cpu == SYSINFO_ALL ? 0 : cpu;
    u32 end = cpu == SYSINFO_ALL ? cpu_count : cpu + 1;

    memset(out, 0, sizeof(*out));
    out->vector = vector;
    out->cpu = cpu;
    out->hot = is_hot(vector);
    for (u32 i = first; i < end; i++) {
        out->count += irq_count(i, vector);
        out->cycles += cycles_on(i, vector);
    }
    strlcpy(out->controller, irq_controller(vector), sizeof(out->controller));
    strlcpy(out->description, description(vector), sizeof(out->description));
}

// In use, or taken although not in use.
static bool is_shown(u32 vector)
{
    return is_hot(vector) || count_on_all(vector);
}

static int make_exceptions(struct chain *out, u32 number UNUSED)
{
    for (u32 v = 0; v < VECTORS; v++) {
        struct sysinfo_exception *record = is_shown(v) ? chain_add(out) : NULL;
        if (record)
            sysinfo_fill_exception(v, SYSINFO_ALL, record);
    }
    return 0;
}

static int make_exception(struct chain *out, u32 vector)
{
    if (vector >= VECTORS)
        return -ENOENT;
    for (u32 i = 0; i < cpu_count; i++) {
        struct sysinfo_exception *record = chain_add(out);
        if (record)
            sysinfo_fill_exception(vector, i, record);
    }
    return 0;
}

static int list_exceptions(struct chain *numbers)
{
    for (u32 v = 0; v < VECTORS; v++) {
        u32 *number = is_shown(v) ? chain_add(numbers) : NULL;
        if (number)
            *number = v;
    }
    return 0;
}

#define EXCEPTION SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_EXCEPTION)

SYSINFO_NODE(exceptions, .path = "system.exceptions", .type = EXCEPTION,
             .make = make_exceptions);
SYSINFO_NODE(exception, .path = "system.exceptions.#", .type = EXCEPTION,
             .make = make_exception, .list = list_exceptions);
