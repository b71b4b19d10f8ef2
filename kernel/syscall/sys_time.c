// System calls that read and set clocks.

#include "kernel/syscall/syscall.h"
#include "kernel/syscall/user_types.h"
#include "kernel/task/task.h"
#include "kernel/time/wallclock.h"

// --- CPU time ---------------------------------------------------------------
//
// The clock id of a task or thread: its id, inverted, shifted left by three
// bits.

#define CPU_CLOCK_KIND 3u
enum { CPU_CLOCK_BOTH, CPU_CLOCK_USER, CPU_CLOCK_RUN, CPU_CLOCK_INVALID };
#define CPU_CLOCK_THREAD 4u
#define CPU_CLOCK_SHIFT 3

// User and kernel cycles of the thread with this id, which must belong to the
// caller's task; 0: of the caller. -EINVAL.
static int thread_cycles(u32 id, u64 *user, u64 *kernel)
{
    if (!id) {
        thread_times(current, user, kernel);
        return 0;
    }
    struct thread *t = thread_find(id);
    if (!t)
        return -EINVAL;
    bool ours = t->task == current_task();
    if (ours)
        thread_times(t, user, kernel);
    thread_unref(t);
    return ours ? 0 : -EINVAL;
}

static int task_cycles(u32 id, u64 *user, u64 *kernel)
{
    if (!id) {
        task_times(current_task(), user, kernel);
        return 0;
    }
    struct task *t = task_find(id);
    if (!t)
        return -EINVAL;
    task_times(t, user, kernel);
    task_unref(t);
    return 0;
}

static int cpu_clock_read(u32 clock, u64 *ns)
{
    u64 user, kernel;
    u32 id = ~clock >> CPU_CLOCK_SHIFT;
    u32 kind = clock & CPU_CLOCK_KIND;
    if (kind == CPU_CLOCK_INVALID)
        return -EINVAL;
    int err = clock & CPU_CLOCK_THREAD ? thread_cycles(id, &user, &kernel)
                                       : task_cycles(id, &user, &kernel);
    if (!err)
        *ns = clock_tsc_to_ns(kind == CPU_CLOCK_USER ? user : user + kernel);
    return err;
}

// --- reading ----------------------------------------------------------------

// -EINVAL: there is no such clock. The coarse clocks equal the fine ones: there
// is no tick.
static ALWAYS_INLINE int clock_read(u32 clock, u64 *ns)
{
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
        *ns = (u64)clock_wall_ns();
        return 0;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME: // the machine is never suspended
        *ns = clock_now_ns();
        return 0;
    case CLOCK_MONOTONIC_RAW:
        *ns = clock_raw_ns();
        return 0;
    case CLOCK_PROCESS_CPUTIME_ID:
        return cpu_clock_read((u32)~0 << CPU_CLOCK_SHIFT | CPU_CLOCK_RUN, ns);
    case CLOCK_THREAD_CPUTIME_ID:
        return cpu_clock_read(
            (u32)~0 << CPU_CLOCK_SHIFT | CPU_CLOCK_THREAD | CPU_CLOCK_RUN, ns);
    default:
        return (s32)clock < 0 ? cpu_clock_read(clock, ns) : -EINVAL;
    }
}

static ALWAYS_INLINE s32 get_time(u32 clock, u32 addr, bool wide)
{
    u64 ns;
    int err = clock_read(clock, &ns);
    return err ? err : time_to_user(addr, wide, ns);
}

TIME_TWINS(clock_gettime, clock_gettime64, (u32 clock, u32 time),
           get_time(clock, time, wide))

static NOINLINE int clock_check(u32 clock)
{
    u64 ns;
    return clock_read(clock, &ns);
}

static bool is_cpu_clock(u32 clock)
{
    return clock == CLOCK_PROCESS_CPUTIME_ID ||
           clock == CLOCK_THREAD_CPUTIME_ID || (s32)clock < 0;
}

// One count of the underlying counter. CPU time is always measured in TSC
// cycles, whichever timecounter the other clocks use.
static s32 get_resolution(u32 clock, u32 addr, bool wide)
{
    int err = clock_check(clock);
    if (err || !addr)
        return err;
    u64 resolution = is_cpu_clock(clock)
                         ? DIV_ROUND_UP(NSEC_PER_SEC, clock_tsc_hz())
                         : clock_resolution_ns();
    return time_to_user(addr, wide, resolution);
}

TIME_TWINS(clock_getres, clock_getres_time64, (u32 clock, u32 resolution),
           get_resolution(clock, resolution, wide))

s32 sys_time(u32 seconds)
{
    s32 now = (s32)(clock_wall_ns() / (s64)NSEC_PER_SEC);
    if (seconds && user_store_u32(seconds, (u32)now))
        return -EFAULT;
    return now;
}

// The time zone is stored for programs only; the kernel does not use it.
static struct time_zone {
    s32 minutes_west, daylight_saving;
} time_zone;
#define MINUTES_WEST_MAX (15 * 60)

s32 sys_gettimeofday(u32 time, u32 timezone)
{
    u32 nsec;
    u64 sec = divide_u64((u64)clock_wall_ns(), NSEC_PER_SEC, &nsec);
    struct timeval32 now = { (s32)sec, (s32)(nsec / NSEC_PER_USEC) };
    // Each word is read atomically; the two may be of different settings.
    struct time_zone zone = { READ_ONCE(time_zone.minutes_west),
                              READ_ONCE(time_zone.daylight_saving) };
    if (time && copy_to_user(time, &now, sizeof(now)))
        return -EFAULT;
    if (timezone && copy_to_user(timezone, &zone, sizeof(zone)))
        return -EFAULT;
    return 0;
}

// --- setting ----------------------------------------------------------------

static s32 set_wall(u64 ns)
{
    return may_set_time() ? wallclock_set_ns((s64)ns) : -EPERM;
}

static s32 set_time(u32 clock, u32 addr, bool wide)
{
    u64 ns;
    if (clock != CLOCK_REALTIME)
        return is_cpu_clock(clock) && !clock_check(clock) ? -EPERM : -EINVAL;
    int err = time_from_user(addr, wide, &ns);
    return err ? err : set_wall(ns);
}

TIME_TWINS(clock_settime, clock_settime64, (u32 clock, u32 time),
           set_time(clock, time, wide))

s32 sys_stime(u32 seconds)
{
    u32 sec;
    if (user_load_u32(seconds, &sec))
        return -EFAULT;
    return (s32)sec < 0 ? -EINVAL : set_wall(sec * NSEC_PER_SEC);
}

s32 sys_settimeofday(u32 time, u32 timezone)
{
    struct timeval32 now = { 0, 0 };
    struct time_zone zone;
    if (time && copy_from_user(&now, time, sizeof(now)))
        return -EFAULT;
    if (timezone && copy_from_user(&zone, timezone, sizeof(zone)))
        return -EFAULT;
    if (now.sec < 0 || now.usec < 0 || now.usec >= 1000000)
        return -EINVAL;
    if (!may_set_time())
        return -EPERM;
    if (timezone && (zone.minutes_west > MINUTES_WEST_MAX ||
                     zone.minutes_west < -MINUTES_WEST_MAX))
        return -EINVAL;
    if (timezone) {
        WRITE_ONCE(time_zone.minutes_west, zone.minutes_west);
        WRITE_ONCE(time_zone.daylight_saving, zone.daylight_saving);
    }
    return time ? set_wall((u64)now.sec * NSEC_PER_SEC +
                           (u64)now.usec * NSEC_PER_USEC)
                : 0;
}

// --- times ------------------------------------------------------------------

#define USER_HZ 100

static u32 cycles_to_ticks(u64 cycles)
{
    return (u32)(clock_tsc_to_ns(cycles) / (NSEC_PER_SEC / USER_HZ));
}

s32 sys_times(u32 buffer)
{
    struct task *t = current_task();
    u64 user, kernel, child_user, child_kernel;
    task_times(t, &user, &kernel);
    task_child_times(t, &child_user, &child_kernel);
    u32 tms[4] = { cycles_to_ticks(user), cycles_to_ticks(kernel),
                   cycles_to_ticks(child_user), cycles_to_ticks(child_kernel) };
    if (buffer && copy_to_user(buffer, tms, sizeof(tms)))
        return -EFAULT;
    return (s32)(u32)(clock_now_ns() / (NSEC_PER_SEC / USER_HZ));
}
