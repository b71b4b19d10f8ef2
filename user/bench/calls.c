// Operations that are one system call, or a few. The same steps are measured
// on Linux with this program (tools/bench/linux).
//
// The results are combined into a sum, which shows whether all calls succeeded;
// that takes one instruction a call.
#define _GNU_SOURCE
#include "bench.h"

#include <elf.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u
#define FAULT_PAGES 256
#define CLOCK_GETTIME_32 265 // with a time_t of 32 bits

static int zero, null, fds[2], back[2];

static void do_getpid(int n)
{
    uint32_t sum = 0;
    uint32_t expected = (uint32_t)n * getpid();

    while (n-- > 0)
        sum += call(SYS_getpid, 0, 0, 0);
    must(sum == expected, "getpid");
}

static void open_devices(void)
{
    zero = open("/dev/zero", O_RDONLY);
    must(zero >= 0, "/dev/zero");
    null = open("/dev/null", O_WRONLY);
    must(null >= 0, "/dev/null");
}

static void close_devices(void)
{
    close(zero);
    close(null);
}

static void do_read(int n)
{
    int sum = -n;
    char byte;

    while (n-- > 0)
        sum += call(SYS_read, zero, (long)&byte, 1);
    must(sum == 0, "read");
}

static void do_write(int n)
{
    int sum = -n;
    char byte = 0;

    while (n-- > 0)
        sum += call(SYS_write, null, (long)&byte, 1);
    must(sum == 0, "write");
}

static void do_open(int n)
{
    int sum = 0;

    while (n-- > 0)
        sum |= close(open("/etc/passwd", O_RDONLY));
    must(sum == 0, "open, close");
}

static void do_stat(int n)
{
    struct stat st;
    int sum = 0;

    while (n-- > 0)
        sum |= stat("/etc/passwd", &st);
    must(sum == 0, "stat");
}

static void do_clock(int n)
{
    long t[2], sum = 0;

    while (n-- > 0)
        sum |= call(CLOCK_GETTIME_32, CLOCK_MONOTONIC, (long)t, 0);
    must(sum == 0, "clock_gettime");
}

// The vDSO's function, called without the C library's wrapper.
static int (*vdso_gettime)(int clock, void *t);

static const Elf32_Dyn *dynamic_section(const Elf32_Ehdr *image)
{
    const Elf32_Phdr *p = (const void *)((const char *)image + image->e_phoff);

    for (int i = 0; i < image->e_phnum; i++) {
        if (p[i].p_type == PT_DYNAMIC)
            return (const void *)((const char *)image + p[i].p_vaddr);
    }
    must(false, "the vDSO's dynamic section");
    return NULL;
}

static void find_vdso(void)
{
    const char *image = (const char *)getauxval(AT_SYSINFO_EHDR);
    const Elf32_Sym *symbols = NULL;
    const char *names = NULL;
    static const uint32_t no_hash[2];
    const uint32_t *hash = no_hash; // the second word is the number of symbols

    must(image != NULL, "the vDSO");
    for (const Elf32_Dyn *d = dynamic_section((const void *)image);
         d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_SYMTAB)
            symbols = (const void *)(image + d->d_un.d_ptr);
        else if (d->d_tag == DT_STRTAB)
            names = image + d->d_un.d_ptr;
        else if (d->d_tag == DT_HASH)
            hash = (const void *)(image + d->d_un.d_ptr);
    }
    must(symbols && names && hash != no_hash, "the vDSO's symbols");
    for (uint32_t i = 0; i < hash[1]; i++) {
        if (!strcmp(names + symbols[i].st_name, "__vdso_clock_gettime"))
            vdso_gettime = (void *)(image + symbols[i].st_value);
    }
    must(vdso_gettime != NULL, "the vDSO's clock_gettime");
}

static void do_vdso(int n)
{
    long t[2];
    int sum = 0;

    // Unrolled: the operation is so short that the loop would distort the
    // result.
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
        sum |= vdso_gettime(CLOCK_MONOTONIC, t);
    must(sum == 0, "the vDSO's clock_gettime");
}

static void do_yield(int n)
{
    long sum = 0;

    while (n-- > 0)
        sum |= call(SYS_sched_yield, 0, 0, 0);
    must(sum == 0, "sched_yield");
}

static void open_pipe(void)
{
    must(pipe(fds) == 0, "pipe");
}

static void close_pipe(void)
{
    close(fds[0]);
    close(fds[1]);
}

// Writes one byte to a pipe and reads one from the same or another pipe.
static void pass_bytes(int n, int to, int from)
{
    int sum = -2 * n;
    char byte = 0;

    while (n-- > 0) {
        sum += call(SYS_write, to, (long)&byte, 1);
        sum += call(SYS_read, from, (long)&byte, 1);
    }
    must(sum == 0, "pipe");
}

static void do_pipe(int n)
{
    pass_bytes(n, fds[1], fds[0]);
}

static void do_ping_pong(int n)
{
    pass_bytes(n, fds[1], back[0]);
}

static pid_t partner;

static void start_partner(void)
{
    char byte;

    open_pipe();
    must(pipe(back) == 0, "pipe");
    partner = fork_partner();
    if (partner != 0)
        return;
    while (read(fds[0], &byte, 1) == 1)
        (void)!write(back[1], &byte, 1);
    _exit(0);
}

static void end_partner(void)
{
    kill(partner, SIGKILL);
    must(end_of(partner) == SIGKILL, "the partner's status");
    close_pipe();
    close(back[0]);
    close(back[1]);
}

static volatile int signals;

static void on_signal(int signal)
{
    (void)signal;
    signals++;
}

static void catch_signal(void)
{
    struct sigaction action = { .sa_handler = on_signal };

    must(sigaction(SIGUSR1, &action, NULL) == 0, "sigaction");
    signals = 0;
}

// From here on the process has FPU registers, which the kernel saves and loads.
static void use_fpu(void)
{
    static volatile double x = 2;

    x /= 3;
    must(x > 0 && x < 1, "a division");
    catch_signal();
}

static void do_signal(int n)
{
    pid_t self = getpid();
    int expected = n;

    while (n-- > 0)
        call(SYS_kill, self, SIGUSR1, 0);
    must(signals == expected, "signals that came");
}

static char *map(size_t size)
{
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(p != MAP_FAILED, "mmap");
    return p;
}

static void unmap(char *p, size_t size)
{
    must(munmap(p, size) == 0, "munmap");
}

static void do_mmap(int n)
{
    while (n-- > 0)
        unmap(map(16 * PAGE), 16 * PAGE);
}

static char *pages;

static void map_pages(void)
{
    pages = map(FAULT_PAGES * PAGE);
}

static void do_fault(int n)
{
    for (int i = 0; i < n; i++)
        pages[i * PAGE] = 1;
}

static void unmap_pages(void)
{
    unmap(pages, FAULT_PAGES * PAGE);
}

// Maps, touches and unmaps `n` pages, FAULT_PAGES at a time.
static void do_memory(int n)
{
    for (; n > 0; n -= FAULT_PAGES) {
        map_pages();
        do_fault(FAULT_PAGES);
        unmap_pages();
    }
}

const struct operation calls[] = {
    { .name = "getpid", do_getpid, 1000 },
    { .name = "read-zero", do_read, 1000, open_devices, close_devices },
    { .name = "write-null", do_write, 1000, open_devices, close_devices },
    { .name = "open-close", do_open, 200 },
    { .name = "stat", do_stat, 200 },
    { .name = "clock-gettime", do_clock, 1000 },
    { .name = "clock-vdso", do_vdso, 1000, find_vdso },
    { .name = "sched-yield", do_yield, 1000 },
    { .name = "pipe", do_pipe, 500, open_pipe, close_pipe },
    { .name = "pipe-ping-pong", do_ping_pong, 500, start_partner, end_partner },
    { .name = "signal", do_signal, 500, catch_signal },
    { .name = "signal-fpu", do_signal, 500, use_fpu, .in_child = true },
    { .name = "mmap-munmap", do_mmap, 1000 },
    { .name = "page-fault", do_fault, FAULT_PAGES, map_pages, unmap_pages },
    { .name = "anonymous-page", do_memory, 10 * FAULT_PAGES },
    { .name = NULL },
};
