// Samples of a section of code that runs with interrupts off for a known share
// of the time, by each sample source. The shares are printed; under --icount
// they are exact, and tests/system/test_truth.py checks them.

#include "tests/kernel/test.h"

#include "arch/cpu.h"
#include "kernel/base/errno.h"
#include "kernel/profile/session_private.h"
#include "kernel/task/task.h"
#include "lib/string.h"
#include "tests/kernel/sample_helpers.h"

#define RATE_HZ 8000
#define SAMPLES 4000 // on one CPU: the periods of ticks and turns beat
#define TURNS 15000  // about half a sampling period
#define OPEN_PARTS 3

static struct waitq readers = WAITQ_INIT(readers, "test");

static ALWAYS_INLINE void turn(u32 n)
{
    __asm__ volatile("1: decl %0\n\t"
                     "jnz 1b"
                     : "+r"(n)
                     :
                     : "cc");
}

static NOINLINE void irqs_off_section(void)
{
    turn(TURNS);
}

static NOINLINE void irqs_on_section(void)
{
    turn(OPEN_PARTS * TURNS);
}

// Pending interrupts are taken one instruction after the one that enables
// interrupts (STI): after the call.
static NOINLINE void irqs_off_and_on(void)
{
    irq_disable();
    irqs_off_section();
    irq_enable();
    irqs_on_section();
    barrier();
}

struct seen {
    u32 off, on, behind; // samples in each section, and after STI
    u32 marked;          // of `off`: those marked as taken with interrupts off
};

static void count(struct seen *seen, const struct sprofile_sample *s)
{
    u32 offset;
    const char *name = ksym_lookup(moved_address(s->pc[0]), &offset);
    if (!name)
        return;
    if (!strcmp(name, "irqs_off_section")) {
        seen->off++;
        seen->marked += !!(s->head.flags & SPROFILE_F_IRQS_OFF);
    } else if (!strcmp(name, "irqs_on_section") && offset > 0) {
        seen->on++;
    } else if (!strcmp(name, "irqs_on_section") ||
               !strcmp(name, "irqs_off_and_on")) {
        seen->behind++;
    }
}

static void take(struct seen *seen, struct ring *r)
{
    while (ring_used(r)) {
        struct {
            struct sprofile_sample sample;
            u32 pc;
        } record;
        ring_peek(r, 0, &record.sample.head, sizeof(record.sample.head));
        if (record.sample.head.type == SPROFILE_R_SAMPLE) {
            ring_peek(r, 0, &record, sizeof(record));
            count(seen, &record.sample);
        }
        ring_consume(r, record.sample.head.size);
    }
}

// False if the machine lacks the source; the test is then skipped.
static bool look(const char *source, struct seen *seen)
{
    if (source_lacks(source))
        return false;
    struct sprofile_options o = { .size = sizeof(o), .rate_hz = RATE_HZ };
    struct stream *s;
    strlcpy(o.source, source, sizeof(o.source));
    *seen = (struct seen){ 0 };
    if (!expect_begun(session_begin(&kernel_task, &o, &readers, &s)))
        return false;
    while (seen->off + seen->on + seen->behind < SAMPLES / cpu_count) {
        irqs_off_and_on();
        for (u32 i = 0; i < cpu_count; i++)
            take(seen, s->rings.of_cpu[i]);
    }
    session_end(s);
    log_printf("irqs off: %s: %u off, %u on, %u behind enabling\n", source,
               seen->off, seen->on, seen->behind);
    return true;
}

KERNEL_TEST(profile_sees_code_with_interrupts_off)
{
    struct seen seen;
    if (!look("nmi-hpet", &seen))
        return;
    expect(seen.off > 0);
    expect(seen.marked == seen.off);
}

KERNEL_TEST(profile_by_interrupts_piles_up_behind_enabling_them)
{
    struct seen seen;
    if (look("lapic", &seen))
        expect(seen.off == 0);
}
