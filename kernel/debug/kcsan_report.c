// The race detector's reports.
#ifdef KCSAN

#include "kernel/base/cmdline.h"
#include "kernel/base/log.h"
#include "kernel/debug/kcsan_private.h"
#include "kernel/sched/thread.h"

KERNEL_ARG(kcsan, "kcsan=go-on: race reports do not end the machine");

#define KNOWN_MAX 64u // with kcsan=go-on each pair is reported once

bool kcsan_reporting[CPU_MAX];

static u32 report_lock;
static struct {
    u32 mine, other;
} known[KNOWN_MAX]; // report_lock
static u32 known_count;

void kcsan_fill_side(struct kcsan_side *s, u32 addr, u32 size, bool write,
                     bool marked, u32 ebp)
{
    struct cpu *cpu = this_cpu();
    s->addr = addr;
    s->size = size;
    s->cpu = cpu->id;
    s->tid = cpu->thread->tid;
    s->irq_depth = cpu->irq_depth;
    s->write = write;
    s->marked = marked;
    s->depth = backtrace(ebp, s->pcs, KCSAN_STACK_MAX);
}

static void print_side(const struct kcsan_side *s)
{
    console_printf("kcsan: %s%s of %u bytes at %08x by CPU %u, %s %u:\n",
                   s->marked ? "marked " : "", s->write ? "write" : "read",
                   s->size, s->addr, s->cpu,
                   s->irq_depth ? "interrupt of thread" : "thread", s->tid);
    for (u32 i = 0; i < s->depth; i++) {
        u32 offset = 0;
        const char *name = ksym_lookup(s->pcs[i], &offset);
        console_printf("  %08x %s+%#x\n", s->pcs[i], name ? name : "?", offset);
    }
}

static const char *innermost_symbol(const struct kcsan_side *s, u32 *offset)
{
    const char *name = s->depth ? ksym_lookup(s->pcs[0], offset) : NULL;
    return name ? name : "?";
}

static bool is_known(u32 mine, u32 other)
{
    for (u32 i = 0; i < known_count; i++) {
        if ((known[i].mine == mine && known[i].other == other) ||
            (known[i].mine == other && known[i].other == mine))
            return true;
    }
    if (known_count < KNOWN_MAX) {
        known[known_count].mine = mine;
        known[known_count++].other = other;
    }
    return false;
}

static void print_race(const struct kcsan_side *mine,
                       const struct kcsan_side *other)
{
    print_side(mine);
    if (other)
        print_side(other);
    else
        console_printf(
            "kcsan: and a writer that was not seen: the value changed\n");
}

static void report_and_go_on(const struct kcsan_side *mine,
                             const struct kcsan_side *other)
{
    u32 flags = irq_save();
    u32 cpu = this_cpu()->id, offset = 0;
    kcsan_reporting[cpu] = true;
    while (__atomic_exchange_n(&report_lock, 1, __ATOMIC_ACQUIRE))
        cpu_relax();
    if (!is_known(mine->pcs[0], other ? other->pcs[0] : 0)) {
        const char *name = innermost_symbol(mine, &offset);
        console_printf("\nkcsan: data race in %s+%#x\n", name, offset);
        print_race(mine, other);
    }
    __atomic_store_n(&report_lock, 0, __ATOMIC_RELEASE);
    kcsan_reporting[cpu] = false;
    irq_restore(flags);
}

void kcsan_report(const struct kcsan_side *mine, const struct kcsan_side *other)
{
    if (arg_kcsan.present) {
        report_and_go_on(mine, other);
        return;
    }
    irq_disable();
    if (!__atomic_exchange_n(&kcsan_enabled, false, __ATOMIC_ACQ_REL))
        cpu_halt_forever(); // another CPU reports
    smp_stop_others();
    console_printf("\n");
    print_race(mine, other);
    u32 offset = 0;
    const char *name = innermost_symbol(mine, &offset);
    panic("kcsan: data race in %s+%#x", name, offset);
}

#endif
