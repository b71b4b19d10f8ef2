// CPU time is charged to the right account: a busy loop, a sleeper, a storm of
// system calls, and interrupts.
//
//     ledger_split          sums and bounds, on any machine
//     ledger_split exact    to the cycle, under tools/vm --icount 1 --smp 1,
//                           with nothing else running
//
// The expected values do not come from the ledger: they are the TSC that the
// program reads around its work, the instructions of its loops and the number
// of its calls.
#include "test.h"

#include "user/libstrobe/sysinfo.h"

#include <sched.h>
#include <sys/syscall.h>
#include <sys/time.h>

#define TRIES 10 // for a measurement without an interrupt

// Differences between two readings of the CPU's accounts.
struct split {
    uint64_t user, kernel, irq, idle, elapsed;
    uint64_t tsc; // elapsed, as read by the program
};

static bool exact;
static uint64_t cycle; // cycles per instruction, if exact

static uint64_t rdtsc(void)
{
    uint64_t t;
    __asm__ volatile("rdtsc" : "=A"(t));
    return t;
}

static long call(long number, long b, long c, long d, long s)
{
    long r;
    __asm__ volatile("int $0x80"
                     : "=a"(r)
                     : "0"(number), "b"(b), "c"(c), "d"(d), "S"(s)
                     : "memory");
    return r;
}

static void read_cpu(struct sysinfo_cpu *out)
{
    static const char path[] = "system.cpus.0";

    check(call(SYS_sysinfo_get_data, (long)path, sizeof(path) - 1, (long)out,
               sizeof(*out)) == sizeof(*out));
}

// Runs body(n) between two readings. This function always executes the same
// instructions.
static __attribute__((noinline)) struct split measure(void (*body)(uint32_t),
                                                      uint32_t n)
{
    struct sysinfo_cpu before, after;

    read_cpu(&before);
    uint64_t start = rdtsc();
    body(n);
    uint64_t tsc = rdtsc() - start;
    read_cpu(&after);
    struct split s = { .user = after.user - before.user,
                       .kernel = after.kernel - before.kernel,
                       .irq = after.irq - before.irq,
                       .idle = after.idle - before.idle,
                       .elapsed = after.elapsed - before.elapsed,
                       .tsc = tsc };
    check(s.user + s.kernel + s.irq + s.idle == s.elapsed);
    check(after.start_up == before.start_up);
    check(s.tsc <= s.elapsed || !exact);
    return s;
}

// Waits until init has forwarded the output, which takes CPU time.
static void settle(void)
{
    sleep_ms(50);
}

// Repeats until no interrupt came in.
static struct split measure_quiet(void (*body)(uint32_t), uint32_t n)
{
    struct split s;

    settle();
    for (int i = 0; i < TRIES; i++) {
        s = measure(body, n);
        if (s.irq == 0 || !exact)
            return s;
    }
    check(!"a quiet moment");
    return s;
}

static void report(const char *what, const struct split *s)
{
    dprintf(1,
            "# %s: user %llu kernel %llu irq %llu idle %llu, by the TSC %llu\n",
            what, (unsigned long long)s->user, (unsigned long long)s->kernel,
            (unsigned long long)s->irq, (unsigned long long)s->idle,
            (unsigned long long)s->tsc);
}

// ---- a busy loop of known length

#define LOOP_INSTRUCTIONS 2

static void loop(uint32_t n)
{
    __asm__ volatile("1: subl $1, %0\n\t"
                     "jnz 1b"
                     : "+r"(n)
                     :
                     : "cc");
}

static void busy_loop(void)
{
    static const uint32_t lengths[] = { 1, 1000, 1000000, 10000000 };
    measure(loop, 1); // a call's first use costs more
    struct split first = measure_quiet(loop, lengths[0]), s;

    for (int i = 1; i < 4; i++) {
        s = measure_quiet(loop, lengths[i]);
        if (!exact)
            continue;
        uint64_t instructions =
            (uint64_t)(lengths[i] - lengths[0]) * LOOP_INSTRUCTIONS;
        uint64_t more = s.user - first.user;
        if (cycle == 0)
            cycle = more / instructions;
        check(cycle > 0 && more == instructions * cycle);
        check(more == s.tsc - first.tsc);
        check(s.kernel == first.kernel && s.idle == 0);
    }
    report("busy loop, 20,000,000 instructions", &s);
    ok("a busy loop is user time, to the cycle");
}

// ---- a sleeper

static void sleep_for(uint32_t ms)
{
    const long t[2] = { ms / 1000, ms % 1000 * 1000000l }; // 32-bit timespec

    check(call(SYS_nanosleep, (long)t, 0, 0, 0) == 0);
}

static void sleeper(void)
{
    settle();
    measure(sleep_for, 1);
    struct split shortly = measure(sleep_for, 10);
    struct split s = measure(sleep_for, 500);

    if (exact) {
        uint64_t hz = sysinfo_frequency();
        check(s.user == shortly.user); // the same instructions
        check(s.idle >= hz / 1000 * 498 && s.tsc >= hz / 1000 * 500);
        check(s.kernel + s.irq < hz / 1000); // together below 1 ms of 500
        check(s.idle > 99 * (s.elapsed / 100));
    }
    report("sleeper, 500 ms", &s);
    ok("a sleeper leaves the CPU idle");
}

// ---- system calls

#define STORM_INSTRUCTIONS 4

// In assembly, because a compiler may unroll its own loop.
static void storm(uint32_t n)
{
    __asm__ volatile("1: movl %1, %%eax\n\t"
                     "int $0x80\n\t"
                     "subl $1, %0\n\t"
                     "jnz 1b"
                     : "+r"(n)
                     : "i"(SYS_getpid)
                     : "eax", "memory", "cc");
}

static uint64_t getpid_calls(void)
{
    size_t count;
    uint64_t calls = 0;
    struct sysinfo_syscall *s = sysinfo_read_syscall("system.syscalls", &count);

    if (s == NULL && errno == ENOENT)
        return 0; // a kernel that does not count them
    check(s != NULL);
    for (size_t i = 0; i < count; i++) {
        if (s[i].number == SYS_getpid)
            calls = s[i].count;
    }
    free(s);
    return calls;
}

static void system_calls(void)
{
    measure(storm, 1);
    struct split one = measure_quiet(storm, 1);
    struct split few = measure_quiet(storm, 1001);
    uint64_t calls = getpid_calls();
    struct split many = measure_quiet(storm, 10001);

    if (calls > 0) {
        uint64_t more = getpid_calls() - calls;
        check(more >= 10001 && (!exact || more % 10001 == 0)); // per try
    }
    if (exact) { // all calls cost the same
        check(many.user - one.user == 10 * (few.user - one.user));
        check(few.user - one.user == 1000 * STORM_INSTRUCTIONS * cycle);
        check(many.kernel - one.kernel == 10 * (few.kernel - one.kernel));
        check(many.tsc - one.tsc ==
              many.user + many.kernel - one.user - one.kernel);
    }
    report("10,001 system calls", &many);
    ok("system calls are divided into user and kernel time");
}

// ---- interrupts

// The number of interrupts of devices and of the CPU's timer.
static uint64_t interrupts(void)
{
    size_t count;
    uint64_t sum = 0;
    struct sysinfo_exception *e =
        sysinfo_read_exception("system.exceptions", &count);

    check(e != NULL);
    for (size_t i = 0; i < count; i++) {
        if (e[i].vector >= 32)
            sum += e[i].count;
    }
    free(e);
    return sum;
}

static void set_timer(long us)
{
    struct itimerval t = { { 0, us }, { 0, us } };

    check(setitimer(ITIMER_REAL, &t, NULL) == 0);
}

#define GAP 1000 // cycles between two TSC readings: an interrupt

// Returns right after a timer interrupt, so that the next one is not due while
// measure reads the accounts.
static void await_interrupt(void)
{
    uint64_t last = rdtsc(), now;

    while ((now = rdtsc()) - last < GAP)
        last = now;
}

// A timer interrupts a loop; its signal is ignored, so that nothing else
// happens. (A timer whose signal is not taken fires once a millisecond.) Each
// interrupt charges the loop for one instruction only, by which an interrupt's
// entry is longer than a system call's.
static void interrupted_loop(void)
{
    const uint32_t n = 20000000;
    struct split quiet = measure_quiet(loop, n);
    sigset_t alarms;

    // Pending: a timer whose signal is ignored does not interrupt.
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarms, NULL);
    alarm(0);
    set_timer(200);
    uint64_t before = interrupts();
    if (exact)
        await_interrupt();
    struct split s = measure(loop, n);
    uint64_t count = interrupts() - before;
    set_timer(0);
    on_signal(SIGALRM, SIG_IGN, 0); // discards it
    on_signal(SIGALRM, SIG_DFL, 0);
    sigprocmask(SIG_UNBLOCK, &alarms, NULL);
    alarm(TEST_SECONDS);

    if (exact) {
        uint64_t more = s.user - quiet.user;
        uint64_t in_loop = count; // some came while they were being counted
        check(count >= 50 && s.irq > 0 && s.idle == 0);
        while (more % in_loop != 0 && in_loop + 3 > count)
            in_loop--;
        check(more % in_loop == 0);
        uint64_t each = more / in_loop / cycle;
        dprintf(1, "# %llu interrupts, the loop pays %llu instructions each\n",
                (unsigned long long)in_loop, (unsigned long long)each);
        check(each == 1);
        check(s.tsc - quiet.tsc ==
              s.user + s.kernel + s.irq - quiet.user - quiet.kernel);
    }
    report("the same loop twice as long, interrupted by a timer", &s);
    ok("interrupts are charged to their vectors");
}

int main(int argc, char *argv[])
{
    cpu_set_t first;

    exact = argc > 1 && strcmp(argv[1], "exact") == 0;
    alarm(TEST_SECONDS);
    if (sysinfo_get_type("system.cpus.0") < 0) {
        ok("nothing: this is not Strobe");
        return 0;
    }
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    check(sched_setaffinity(0, sizeof(first), &first) == 0);
    busy_loop();
    sleeper();
    system_calls();
    interrupted_loop();
    return 0;
}
