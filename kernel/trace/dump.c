// The last events of a flight as text: in the report of a panic, and when a CPU
// hangs. The whole of it: gdb's strobe-trace.
//
// Takes no lock, and reads the rings while other CPUs may write: a page that is
// overwritten meanwhile ends what is shown of its CPU.
#include "arch/clock.h"
#include "arch/cpu.h"
#include "arch/irq.h"
#include "arch/mmu.h"
#include "kernel/base/log.h"
#include "kernel/trace/emit.h"
#include "kernel/trace/point.h"
#include "lib/format.h"
#include "lib/string.h"

#define SHOWN 8u        // events of each CPU
#define FIELDS_MOST 32u // bytes of an event's fields that are shown
#define DECIMAL_BELOW 0x10000u

struct event {
    u64 time;
    u32 type, thread; // the one that ran when it happened
    u8 fields[FIELDS_MOST];
};

// A CPU's ring, from its older pages on; the last events are at `count` - 1 and
// before, modulo SHOWN.
static struct {
    u64 time; // of the last TIME or LOST record
    u32 thread, count;
    struct event last[SHOWN];
} seen;

static const struct layout {
    const char *name, *fields; // U8(a) U32(b) ..., as in points.def
} layouts[1u << TRACE_TYPE_BITS] = {
#define POINT(group, name, fields, when) \
    [TRACE_##group##_##name] = { #group "/" #name, #fields },
#include <strobe/points.def>
#undef POINT
    [TRACE_R_LOST] = { "LOST", "U32(count)" },
    [TRACE_R_ENTRY] = { "entry", "U32(function) U32(mark)" },
    [TRACE_R_EXIT] = { "exit", "U32(function) U64(cycles)" },
    [TRACE_R_CALL] = { "call", "U32(function) U32(caller)" },
};

// --- reading ----------------------------------------------------------------

static void take_time(const struct trace_time *t)
{
    seen.time = (u64)t->time[1] << 32 | t->time[0];
    seen.thread = t->thread;
}

static void take_event(u32 head, const u8 *fields, u32 bytes)
{
    struct event *e = &seen.last[seen.count++ % SHOWN];
    u64 epoch = seen.time >> TRACE_TIME_BITS << TRACE_TIME_BITS;
    *e = (struct event){ .time = epoch | TRACE_HEAD_TIME(head),
                         .type = TRACE_HEAD_TYPE(head),
                         .thread = seen.thread };
    memcpy(e->fields, fields, MIN(bytes, FIELDS_MOST));
    if (e->type == TRACE_sched_switch) {
        const struct trace_sched_switch *s = (const void *)fields;
        e->thread = s->prev;
        seen.thread = s->next;
    }
}

static void take_record(const u8 *record, u32 head, u32 bytes)
{
    u32 type = TRACE_HEAD_TYPE(head);
    bool timed = type == TRACE_R_TIME || type == TRACE_R_LOST;
    u32 fields = timed ? sizeof(struct trace_time) : sizeof(head);
    if (bytes < fields) // overwritten meanwhile
        return;
    if (timed)
        take_time((const struct trace_time *)record);
    if (layouts[type].name)
        take_event(head, record + fields, bytes - fields);
}

static void take_page(const u8 *page)
{
    for (u32 at = 0, bytes; at < TRACE_PAGE; at += bytes) {
        u32 head = READ_ONCE(*(const u32 *)(page + at));
        bytes = TRACE_HEAD_WORDS(head) * 4;
        if (!bytes || bytes > TRACE_PAGE - at)
            return;
        take_record(page + at, head, bytes);
    }
}

// Two pages, the last of which may be nearly empty.
static void take_ring(const struct trace_ring *r)
{
    u32 end = READ_ONCE(r->shared->opened);
    u32 there = MIN(end - READ_ONCE(r->shared->freed), 2u);
    memset(&seen, 0, sizeof(seen));
    for (u32 n = end - there; n != end; n++)
        take_page(r->bytes + (n & (r->pages - 1)) * TRACE_PAGE);
}

// --- text -------------------------------------------------------------------

// The value of a field of `bits` bits, as text.
static void describe(char *text, size_t size, const u8 *bytes, u32 bits)
{
    u64 value = 0;
    u32 offset;
    memcpy(&value, bytes, bits / 8);
    u32 low = (u32)value;
    const char *name =
        bits == 32 ? ksym_lookup(moved_address(low), &offset) : NULL;
    if (name)
        format(text, size, "%s+%#x", name, offset);
    else if (bits < 64 && low >= DECIMAL_BELOW)
        format(text, size, "%#x", low);
    else
        format(text, size, "%llu", value);
}

static void print_fields(const char *next, const u8 *bytes)
{
    char value[64];
    while (*next == 'U') {
        u32 bits = 0, length = 0;
        for (next++; *next != '('; next++)
            bits = bits * 10 + (u32)(*next - '0');
        const char *name = ++next;
        while (name[length] != ')')
            length++;
        describe(value, sizeof(value), bytes, bits);
        console_printf(" %.*s=%s", (int)length, name, value);
        bytes += bits / 8;
        next += length + 1;
        next += *next == ' ';
    }
}

// Times are those of the kernel's log.
static void print_events(void)
{
    u64 now = rdtsc(), now_ns = clock_now_ns();
    u32 count = MIN(seen.count, SHOWN);
    for (u32 n = seen.count - count; n != seen.count; n++) {
        const struct event *e = &seen.last[n % SHOWN];
        u64 at = now_ns - clock_tsc_to_ns(now - e->time);
        console_printf("[%5u.%09u] thread %u: %s", (u32)(at / NSEC_PER_SEC),
                       (u32)(at % NSEC_PER_SEC), e->thread,
                       layouts[e->type].name);
        print_fields(layouts[e->type].fields, e->fields);
        console_printf("\n");
    }
}

static const struct trace_target *newest_flight(void)
{
    const struct trace_target *t = trace_targets();
    while (t && !t->cpu[0].ring.flight)
        t = READ_ONCE(t->next);
    return t;
}

static void print_rings(const struct trace_target *t)
{
    for (u32 i = 0; i < cpu_count; i++) {
        console_printf("the last events on CPU %u, of a flight:\n", i);
        take_ring(&t->cpu[i].ring);
        print_events();
    }
}

void trace_print_last_events(void)
{
    static u32 busy; // `seen` is
    if (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
        return;
    u32 flags = irq_save(); // the trace is not freed meanwhile
    const struct trace_target *t = newest_flight();
    if (t)
        print_rings(t);
    irq_restore(flags);
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}
