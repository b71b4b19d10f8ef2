// ASLR: programs are loaded at random addresses as randomize_va_space says.
// ADDR_NO_RANDOMIZE fixes the addresses, but not of set-user-ID programs.
#include "test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define RUNS 24
#define USER 1000u

enum { STACK, MMAP, HEAP, PARTS };

static int level(void)
{
    char text[8] = "";
    int fd = open("/proc/sys/kernel/randomize_va_space", O_RDONLY);
    check(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    return atoi(text);
}

// The program that run_often starts: writes its addresses.
static int report(void)
{
    unsigned at[PARTS] = {
        [STACK] = (uintptr_t)&at & -4096u, [HEAP] = syscall(SYS_brk, 0)
    };
    void *m = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    at[MMAP] = (uintptr_t)m;
    return write(1, at, sizeof(at)) == sizeof(at) ? 0 : 1;
}

static void run_program(const char *path, unsigned at[PARTS])
{
    int out[2];
    check(pipe(out) == 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        dup2(out[1], 1);
        execl(path, "aslr", "report", NULL);
        _exit(127);
    }
    close(out[1]);
    check(read(out[0], at, PARTS * sizeof(*at)) ==
          (ssize_t)(PARTS * sizeof(*at)));
    close(out[0]);
    check(waitpid(pid, NULL, 0) == pid);
}

static unsigned distinct(const unsigned *values, unsigned step)
{
    unsigned n = 0;
    for (unsigned i = 0; i < RUNS; i++) {
        unsigned before = 0;
        while (values[before * step] != values[i * step])
            before++;
        n += before == i;
    }
    return n;
}

static unsigned places[PARTS]; // number of distinct addresses

static void run_often(const char *path)
{
    unsigned at[RUNS][PARTS];
    for (unsigned i = 0; i < RUNS; i++)
        run_program(path, at[i]);
    for (unsigned part = 0; part < PARTS; part++)
        places[part] = distinct(&at[0][part], PARTS);
}

// Of 24 draws from at least 256 values, fewer than 10 are distinct with a
// probability below 1e-18.
static bool random_or_not(unsigned n, bool random)
{
    return random ? n >= 10 : n == 1;
}

static void by_level(int now)
{
    run_often("/proc/self/exe");
    check(random_or_not(places[STACK], now >= 1));
    check(random_or_not(places[MMAP], now >= 1));
    check(random_or_not(places[HEAP], now >= 2));
    ok("stack, mappings and heap");
}

// --- a position-independent program -----------------------------------------

// ELF header (ET_DYN, EM_386, one program header), PT_LOAD of 101 bytes at 0
// (r-x), and: call 1f; 1: popl %ebx; shrl $12, %ebx; movl $1, %eax; int $0x80.
// The exit status is the low byte of its page number.
static const char pie[] = "\x7f"
                          "ELF\1\1\1\0\0\0\0\0\0\0\0\0"
                          "\3\0\3\0\1\0\0\0\x54\0\0\0\x34\0\0\0\0\0\0\0\0\0\0\0"
                          "\x34\0\x20\0\1\0\x28\0\0\0\0\0"
                          "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x65\0\0\0\x65\0\0\0"
                          "\5\0\0\0\0\x10\0\0"
                          "\xe8\0\0\0\0\x5b\xc1\xeb\x0c\xb8\1\0\0\0\xcd\x80";

static void position_independent(int now)
{
    const char *name = "/tmp/aslr-pie";
    int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0700);
    check(fd >= 0 && write(fd, pie, sizeof(pie)) == sizeof(pie));
    close(fd);
    unsigned at[RUNS];
    for (unsigned i = 0; i < RUNS; i++) {
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            execl(name, name, NULL);
            _exit(127);
        }
        check(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        at[i] = WEXITSTATUS(status);
    }
    unlink(name);
    check(random_or_not(distinct(at, 1), now >= 1));
    ok("a position-independent program");
}

// --- personality ------------------------------------------------------------

static void fixed(void)
{
    check(personality(0xffffffff) == 0);
    check(personality(ADDR_NO_RANDOMIZE) == 0);
    check(personality(0xffffffff) == ADDR_NO_RANDOMIZE);
    run_often("/proc/self/exe");
    for (unsigned part = 0; part < PARTS; part++)
        check(places[part] == 1);
}

static const char *privileged = "/tmp/aslr-setuid";

static void fixed_with_rights(void)
{
    check(setresuid(USER, USER, USER) == 0);
    check(personality(ADDR_NO_RANDOMIZE) == 0);
    run_often(privileged);
    check(random_or_not(places[STACK], true));
}

static void by_personality(int now)
{
    char command[100];
    check(exited_with(in_child(fixed), 0));
    if (now > 0 && getuid() == 0) {
        snprintf(command, sizeof(command), "cp /test/aslr %s && chmod 4755 %s",
                 privileged, privileged);
        if (access("/test/aslr", X_OK) == 0) {
            check(system(command) == 0);
            check(exited_with(in_child(fixed_with_rights), 0));
            unlink(privileged);
        }
    }
    ok("the personality");
}

int main(int argc, char **argv)
{
    alarm(TEST_SECONDS);
    if (argc == 2 && strcmp(argv[1], "report") == 0)
        return report();
    int now = level();
    dprintf(1, "randomize_va_space is %d\n", now);
    by_level(now);
    position_independent(now);
    by_personality(now);
    return 0;
}
