// bench [NAME...]: what operations cost, in instructions (tools/bench/run)
//
// Under `tools/vm --icount 1 --smp 1` the TSC counts two for each instruction,
// so half its difference is the number of instructions, the same in every run.
// Elsewhere the unit is half a TSC cycle. As the first process
// (init=/bin/bench) it prints what the boot took and switches the machine off.
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "user/libstrobe/strobe.h"

#define PAGE 4096u
#define FAULT_PAGES 256

uint64_t rdtsc(void)
{
    uint64_t t;
    __asm__ volatile("rdtsc" : "=A"(t));
    return t;
}

void must(int condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
    exit(1);
}

// --- what is measured: each does the operation `n` times --------------------

static int zero, null, fds[2], back[2];

static long call(long number, long b, long c, long d)
{
    long r;
    __asm__ volatile("int $0x80"
                     : "=a"(r)
                     : "0"(number), "b"(b), "c"(c), "d"(d)
                     : "memory");
    return r;
}

static void do_getpid(int n)
{
    while (n-- > 0)
        call(SYS_getpid, 0, 0, 0);
}

static void do_read(int n)
{
    char byte;
    while (n-- > 0)
        call(SYS_read, zero, (long)&byte, 1);
}

static void do_write(int n)
{
    char byte = 0;
    while (n-- > 0)
        call(SYS_write, null, (long)&byte, 1);
}

static void do_open(int n)
{
    while (n-- > 0)
        close(open("/etc/passwd", O_RDONLY));
}

static void do_stat(int n)
{
    struct stat st;
    while (n-- > 0)
        stat("/etc/passwd", &st);
}

static void do_clock(int n)
{
    long t[2];
    while (n-- > 0)
        call(265, CLOCK_MONOTONIC, (long)t, 0); // clock_gettime
}

// The vDSO's function, without what the C library puts around it.
static int (*vdso_gettime)(int clock, void *t);

static void find_vdso(void)
{
    static const char name[] = "__vdso_clock_gettime";
    struct program_symbols p;
    program_symbols_load(&p, "[vdso]");
    for (uint32_t i = 0; i < p.symbols.count; i++) {
        const struct symbol *s = &p.symbols.table[i];
        if (s->name_size == strlen(name) &&
            !memcmp(s->name, name, s->name_size))
            vdso_gettime = (void *)(getauxval(AT_SYSINFO_EHDR) + s->start);
    }
    program_symbols_free(&p);
    must(vdso_gettime != NULL, "vDSO");
}

static void do_vdso(int n)
{
    long t[2];
    while (n-- > 0)
        vdso_gettime(CLOCK_MONOTONIC, t);
}

static void do_yield(int n)
{
    while (n-- > 0)
        call(SYS_sched_yield, 0, 0, 0);
}

static void do_pipe(int n)
{
    char byte = 0;
    while (n-- > 0) {
        call(SYS_write, fds[1], (long)&byte, 1);
        call(SYS_read, fds[0], (long)&byte, 1);
    }
}

static void do_ping_pong(int n)
{
    char byte = 0;
    while (n-- > 0) {
        call(SYS_write, fds[1], (long)&byte, 1);
        call(SYS_read, back[0], (long)&byte, 1);
    }
}

static void on_signal(int signal)
{
    (void)signal;
}

static void do_signal(int n)
{
    pid_t self = getpid();
    while (n-- > 0)
        call(SYS_kill, self, SIGUSR1, 0);
}

static void do_mmap(int n)
{
    while (n-- > 0) {
        void *p = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(p, 16 * PAGE);
    }
}

static char *pages;

static void do_fault(int n)
{
    for (int i = 0; i < n; i++)
        pages[i * PAGE] = 1;
}

static void do_fork(int n)
{
    while (n-- > 0) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        waitpid(pid, NULL, 0);
    }
}

static void do_exec(int n)
{
    static char *const arguments[] = { "bench", "nothing", NULL };
    while (n-- > 0) {
        pid_t pid = fork();
        if (pid == 0) {
            execve("/bin/bench", arguments, NULL);
            _exit(127);
        }
        waitpid(pid, NULL, 0);
    }
}

static void do_shell(int n)
{
    static char *const arguments[] = { "sh", "-c", "echo x | cat >/dev/null",
                                       NULL };
    while (n-- > 0) {
        pid_t pid = fork();
        if (pid == 0) {
            execv("/bin/sh", arguments);
            _exit(127);
        }
        waitpid(pid, NULL, 0);
    }
}

// --- preparation ------------------------------------------------------------

static pid_t partner;

static void start_partner(void)
{
    must(pipe(back) == 0, "pipe");
    partner = fork();
    must(partner >= 0, "fork");
    if (partner != 0)
        return;
    char byte;
    while (read(fds[0], &byte, 1) == 1)
        (void)!write(back[1], &byte, 1);
    _exit(0);
}

// Two that yield to each other: a round is two context switches.
static void start_yielder(void)
{
    partner = fork();
    must(partner >= 0, "fork");
    while (partner == 0)
        call(SYS_sched_yield, 0, 0, 0);
}

static void end_partner(void)
{
    kill(partner, SIGKILL);
    waitpid(partner, NULL, 0);
}

static void map_pages(void)
{
    pages = mmap(NULL, FAULT_PAGES * PAGE, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(pages != MAP_FAILED, "mmap");
}

// Fresh pages for the measurement after those of the rehearsal.
static void unmap_pages(void)
{
    munmap(pages, FAULT_PAGES * PAGE);
}

static void catch_signal(void)
{
    struct sigaction action = { .sa_handler = on_signal };
    sigaction(SIGUSR1, &action, NULL);
}

struct operation {
    const char *name;
    void (*run)(int n);
    int times;
    void (*before)(void), (*after)(void);
};

static const struct operation operations[] = {
    { "getpid", do_getpid, 1000, NULL, NULL },
    { "read-zero", do_read, 1000, NULL, NULL },
    { "write-null", do_write, 1000, NULL, NULL },
    { "open-close", do_open, 200, NULL, NULL },
    { "stat", do_stat, 200, NULL, NULL },
    { "clock-gettime", do_clock, 1000, NULL, NULL },
    { "clock-vdso", do_vdso, 1000, find_vdso, NULL },
    { "sched-yield", do_yield, 1000, NULL, NULL },
    { "yield-to-another", do_yield, 1000, start_yielder, end_partner },
    { "pipe", do_pipe, 500, NULL, NULL },
    { "pipe-ping-pong", do_ping_pong, 500, start_partner, end_partner },
    { "signal", do_signal, 500, catch_signal, NULL },
    { "mmap-munmap", do_mmap, 200, NULL, NULL },
    { "page-fault", do_fault, FAULT_PAGES, map_pages, unmap_pages },
    { "fork-exit-wait", do_fork, 50, NULL, NULL },
    { "fork-exec-wait", do_exec, 50, NULL, NULL },
    { "sh-pipeline", do_shell, 10, NULL, NULL },
};

#define OPERATIONS (sizeof(operations) / sizeof(*operations))

// Once to warm up, then for the count.
static uint64_t measure(const struct operation *o)
{
    uint64_t cycles = 0;

    for (int round = 0; round < 2; round++) {
        if (o->before != NULL)
            o->before();
        uint64_t start = rdtsc();
        o->run(o->times);
        cycles = rdtsc() - start;
        if (o->after != NULL)
            o->after();
    }
    return cycles / 2 / o->times;
}

// What bench measures with more than an entry of `operations`.
static const struct suite {
    const char *name;
    void (*measure)(void);
} suites[] = { { "watch", watch },
               { "sampling", sampling },
               { "recording", recording } };
#define SUITES (sizeof(suites) / sizeof(suites[0]))

static bool is_among(const char *name, char *names[])
{
    while (*names != NULL && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

static bool wanted(const char *name, char *names[])
{
    return names[0] == NULL || is_among(name, names);
}

static void list(FILE *out)
{
    fprintf(out, "Usage: bench [NAME...]\n"
                 "Prints what operations cost, in instructions (under tools/vm "
                 "--icount 1 --smp 1;\nelse in two TSC cycles). Without NAME: "
                 "all of\n");
    for (size_t i = 0; i < OPERATIONS; i++)
        fprintf(out, "  %s\n", operations[i].name);
    for (size_t i = 0; i < SUITES; i++)
        fprintf(out, "  %s\n", suites[i].name);
}

static bool is_known(const char *name)
{
    for (size_t i = 0; i < OPERATIONS; i++) {
        if (strcmp(operations[i].name, name) == 0)
            return true;
    }
    for (size_t i = 0; i < SUITES; i++) {
        if (strcmp(suites[i].name, name) == 0)
            return true;
    }
    return false;
}

static void check_names(char *names[])
{
    static char *help[] = { "-h", "--help", NULL };

    for (; *names != NULL; names++) {
        if (is_among(*names, help)) {
            list(stdout);
            exit(0);
        }
        if (!is_known(*names)) {
            complain("%s: there is no such operation", *names);
            list(stderr);
            exit(2);
        }
    }
}

int main(int argc, char *argv[])
{
    uint64_t boot = rdtsc() / 2;

    if (argc > 1 && strcmp(argv[1], "nothing") == 0)
        return 0;
    if (getpid() == 1) {
        printf("boot %llu\n", (unsigned long long)boot);
        fflush(stdout);
        reboot(RB_POWER_OFF);
    }
    check_names(argv + 1);
    zero = open("/dev/zero", O_RDONLY);
    null = open("/dev/null", O_WRONLY);
    must(zero >= 0 && null >= 0, "/dev/zero, /dev/null");
    must(pipe(fds) == 0, "pipe");
    for (size_t i = 0; i < OPERATIONS; i++) {
        if (wanted(operations[i].name, argv + 1))
            printf("%s %llu\n", operations[i].name,
                   (unsigned long long)measure(&operations[i]));
    }
    for (size_t i = 0; i < SUITES; i++) {
        if (wanted(suites[i].name, argv + 1))
            suites[i].measure();
    }
    return 0;
}
