// The address-bin profiler's system calls: errors, ranges and bins, what is
// counted and what is not, and how it ends.
#include "test.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <strobe/profile.h>

#include "user/libstrobe/sysinfo.h"

#define ENOUGH 20 // ticks
#define TICKS_HZ 1000
#define BETWEEN_SLEEPS 30 // at most so many ticks, one per sleep

static struct prof_data data;

static int profile(pid_t task, uintptr_t low, uintptr_t high)
{
    return syscall(SYS_profile, task, low, high);
}

static uint64_t ticks(void)
{
    uint64_t sum = 0;

    check(syscall(SYS_getprof, &data) == 0);
    for (int i = 0; i < PROF_BINS; i++) {
        check(data.bins[i] == 0 || (uint32_t)i < data.bins_used);
        sum += data.bins[i];
    }
    return sum;
}

// Shares no bin with its neighbours, whatever the size of the bins.
#define APART __attribute__((noinline, noclone, aligned(4096)))

APART static void spin(void)
{
    for (volatile int i = 0; i < 1000000; i++)
        ;
}
APART static void after_spin(void)
{
    __asm__ volatile("");
}

static uintptr_t spin_start(void)
{
    return (uintptr_t)spin;
}
static uintptr_t spin_end(void)
{
    return (uintptr_t)after_spin - 1;
}

// A child that calls `fn` until it is killed.
static pid_t forever(void (*fn)(void))
{
    pid_t child = fork();

    check(child >= 0);
    if (child == 0) {
        for (;;)
            fn();
    }
    return child;
}

static void end(pid_t child)
{
    check(kill(child, SIGKILL) == 0);
    check(waitpid(child, NULL, 0) == child);
}

static void sleep_a_bit(void)
{
    sleep_ms(10);
}

// ---- errors

static void no_such_task(void)
{
    int status;

    check_error(profile(999999, 0, 0), ESRCH);
    check_error(profile(-1, 0, 0), ESRCH);
    check_error(profile(999999, 5, 1), ESRCH);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    siginfo_t info;
    check(waitid(P_PID, child, &info, WEXITED | WNOWAIT) == 0);
    check_error(profile(child, 0, 0), ESRCH); // a zombie has no code
    check(waitpid(child, &status, 0) == child);
    check_error(profile(child, 0, 0), ESRCH);
    ok("no such task");
}

static void bad_ranges(void)
{
    pid_t self = getpid();

    // The range of all its code is valid; one more byte on either side is not.
    check(profile(self, 0, 0) == 0);
    ticks();
    check(profile(0, 0, 0) == 0);
    uintptr_t low = data.low, high = data.high;
    check(low <= spin_start() && spin_end() <= high);
    check(profile(self, low, high) == 0 && profile(0, 0, 0) == 0);
    check_error(profile(self, low - 1, high), EFAULT);
    check_error(profile(self, low, high + 1), EFAULT);
    check_error(profile(self, low + 1, low), EFAULT);
    check_error(profile(self, 0, high), EFAULT);
    check_error(profile(self, low, 0), EFAULT);
    check_error(profile(self, 0, 1), EFAULT);
    check_error(profile(self, (uintptr_t)&data, (uintptr_t)&data + 9), EFAULT);
    check_error(profile(self, 0xc0100000, 0xc0200000), EFAULT);
    check_error(profile(self, 0, 0xffffffff), EFAULT);
    check_error(profile(self, 0xffffffff, 0xffffffff), EFAULT);
    check(profile(self, low, low) == 0); // one byte is a range
    ticks();
    check(data.low == low && data.high == low && data.bins_used == 1);
    check(profile(0, 0, 0) == 0);
    ok("ranges that are not in the program");
}

static void bad_pointers(void)
{
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    check(pages != MAP_FAILED && munmap(pages + 4096, 4096) == 0);
    check_error(syscall(SYS_getprof, NULL), EFAULT);
    check_error(syscall(SYS_getprof, 0xc0100000), EFAULT);
    check_error(syscall(SYS_getprof, 0xfffffff0), EFAULT);
    check_error(syscall(SYS_getprof, pages + 1), EFAULT);
    check(mprotect(pages, 4096, PROT_READ) == 0);
    check_error(syscall(SYS_getprof, pages), EFAULT);
    ok("getprof to bad places");
}

static void one_at_a_time(void)
{
    pid_t child = forever(sleep_a_bit);

    check(profile(child, 0, 0) == 0);
    check_error(profile(child, 0, 0), EBUSY);
    check_error(profile(getpid(), 0, 0), EBUSY);
    check_error(profile(getpid(), 5, 1), EBUSY);
    check_error(profile(999999, 0, 0), ESRCH);
    check(profile(0, 0, 0) == 0);
    check(profile(0, 7, 3) == 0); // never an error
    check(profile(getpid(), 0, 0) == 0);
    check(profile(0, 0xffffffff, 1) == 0);
    end(child);
    ok("one at a time");
}

// ---- bins

static void geometry(void)
{
    static const struct {
        uint32_t length, used;
    } cases[] = { { 1025, 513 },
                  { 200, 200 },
                  { 1024, 1024 },
                  { 4096, 1024 },
                  { 3000, 1000 } };
    uintptr_t low = spin_start();

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check(profile(getpid(), low, low + cases[i].length - 1) == 0);
        ticks();
        check(data.low == low && data.high == low + cases[i].length - 1);
        check(data.bins_used == cases[i].used);
        check(profile(0, 0, 0) == 0);
    }
    ok("as many bins as are needed");
}

// The ticks of spinning code are in its bins, and only there.
static void where_it_spins(void)
{
    pid_t child = forever(spin);
    uint64_t in_spin = 0, all;

    check(profile(child, 0, 0) == 0);
    do {
        sleep_ms(20);
        all = ticks();
    } while (all < ENOUGH);
    uint32_t size = prof_bin_size(&data);
    for (uint32_t i = (spin_start() - data.low) / size;
         i <= (spin_end() - data.low) / size; i++)
        in_spin += data.bins[i];
    check(in_spin >= all * 9 / 10);
    check(profile(0, 0, 0) == 0);
    uint64_t stopped = ticks(); // stays readable and unchanged
    check(stopped >= all);
    sleep_ms(50);
    check(ticks() == stopped);
    // The same with only that function as the range.
    check(profile(child, spin_start(), spin_end()) == 0);
    do
        sleep_ms(20);
    while (ticks() < ENOUGH);
    check(profile(0, 0, 0) == 0);
    // And with a range without it.
    check(profile(child, (uintptr_t)after_spin, (uintptr_t)after_spin + 99) ==
          0);
    sleep_ms(100);
    check(ticks() == 0);
    check(profile(0, 0, 0) == 0);
    end(child);
    ok("ticks are where the time goes");
}

// A task's time in user mode, in ticks.
static uint64_t user_ticks(pid_t pid)
{
    char path[SYSINFO_PATH_MAX];
    struct sysinfo_task t;

    snprintf(path, sizeof(path), "system.tasks.%d", (int)pid);
    check(sysinfo_get_task(path, &t) == 0);
    return t.user / (sysinfo_frequency() / TICKS_HZ);
}

// Not counted: time blocked or in the kernel, and other tasks' time. (A busy
// host may stop it in the few instructions between two sleeps.)
static void what_is_not_counted(void)
{
    pid_t sleeper = forever(sleep_a_bit), other = forever(spin);

    check(profile(sleeper, 0, 0) == 0);
    sleep_ms(300);
    uint64_t counted = ticks();
    check(profile(0, 0, 0) == 0);
    check(counted <= user_ticks(sleeper) + BETWEEN_SLEEPS);
    end(sleeper);
    end(other);
    ok("blocked time is not counted");
}

static void *spin_on(void *arg)
{
    for (;;)
        spin();
    return arg;
}

static void several_threads(void)
{
    pid_t child = fork();

    check(child >= 0);
    if (child == 0) {
        for (int i = 0; i < 4; i++) {
            pthread_t t;
            check(pthread_create(&t, NULL, spin_on, NULL) == 0);
        }
        for (;;)
            pause();
    }
    check(profile(child, spin_start(), spin_end()) == 0);
    do
        sleep_ms(20);
    while (ticks() < 4 * ENOUGH);
    check(profile(0, 0, 0) == 0);
    end(child);
    ok("threads of the task");
}

// ---- its end

static void ends_with_the_task(void)
{
    pid_t child = forever(spin);

    check(profile(child, 0, 0) == 0);
    do
        sleep_ms(20);
    while (ticks() < ENOUGH);
    end(child);
    uint64_t last = ticks();
    check(last >= ENOUGH);
    check(profile(getpid(), 0, 0) == 0); // no task is profiled now
    check(profile(0, 0, 0) == 0);
    // The task that began it may end.
    pid_t target = forever(sleep_a_bit);
    pid_t starter = fork();
    if (starter == 0)
        _exit(profile(target, 0, 0) == 0 ? 0 : 1);
    int status;
    check(waitpid(starter, &status, 0) == starter && exited_with(status, 0));
    check_error(profile(getpid(), 0, 0), EBUSY);
    end(target);
    check(profile(getpid(), 0, 0) == 0);
    check(profile(0, 0, 0) == 0);
    ok("it ends with the task, not with who began it");
}

// Tasks that end while profiling begins: no error but ESRCH, and nothing leaks.
static void races_with_ends(void)
{
    for (int i = 0; i < 200; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        if (profile(child, 0, 0) < 0)
            check(errno == ESRCH);
        check(waitpid(child, NULL, 0) == child);
        check(profile(getpid(), 0, 0) == 0);
        check(profile(0, 0, 0) == 0);
    }
    ok("tasks that end meanwhile");
}

// ---- exec

static int go[2]; // a byte lets the child go on

static pid_t about_to_exec(char *const arguments[])
{
    pid_t child;
    char c;

    check(pipe(go) == 0);
    child = fork();
    check(child >= 0);
    if (child == 0) {
        check(read(go[0], &c, 1) == 1);
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    return child;
}

static void let_go(void)
{
    check(write(go[1], "", 1) == 1);
    check(close(go[0]) == 0 && close(go[1]) == 0);
}

static void exec_begins_anew(void)
{
    char *const arguments[] = { "profile_bins", "spin", NULL };
    pid_t child = about_to_exec(arguments);

    check(profile(child, 0, 0) == 0);
    let_go();
    do
        sleep_ms(20);
    while (ticks() < ENOUGH);
    check(profile(0, 0, 0) == 0);
    end(child);
    // A range that may be in the next program only: nothing is counted, and
    // after exec the range turns out to be missing there, too.
    child = about_to_exec(arguments);
    check(profile(child, 0x30000000, 0x30000fff) == 0);
    check(ticks() == 0 && data.bins_used == 1024);
    check_error(profile(getpid(), 0, 0), EBUSY);
    let_go();
    do {
        sleep_ms(20);
        ticks();
    } while (data.bins_used != 0);
    check(profile(getpid(), 0, 0) == 0);
    check(profile(0, 0, 0) == 0);
    // It has called exec: now the range is checked against its program.
    check_error(profile(child, 0x30000000, 0x30000fff), EFAULT);
    end(child);
    // A task that ends without exec.
    child = about_to_exec(arguments);
    check(profile(child, 0x30000000, 0x30000fff) == 0);
    end(child);
    check(profile(getpid(), 0, 0) == 0);
    check(profile(0, 0, 0) == 0);
    ok("exec begins anew");
}

int main(int argc, char *argv[])
{
    alarm(TEST_SECONDS);
    if (argc > 1 && strcmp(argv[1], "spin") == 0) {
        for (;;)
            spin();
    }
    if (syscall(SYS_profile, 0, 0, 0) < 0 && errno == ENOSYS) {
        ok("address bins: skipped, they are Strobe's");
        return 0;
    }
    no_such_task();
    bad_ranges();
    bad_pointers();
    one_at_a_time();
    geometry();
    where_it_spins();
    what_is_not_counted();
    several_threads();
    ends_with_the_task();
    races_with_ends();
    exec_begins_anew();
    return 0;
}
