// statclock: the CPU times that a kernel with tick-based accounting would
// report.
//
// Strobe's own ledger is exact (kernel/time/ledger.h) and needs no tick; this
// is for comparison. Two clocks sample what runs on each CPU and charge it a
// tick. `tick` fires every 10 ms on the grid of the kernel's time, like a
// hardclock that is also the timer of sleeps: it never sees a program that
// sleeps across the ticks. `stat` fires at random times, 127 times a second on
// average, so that no program can run in step with it. It has a timer of its
// own if the machine provides one, else it shares the sleep timer and reports
// that.
//
//     dd if=/dev/statclock bs=64k count=1
//
// The clocks run while /dev/statclock is open, on the CPU that handles the
// timer; that CPU samples the other CPUs, and idle ones stay halted. They take
// a hardware timer and show all users' threads, so only those open it who may
// profile everything.
// `users_lock` guards starting and stopping; counts are written under the lock
// of the run queue and read without it.
#include "arch/trap.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/fs/devfs.h"
#include "kernel/fs/text_file.h"
#include "kernel/mm/heap.h"
#include "kernel/sched/statistics.h"
#include "kernel/sync/mutex.h"
#include "kernel/task/permission.h"
#include "kernel/task/task.h"
#include "kernel/time/timer.h"
#include "lib/set.h"
#include "lib/string.h"

#define STAT_HZ 127u
#define STAT_PERIOD_NS ((u32)NSEC_PER_SEC / STAT_HZ)
#define TICK_NS (10 * NSEC_PER_MSEC)

#define MISC_MAJOR 10
#define MISC_STATCLOCK 240 // 240-254: for local use

enum { TICK, STAT };
enum mode { USER, SYSTEM, IRQ, IDLE, MODES };

static struct mutex users_lock = MUTEX_INIT(users_lock, "statclock");
static u32 users;
static struct timer *own_timer; // NULL: shared
static u32 counts[CPU_MAX][2][MODES];

// --- counting; in interrupts ------------------------------------------------

static enum mode mode_here(const struct thread *t)
{
    assert(this_cpu()->irq_frame);
    if (trap_from_user(this_cpu()->irq_frame))
        return USER;
    return thread_is_idle(t) ? IDLE : SYSTEM;
}

// From the account that is open on that CPU now.
static enum mode mode_there(const struct cpu *c, const struct thread *t)
{
    const struct account *open = READ_ONCE(c->ledger->open);
    if (open == &t->total)
        return ledger_in_user(READ_ONCE(t->user)) ? USER : SYSTEM;
    return open == &c->ledger->idle ? IDLE : IRQ;
}

struct visit {
    u32 clock, cpu;
};

static void count_thread(struct thread *t, void *arg)
{
    const struct visit *v = arg;
    const struct cpu *c = cpus[v->cpu];
    enum mode mode = c == this_cpu() ? mode_here(t) : mode_there(c, t);
    ADD_ONCE(counts[v->cpu][v->clock][mode], 1);
    if (mode == USER || mode == SYSTEM)
        ADD_ONCE(t->sampled[v->clock], 1);
}

static void count(u32 clock)
{
    assert_checked(!irqs_enabled() && clock <= STAT);
    for (u32 i = 0; i < cpu_count; i++)
        sched_visit_running(i, count_thread, &(struct visit){ clock, i });
}

// Between half a period and one and a half periods.
static u32 next_distance(void)
{
    u32 random;
    random_bytes(&random, sizeof(random));
    return STAT_PERIOD_NS / 2 + random % STAT_PERIOD_NS;
}

static void own_stat(void *arg UNUSED, const struct trapframe *tf UNUSED)
{
    if (this_cpu()->id) // a per-CPU timer: CPU 0's is used
        return;
    count(STAT);
    (void)!timer_again(own_timer, next_distance()); // fails if it was stopped
}

static void shared_stat(struct callout *c)
{
    count(STAT);
    callout_set(c, clock_now_ns() + next_distance());
}

static void tick(struct callout *c)
{
    count(TICK);
    u64 late = clock_now_ns() - callout_deadline(c);
    callout_set(c, callout_deadline(c) + (late / TICK_NS + 1) * TICK_NS);
}

static struct callout tick_callout, stat_callout;

// --- starting and stopping --------------------------------------------------

static bool start_own(void)
{
    u64 min = STAT_PERIOD_NS / 2, max = STAT_PERIOD_NS * 3 / 2;
    if (timer_reserve(TIMER_ONESHOT, min, max, "statclock", &own_timer))
        return false;
    if (!timer_start(own_timer, TIMER_ONESHOT, min, own_stat, NULL))
        return true;
    timer_release(own_timer);
    return false;
}

static void start(void)
{
    mutex_assert_held(&users_lock);
    assert(users == 1);
    bool own = start_own();
    if (!own) {
        own_timer = NULL;
        callout_init(&stat_callout, shared_stat, CALLOUT_INTERRUPT);
        callout_set(&stat_callout, clock_now_ns() + STAT_PERIOD_NS);
    }
    log_printf("statclock: %s\n", own ? own_timer->name
                                      : "no timer is free, shares that of "
                                        "the clock's events");
    callout_init(&tick_callout, tick, CALLOUT_INTERRUPT);
    callout_set(&tick_callout, (clock_now_ns() / TICK_NS + 1) * TICK_NS);
}

static void stop(void)
{
    mutex_assert_held(&users_lock);
    assert(!users);
    callout_drain(&tick_callout);
    if (own_timer)
        timer_release(own_timer);
    else
        callout_drain(&stat_callout);
}

// --- /dev/statclock ---------------------------------------------------------

struct line {
    u32 tid, sampled[2];
    char name[sizeof(((struct thread *)0)->name)];
};

struct lines {
    struct line *line;
    u32 count, room;
};

static void note_threads(struct task *task, void *arg)
{
    spin_assert_held(&tasks_lock);
    struct lines *l = arg;
    assert(l->count <= l->room);
    const struct thread *t;
    list_for_each(t, &task->threads, task_node) {
        struct line *line = &l->line[l->count];
        *line = (struct line){ .tid = t->tid };
        for (u32 clock = TICK; clock <= STAT; clock++)
            line->sampled[clock] = READ_ONCE(t->sampled[clock]);
        if ((!line->sampled[TICK] && !line->sampled[STAT]) ||
            l->count == l->room)
            continue;
        spin_lock(&task->lock); // exec renames it
        memcpy(line->name, t->name, sizeof(line->name));
        spin_unlock(&task->lock);
        l->count++;
    }
}

static int put_threads(struct chain *text)
{
    struct lines l = { NULL, 0, thread_count() + 16 };
    l.line = kmalloc((l.room + 1) * sizeof(*l.line));
    if (!l.line)
        return -ENOMEM;
    u32 flags = spin_lock_irq(&tasks_lock);
    task_for_each_locked(note_threads, &l);
    spin_unlock_irq(&tasks_lock, flags);
    for (u32 i = 0; i < l.count; i++) {
        const struct line *line = &l.line[i];
        chain_printf(text, "thread %u tick %u stat %u %s\n", line->tid,
                     line->sampled[TICK], line->sampled[STAT], line->name);
    }
    kfree(l.line);
    return 0;
}

static void put_cpu(struct chain *text, u32 cpu)
{
    assert(cpu < cpu_count);
    static const char *const names[] = { "tick", "stat" };
    for (u32 clock = TICK; clock <= STAT; clock++) {
        const u32 *n = counts[cpu][clock];
        chain_printf(text, "cpu %u %s user %u system %u irq %u idle %u\n", cpu,
                     names[clock], READ_ONCE(n[USER]), READ_ONCE(n[SYSTEM]),
                     READ_ONCE(n[IRQ]), READ_ONCE(n[IDLE]));
    }
}

static int make(struct chain *text, void *arg UNUSED)
{
    const char *by = own_timer ? own_timer->name : "the clock's events";
    chain_printf(text, "tick 100 Hz on a grid, by the clock's events\n");
    chain_printf(text, "stat %u Hz at random, by %s\n", STAT_HZ, by);
    for (u32 i = 0; i < cpu_count; i++)
        put_cpu(text, i);
    return put_threads(text);
}

static int open(struct file *f)
{
    if (!may_profile_everything())
        return -EACCES;
    f->data = text_file_create();
    if (!f->data)
        return -ENOMEM;
    mutex_lock(&users_lock);
    if (!users++)
        start();
    mutex_unlock(&users_lock);
    return 0;
}

static int read(struct file *f, struct io *io, u64 *pos)
{
    return text_file_read(f->data, io, pos, make, NULL);
}

static void release(struct file *f)
{
    text_file_free(f->data);
    mutex_lock(&users_lock);
    assert(users);
    if (!--users)
        stop();
    mutex_unlock(&users_lock);
}

static const struct file_ops statclock_ops = {
    .read = read,
    .release = release,
    .seekable = true,
};

static const struct char_device statclock_device = {
    .name = "statclock",
    .rdev = DEVICE_NUMBER(MISC_MAJOR, MISC_STATCLOCK),
    .mode = 0444,
    .ops = &statclock_ops,
    .open = open,
};
CHAR_DEVICE(statclock_device);
