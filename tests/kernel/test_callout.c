// Callouts: when, where and in which order handlers run, and that stop and
// drain keep their promises under concurrent operations.

#include "tests/kernel/test.h"

#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/task/task.h"
#include "kernel/time/callout.h"
#include "lib/string.h"

struct probe {
    struct callout callout;
    u32 fired;
    u32 turn; // position in the order of all handlers
    u64 at;
    bool in_interrupt, silent, may_end, through;
};

static u32 turns; // used only where all handlers run on one CPU

static struct probe *probe_of(struct callout *c)
{
    return container_of(c, struct probe, callout);
}

static void note(struct callout *c)
{
    struct probe *p = probe_of(c);
    p->at = clock_now_ns();
    p->turn = turns++;
    u32 flags = irq_save();
    p->in_interrupt = this_cpu()->irq_depth > 0;
    irq_restore(flags);
    expect(!READ_ONCE(p->silent));
    WRITE_ONCE(p->fired, p->fired + 1);
}

static void sleep_for(u64 ns)
{
    thread_sleep_until(clock_now_ns() + ns, WAIT_UNINTERRUPTIBLE);
}

static void wait_until_fired(struct probe *p)
{
    while (!READ_ONCE(p->fired))
        sleep_for(100 * NSEC_PER_USEC);
}

// --- order ------------------------------------------------------------------

static void expect_order(struct probe *p, u32 count)
{
    for (u32 i = 0; i < count; i++) {
        wait_until_fired(&p[i]);
        expect(!callout_drain(&p[i].callout));
        expect(p[i].fired == 1);
        expect(p[i].at >= callout_deadline(&p[i].callout));
    }
    u32 wrong = 0;
    for (u32 i = 0; i < count; i++) {
        for (u32 j = 0; j < i; j++) {
            u64 a = callout_deadline(&p[j].callout);
            u64 b = callout_deadline(&p[i].callout);
            wrong += (a <= b) != (p[j].turn < p[i].turn);
        }
    }
    expect(!wrong);
}

// Callouts with equal deadlines fire in the order in which they were set. All
// are set on one CPU with interrupts off, before the first fires.
static void fire_in_order(u32 where)
{
    static struct probe p[64];
    u32 flags = irq_save();
    u64 base = clock_now_ns() + NSEC_PER_MSEC;
    for (u32 i = 0; i < ARRAY_SIZE(p); i++) {
        p[i] = (struct probe){ .fired = 0 };
        callout_init(&p[i].callout, note, where);
        u64 spread = i % 2 ? 16 : 5 * NSEC_PER_MSEC;
        callout_set(&p[i].callout, base + test_random() % spread);
    }
    irq_restore(flags);
    expect_order(p, ARRAY_SIZE(p));
}

KERNEL_TEST(callouts_fire_in_order)
{
    fire_in_order(CALLOUT_INTERRUPT);
}

KERNEL_TEST(callouts_of_threads_fire_in_order)
{
    fire_in_order(CALLOUT_THREAD);
}

// A callout set later to an earlier deadline is not delayed by the first one.
KERNEL_TEST(callout_set_to_an_earlier_time)
{
    static struct probe far, near;
    far = near = (struct probe){ .fired = 0 };
    callout_init(&far.callout, note, CALLOUT_INTERRUPT);
    callout_init(&near.callout, note, CALLOUT_INTERRUPT);
    callout_set(&far.callout, clock_now_ns() + 100 * NSEC_PER_SEC);
    callout_set(&near.callout, clock_now_ns() + 50 * NSEC_PER_SEC);
    callout_set(&near.callout, clock_now_ns() + 200 * NSEC_PER_USEC);
    wait_until_fired(&near);
    expect(!far.fired);
    callout_set(&far.callout, clock_now_ns());
    wait_until_fired(&far);
    callout_drain(&near.callout);
    callout_drain(&far.callout);
}

// --- stop and drain ---------------------------------------------------------

static void drain_keeps_silent(u32 where)
{
    static struct probe p;
    for (u32 i = 0; i < 200; i++) {
        p = (struct probe){ .fired = 0 };
        callout_init(&p.callout, note, where);
        callout_set(&p.callout, clock_now_ns() + test_random() % 20000);
        for (u32 spin = test_random() % 200; spin; spin--)
            cpu_relax();
        bool pending = callout_drain(&p.callout);
        expect(p.fired == !pending);
        expect(!callout_pending(&p.callout));
    }
}

KERNEL_TEST(drained_callouts_stay_silent)
{
    drain_keeps_silent(CALLOUT_INTERRUPT);
    drain_keeps_silent(CALLOUT_THREAD);
}

static void set_again(struct callout *c)
{
    struct probe *p = probe_of(c);
    expect(!READ_ONCE(p->silent));
    WRITE_ONCE(p->fired, p->fired + 1);
    callout_set(c, clock_now_ns() + 10 * NSEC_PER_USEC);
}

KERNEL_TEST(drain_beats_a_handler_that_sets_itself)
{
    static struct probe p;
    for (u32 where = CALLOUT_INTERRUPT; where <= CALLOUT_THREAD; where++) {
        p = (struct probe){ .fired = 0 };
        callout_init(&p.callout, set_again, where);
        callout_set(&p.callout, clock_now_ns());
        wait_until_fired(&p);
        callout_drain(&p.callout);
        WRITE_ONCE(p.silent, true);
        sleep_for(NSEC_PER_MSEC);
        expect(!callout_pending(&p.callout));
    }
}

static void sleep_and_note(struct callout *c)
{
    struct probe *p = probe_of(c);
    expect(irqs_enabled() && !this_cpu()->irq_depth);
    WRITE_ONCE(p->fired, 1);
    while (!READ_ONCE(p->may_end))
        sleep_for(100 * NSEC_PER_USEC);
    sleep_for(2 * NSEC_PER_MSEC);
    WRITE_ONCE(p->through, true);
}

// A callout that waits for the callout thread can still be stopped.
KERNEL_TEST(callouts_of_threads_may_sleep)
{
    static struct probe sleeper, next;
    sleeper = next = (struct probe){ .fired = 0 };
    callout_init(&sleeper.callout, sleep_and_note, CALLOUT_THREAD);
    callout_init(&next.callout, note, CALLOUT_THREAD);
    struct cpu_set affinity = current->affinity;
    run_on(current, 0);
    callout_set(&sleeper.callout, 0);
    callout_set(&next.callout, 1);
    wait_until_fired(&sleeper);
    expect(!callout_stop(&sleeper.callout)); // it runs
    expect(callout_pending(&next.callout));
    expect(callout_stop(&next.callout));
    WRITE_ONCE(sleeper.may_end, true);
    expect(!callout_drain(&sleeper.callout));
    expect(READ_ONCE(sleeper.through));
    thread_set_affinity(current, &affinity);
    sleep_for(NSEC_PER_MSEC);
    expect(!next.fired);
}

// --- everything at once -----------------------------------------------------

#define STORM_THREADS 8
#define STORM_CALLOUTS 6
#define STORM_ROUNDS 3000

// Each thread has its own callouts, whose calls are counted exactly; all
// threads set, stop and drain the shared ones.
struct storm {
    struct probe own[STORM_CALLOUTS];
    u32 set, stopped;
};
static struct storm storms[STORM_THREADS];
static struct probe shared[STORM_CALLOUTS];
static struct waitq storm_over = WAITQ_INIT(storm_over, "test");
static u32 storms_over;

static void count(struct callout *c)
{
    struct probe *p = probe_of(c);
    expect(!READ_ONCE(p->silent));
    __atomic_fetch_add(&p->fired, 1, __ATOMIC_RELAXED);
}

static void count_and_set(struct callout *c)
{
    count(c);
    if (test_random() % 2)
        callout_set(c, clock_now_ns() + test_random() % 30000);
}

static void use_own(struct storm *s, struct probe *p)
{
    switch (test_random() % 3) {
    case 0:
        s->stopped += callout_stop(&p->callout);
        break;
    case 1:
        s->stopped += callout_drain(&p->callout);
        WRITE_ONCE(p->silent, true);
        WRITE_ONCE(p->silent, false);
        break;
    default: // stops first, to count a pending one that is replaced
        s->stopped += callout_stop(&p->callout);
        callout_set(&p->callout, clock_now_ns() + test_random() % 30000);
        s->set++;
    }
}

static void use_shared(struct callout *c)
{
    switch (test_random() % 4) {
    case 0:
        callout_stop(c);
        break;
    case 1:
        callout_drain(c);
        break;
    default:
        callout_set(c, clock_now_ns() + test_random() % 30000);
    }
}

static void storm_thread(void *arg)
{
    struct storm *s = arg;
    for (u32 i = 0; i < STORM_ROUNDS; i++) {
        u32 n = test_random() % STORM_CALLOUTS;
        if (i % 64 == 0)
            run_on(current, test_random() % cpu_count);
        if (i % 16 == 0)
            sleep_for(test_random() % 20000);
        use_own(s, &s->own[n]);
        use_shared(&shared[n].callout);
    }
    __atomic_add_fetch(&storms_over, 1, __ATOMIC_SEQ_CST);
    waitq_wake_all(&storm_over);
}

KERNEL_TEST(callouts_survive_a_storm)
{
    storms_over = 0;
    for (u32 i = 0; i < STORM_CALLOUTS; i++) {
        shared[i] = (struct probe){ .fired = 0 };
        callout_init(&shared[i].callout, count_and_set, i % 2);
    }
    for (u32 i = 0; i < STORM_THREADS; i++) {
        storms[i] = (struct storm){ .set = 0 };
        for (u32 n = 0; n < STORM_CALLOUTS; n++)
            callout_init(&storms[i].own[n].callout, count, n % 2);
        expect(!kthread_create("test", storm_thread, &storms[i], NULL));
    }
    wait_event(&storm_over, READ_ONCE(storms_over) == STORM_THREADS,
               WAIT_UNINTERRUPTIBLE, WAIT_FOREVER);
    for (u32 i = 0; i < STORM_CALLOUTS; i++) {
        callout_drain(&shared[i].callout);
        WRITE_ONCE(shared[i].silent, true);
    }
    for (u32 i = 0; i < STORM_THREADS; i++) {
        struct storm *s = &storms[i];
        u32 fired = 0;
        for (u32 n = 0; n < STORM_CALLOUTS; n++) {
            s->stopped += callout_drain(&s->own[n].callout);
            WRITE_ONCE(s->own[n].silent, true);
            fired += READ_ONCE(s->own[n].fired);
        }
        expect(s->set == fired + s->stopped);
    }
    sleep_for(NSEC_PER_MSEC);
}

// --- a CPU that does not run ------------------------------------------------

static struct {
    bool deaf, go_on; // marked accesses
    u32 done;
} paused;

// Has a callout that is overdue, and takes no interrupt, as a CPU does that its
// host does not run.
static void be_deaf(void *arg)
{
    struct probe *p = arg;
    expect(!run_on(current, 1));
    u32 flags = irq_save();
    callout_set(&p->callout, clock_now_ns());
    __atomic_store_n(&paused.deaf, true, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&paused.go_on, __ATOMIC_ACQUIRE))
        test_relax();
    irq_restore(flags);
    __atomic_store_n(&paused.done, 1, __ATOMIC_RELEASE);
}

// Its timer is not at fault.
KERNEL_TEST(callouts_of_a_paused_cpu_are_no_failure)
{
    static struct probe p;
    if (cpu_count == 1) {
        test_skip("one CPU alone");
        return;
    }
    memset(&paused, 0, sizeof(paused));
    p = (struct probe){ 0 };
    callout_init(&p.callout, note, CALLOUT_INTERRUPT);
    struct cpu_set affinity = current->affinity;
    expect(!run_on(current, 0));
    expect(!kthread_create("test", be_deaf, &p, NULL));
    while (!__atomic_load_n(&paused.deaf, __ATOMIC_ACQUIRE))
        sleep_for(100 * NSEC_PER_USEC);
    sleep_for(CALLOUTS_LOST_NS + 100 * NSEC_PER_MSEC);
    u32 flags = irq_save();
    for (u32 i = 0; i < 2 * CALLOUTS_LOSSES_MAX; i++)
        expect(callouts_repeat(cpus[1]));
    irq_restore(flags);
    expect(!callouts_timer_failed());
    __atomic_store_n(&paused.go_on, true, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&paused.done, __ATOMIC_ACQUIRE))
        sleep_for(100 * NSEC_PER_USEC);
    wait_until_fired(&p);
    expect(!callout_drain(&p.callout));
    callouts_timer_replaced(); // no loss is counted any more
    thread_set_affinity(current, &affinity);
}

// --- cost -------------------------------------------------------------------

#define CROWD 100000u
#define SAMPLES 64u

static struct probe samples[SAMPLES];

// Under `tools/vm --icount 1` the TSC counts two an instruction.
static u32 instructions_each(u64 cycles)
{
    return (u32)(cycles / 2 / SAMPLES);
}

// One CPU, interrupts off. The last of the samples is 100 us away.
static u64 set_samples(void)
{
    u64 now = clock_now_ns(), began = rdtsc();
    for (u32 i = 0; i < SAMPLES; i++)
        callout_set(&samples[i].callout, now + 1000 * NSEC_PER_USEC + 1500 * i);
    return rdtsc() - began;
}

// The number of calendar pages that an event passes depends on the bits of its
// time and of the current time. So each measurement begins at the beginning of
// a page of 2^25 ns (34 ms).
static void wait_for_a_page(void)
{
    u64 page = ALIGN_UP(clock_now_ns(), 1ull << 25);
    while (clock_now_ns() < page)
        cpu_relax();
}

static void measure(u32 pending)
{
    wait_for_a_page();
    u32 flags = irq_save();
    u64 set = set_samples(), began = rdtsc();
    for (u32 i = 0; i < SAMPLES; i++)
        expect(callout_stop(&samples[i].callout));
    u64 stop = rdtsc() - began;
    set_samples();
    u64 until = clock_now_ns() + 1100 * NSEC_PER_USEC;
    while (clock_now_ns() < until)
        cpu_relax();
    u64 now = clock_now_ns();
    began = rdtsc();
    callouts_interrupt(now);
    u64 fire = rdtsc() - began;
    irq_restore(flags);
    log_printf("callouts: %u pending: set %u, stop %u, fire %u instructions\n",
               pending, instructions_each(set), instructions_each(stop),
               instructions_each(fire));
    for (u32 i = 0; i < SAMPLES; i++)
        expect(samples[i].fired == 1);
}

static void nothing(struct callout *c UNUSED)
{
}

// From the interrupted instruction to the next one: the longest pause of a loop
// that a callout interrupts.
static u32 instructions_of_interrupt(void)
{
    static struct callout c;
    u64 longest = 0;
    callout_init(&c, nothing, CALLOUT_INTERRUPT);
    callout_set(&c, clock_now_ns() + 50 * NSEC_PER_USEC);
    u64 last = rdtsc();
    bool pending;
    do {
        pending = callout_pending(&c);
        u64 now = rdtsc();
        longest = MAX(longest, now - last);
        last = now;
    } while (pending);
    return (u32)(longest / 2);
}

// The cost with few and with many callouts pending, due in 100 s to a day.
// (tests/system/test_time.py compares.)
KERNEL_TEST(callout_cost)
{
    static const u32 crowds[] = { 10, 1000, CROWD };
    u32 pages = DIV_ROUND_UP(CROWD * (u32)sizeof(struct callout), PAGE_SIZE);
    struct callout *crowd = vmap_alloc(pages, PROT_R | PROT_W, FRAME_BUFFER);
    if (!crowd) // a small machine
        return;
    struct cpu_set affinity = current->affinity;
    u32 set = 0;
    run_on(current, 0);
    u64 now = clock_now_ns();
    for (u32 i = 0; i < ARRAY_SIZE(crowds); i++) {
        for (; set < crowds[i]; set++) {
            callout_init(&crowd[set], note, CALLOUT_INTERRUPT);
            u64 away = (u64)test_random() * 20000; // up to a day
            callout_set(&crowd[set], now + 100 * NSEC_PER_SEC + away);
        }
        for (u32 n = 0; n < SAMPLES; n++) {
            samples[n] = (struct probe){ .fired = 0 };
            callout_init(&samples[n].callout, note, CALLOUT_INTERRUPT);
        }
        measure(set);
    }
    log_printf("callouts: an interrupt: %u instructions\n",
               instructions_of_interrupt());
    while (set)
        expect(callout_stop(&crowd[--set]));
    thread_set_affinity(current, &affinity);
    vmap_free(crowd, pages);
}
