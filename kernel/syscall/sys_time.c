// System calls on clocks and sleeping.

#include "kernel/sched/task.h"
#include "kernel/syscall/syscall.h"
#include "kernel/syscall/user_types.h"
#include "kernel/time/wallclock.h"

#define CLOCK_REALTIME 0
#define CLOCK_MONOTONIC 1
#define CLOCK_PROCESS_CPUTIME_ID 2
#define CLOCK_THREAD_CPUTIME_ID 3
#define CLOCK_MONOTONIC_RAW 4
#define CLOCK_REALTIME_COARSE 5
#define CLOCK_MONOTONIC_COARSE 6
#define CLOCK_BOOTTIME 7
#define TIMER_ABSTIME 1u

static u64 task_cpu_ns(void)
{
    u64 user, kernel;
    task_times(current_task(), &user, &kernel);
    return clock_tsc_to_ns(user + kernel);
}

static u64 thread_cpu_ns(void)
{
    u64 user, kernel;
    thread_times(current, &user, &kernel);
    return clock_tsc_to_ns(user + kernel);
}

static int clock_read(u32 clock, u64 *ns)
{
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
        *ns = (u64)wallclock_now_ns();
        return 0;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
        *ns = clock_now_ns();
        return 0;
    case CLOCK_PROCESS_CPUTIME_ID:
        *ns = task_cpu_ns();
        return 0;
    case CLOCK_THREAD_CPUTIME_ID:
        *ns = thread_cpu_ns();
        return 0;
    default:
        return -EINVAL;
    }
}

static s32 get_time(u32 clock, u32 addr, bool wide)
{
    u64 ns;
    int err = clock_read(clock, &ns);
    return err ? err : time_to_user(addr, wide, ns);
}

SYSCALL_HANDLER(clock_gettime)
{
    return get_time(a, b, false);
}
SYSCALL_HANDLER(clock_gettime64)
{
    return get_time(a, b, true);
}

static s32 get_resolution(u32 clock, u32 addr, bool wide)
{
    u64 ns;
    int err = clock_read(clock, &ns);
    if (err || !addr)
        return err;
    return time_to_user(addr, wide, 1); // the TSC's, at 1 GHz and above
}

SYSCALL_HANDLER(clock_getres)
{
    return get_resolution(a, b, false);
}
SYSCALL_HANDLER(clock_getres_time64)
{
    return get_resolution(a, b, true);
}

static s32 set_time(u32 clock, u32 addr, bool wide)
{
    u64 ns;
    if (clock != CLOCK_REALTIME)
        return -EINVAL;
    int err = time_from_user(addr, wide, &ns);
    if (!err)
        wallclock_set_ns((s64)ns);
    return err;
}

SYSCALL_HANDLER(clock_settime)
{
    return set_time(a, b, false);
}
SYSCALL_HANDLER(clock_settime64)
{
    return set_time(a, b, true);
}

SYSCALL_HANDLER(time)
{
    s32 now = (s32)(wallclock_now_ns() / (s64)NSEC_PER_SEC);
    if (a && user_store_u32(a, (u32)now))
        return -EFAULT;
    return now;
}

SYSCALL_HANDLER(gettimeofday)
{
    s64 us = wallclock_now_ns() / (s64)NSEC_PER_USEC;
    struct timeval32 now = { (s32)(us / 1000000), (s32)(us % 1000000) };
    s32 zone[2] = { 0, 0 };
    if (a && copy_to_user(a, &now, sizeof(now)))
        return -EFAULT;
    if (b && copy_to_user(b, zone, sizeof(zone)))
        return -EFAULT;
    return 0;
}

SYSCALL_HANDLER(settimeofday)
{
    struct timeval32 now;
    u32 zone[2];
    if (b && copy_from_user(zone, b, sizeof(zone)))
        return -EFAULT;
    if (!a) // only the time zone: it is the programs' business
        return 0;
    if (copy_from_user(&now, a, sizeof(now)))
        return -EFAULT;
    if (now.sec < 0 || now.usec < 0 || now.usec >= 1000000)
        return -EINVAL;
    wallclock_set_ns((s64)now.sec * (s64)NSEC_PER_SEC +
                     (s64)now.usec * (s64)NSEC_PER_USEC);
    return 0;
}

#define USER_HZ 100
#define TIME_OK 0

// struct timex: BusyBox's adjtimex and ntpd ask; nothing is slewed, so that the
// answer is an untouched clock, and a request to change it is refused.
SYSCALL_HANDLER(adjtimex)
{
    u32 timex[32] = { 0 };
    u32 modes;
    if (user_load_u32(a, &modes))
        return -EFAULT;
    if (modes)
        return -EINVAL;
    timex[2] = 0;                  // freq
    timex[10] = 1000000 / USER_HZ; // tick, microseconds
    s64 us = wallclock_now_ns() / (s64)NSEC_PER_USEC;
    timex[8] = (u32)(us / 1000000);
    timex[9] = (u32)(us % 1000000);
    return copy_to_user(a, timex, sizeof(timex)) ? -EFAULT : TIME_OK;
}

static u32 cycles_to_ticks(u64 cycles)
{
    return (u32)(clock_tsc_to_ns(cycles) / (NSEC_PER_SEC / USER_HZ));
}

SYSCALL_HANDLER(times)
{
    struct task *t = current_task();
    u64 user, kernel;
    task_times(t, &user, &kernel);
    u32 tms[4] = { cycles_to_ticks(user), cycles_to_ticks(kernel),
                   cycles_to_ticks(t->child_user),
                   cycles_to_ticks(t->child_kernel) };
    if (a && copy_to_user(a, tms, sizeof(tms)))
        return -EFAULT;
    return (s32)(u32)(clock_now_ns() / (NSEC_PER_SEC / USER_HZ));
}

// --- sleeping ---------------------------------------------------------------

// `deadline` in clock_now_ns units. A sleep that a signal interrupts is run
// again with the same deadline unless a handler runs; then `left` gets the
// rest.
static s32 sleep_until(u64 deadline, u32 left, bool wide)
{
    struct thread *t = current;
    if (t->restart_deadline)
        deadline = t->restart_deadline;
    t->restart_deadline = 0;
    if (!thread_sleep_until(deadline, WAIT_INTERRUPTIBLE))
        return 0;
    u64 now = clock_now_ns();
    if (now >= deadline)
        return 0;
    if (left && time_to_user(left, wide, deadline - now))
        return -EFAULT;
    t->restart_deadline = deadline;
    return -ERESTARTNOHAND;
}

static s32 sleep_relative(u32 request, u32 left, bool wide)
{
    u64 ns;
    int err = time_from_user(request, wide, &ns);
    return err ? err : sleep_until(deadline_after(ns), left, wide);
}

SYSCALL_HANDLER(nanosleep)
{
    return sleep_relative(a, b, false);
}

static s32 sleep_on_clock(u32 clock, u32 flags, u32 request, u32 left,
                          bool wide)
{
    bool realtime = clock == CLOCK_REALTIME;
    if (!realtime && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME)
        return clock > CLOCK_BOOTTIME ? -EINVAL : -EOPNOTSUPP;
    if (flags & ~TIMER_ABSTIME)
        return -EINVAL;
    if (!(flags & TIMER_ABSTIME))
        return sleep_relative(request, left, wide);
    u64 ns;
    int err = time_from_user(request, wide, &ns);
    if (err)
        return err;
    s64 at = realtime ? (s64)ns - wallclock_boot_ns() : (s64)ns;
    return sleep_until(at < 0 ? 0 : (u64)at, 0, wide);
}

SYSCALL_HANDLER(clock_nanosleep)
{
    return sleep_on_clock(a, b, c, d, false);
}

SYSCALL_HANDLER(clock_nanosleep_time64)
{
    return sleep_on_clock(a, b, c, d, true);
}
