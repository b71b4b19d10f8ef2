// Resource limits: kept, inherited, and enforced.
#include "test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#define MIB (1u << 20)

static void set(int which, rlim_t soft, rlim_t hard)
{
    struct rlimit r = { soft, hard };
    check(setrlimit(which, &r) == 0);
}

static void *map(size_t length, int prot)
{
    return mmap(NULL, length, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static bool is_strobe(void)
{
    struct utsname names;
    check(uname(&names) == 0);
    return strcmp(names.sysname, "Strobe") == 0;
}

// By brk(2), because musl's sbrk does nothing.
static bool grow_heap(unsigned bytes)
{
    unsigned long end = syscall(SYS_brk, 0);
    return (unsigned long)syscall(SYS_brk, end + bytes) == end + bytes;
}

static void kept(void)
{
    for (int which = 0; which < RLIM_NLIMITS; which++) {
        struct rlimit r;
        if (which == RLIMIT_NICE || which == RLIMIT_RTPRIO)
            continue;
        set(which, 40, 50);
        check(getrlimit(which, &r) == 0 && r.rlim_cur == 40 &&
              r.rlim_max == 50);
    }
}

static void inherited(void)
{
    set(RLIMIT_MEMLOCK, 5, 6);
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c",
              "test $(ulimit -l) = 0 -a $(ulimit -Hl) = 0", NULL);
        _exit(99);
    }
    int status;
    check(waitpid(child, &status, 0) == child && exited_with(status, 0));
}

static void of_others(void)
{
    struct rlimit r = { 7, 8 }, old;
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    check(prlimit(child, RLIMIT_RSS, &r, &old) == 0);
    check(prlimit(child, RLIMIT_RSS, NULL, &r) == 0);
    check(r.rlim_cur == 7 && r.rlim_max == 8 && old.rlim_cur == RLIM_INFINITY);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void wrong(void)
{
    struct rlimit r = { 9, 8 };
    check_error(setrlimit(RLIMIT_FSIZE, &r), EINVAL);
    r = (struct rlimit){ RLIM_INFINITY, RLIM_INFINITY };
    check_error(setrlimit(RLIMIT_NOFILE, &r), EPERM);
    set(RLIMIT_FSIZE, 100, 100);
    if (is_strobe())
        set(RLIMIT_FSIZE, 200, 200); // root may, but not in a container
    else
        set(RLIMIT_FSIZE, 100, 100);
    check(syscall(SYS_setresuid32, -1, 1000, -1) == 0);
    set(RLIMIT_FSIZE, 50, 100);
    r = (struct rlimit){ 50, 201 };
    check_error(setrlimit(RLIMIT_FSIZE, &r), EPERM);
}

static void file_size(void)
{
    char bytes[5000] = { 0 };
    struct stat s;
    int fd = open("/tmp/limits", O_CREAT | O_RDWR | O_TRUNC, 0644);
    check(ftruncate(fd, 9000) == 0);
    set(RLIMIT_FSIZE, 8000, RLIM_INFINITY);
    signal(SIGXFSZ, SIG_IGN);
    check(pwrite(fd, bytes, 5000, 4000) == 4000);
    check_error(pwrite(fd, bytes, 1, 8000), EFBIG);
    check_error(ftruncate(fd, 9001), EFBIG);
    check(ftruncate(fd, 8500) == 0); // smaller than it was
    check(fstat(fd, &s) == 0 && s.st_size == 8500);
    check(write(1, "", 0) == 0);
    signal(SIGXFSZ, SIG_DFL);
    pwrite(fd, bytes, 1, 8000);
}

static void address_space(void)
{
    set(RLIMIT_AS, 32 * MIB, RLIM_INFINITY);
    char *low = map(16 * MIB, PROT_READ);
    check(low != MAP_FAILED);
    check(map(32 * MIB, PROT_READ) == MAP_FAILED && errno == ENOMEM);
    check(mremap(low, 16 * MIB, 40 * MIB, MREMAP_MAYMOVE) == MAP_FAILED);
    // Replacing a mapping costs nothing.
    check(mmap(low, 16 * MIB, PROT_READ,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == low);
    check(!grow_heap(30 * MIB) && grow_heap(MIB));
    check(munmap(low, 16 * MIB) == 0 && map(16 * MIB, PROT_READ) != MAP_FAILED);
}

static void data(void)
{
    set(RLIMIT_DATA, 8 * MIB, RLIM_INFINITY);
    check(map(9 * MIB, PROT_READ | PROT_WRITE) == MAP_FAILED);
    char *low = map(9 * MIB, PROT_READ); // read-only memory is not data
    check(low != MAP_FAILED);
    check_error(mprotect(low, 9 * MIB, PROT_READ | PROT_WRITE), ENOMEM);
    check(mprotect(low, MIB, PROT_READ | PROT_WRITE) == 0);
    low = map(8 * MIB, PROT_READ); // two areas, each within the limit
    check(low != MAP_FAILED && mprotect(low, 4 * MIB, PROT_NONE) == 0);
    check_error(mprotect(low, 8 * MIB, PROT_READ | PROT_WRITE), ENOMEM);
    check(mprotect(low, 8 * MIB, PROT_READ) == 0); // (Linux changed some)
    check(!grow_heap(9 * MIB) && grow_heap(MIB));
}

static void use_stack(int left)
{
    char frame[65536];
    memset(frame, left, sizeof(frame));
    __asm__ volatile("" : : "r"(frame) : "memory");
    if (left)
        use_stack(left - 1);
    __asm__ volatile("" : : "r"(frame) : "memory");
}

static void stack(void)
{
    set(RLIMIT_STACK, MIB / 2, RLIM_INFINITY);
    use_stack(16);
}

static volatile int exceeded;

static void on_cpu_limit(int signal)
{
    (void)signal;
    exceeded++;
}

static void cpu_time(void)
{
    signal(SIGXCPU, on_cpu_limit);
    set(RLIMIT_CPU, 1, 3);
    while (exceeded < 2) // after one second and after two
        continue;
    for (;;) // the hard limit ends it
        check(exceeded == 2);
}

static void inherited_cpu_time(void)
{
    set(RLIMIT_CPU, 1, 1);
    pid_t child = fork();
    if (child == 0)
        for (;;)
            continue;
    int status;
    check(waitpid(child, &status, 0) == child && killed_by(status, SIGKILL));
}

static void threads(void)
{
    set(RLIMIT_NPROC, 1, 1);
    pid_t child = fork(); // root is exempt
    if (child == 0)
        _exit(0);
    check(child > 0 && waitpid(child, NULL, 0) == child);
    check(syscall(SYS_setresuid32, 4711, 4711, 4711) == 0);
    check_error(fork(), EAGAIN);
}

int main(void)
{
    check(exited_with(in_child(kept), 0));
    ok("limits are kept");
    check(exited_with(in_child(inherited), 0));
    check(exited_with(in_child(of_others), 0));
    ok("inherited, and those of others");
    check(exited_with(in_child(wrong), 0));
    ok("wrong ones are refused");
    check(killed_by(in_child(file_size), SIGXFSZ));
    ok("sizes of files");
    check(exited_with(in_child(address_space), 0));
    ok("the address space");
    check(exited_with(in_child(data), 0));
    ok("data");
    check(killed_by(in_child(stack), SIGSEGV));
    ok("the stack, that of the running program too");
    check(killed_by(in_child(cpu_time), SIGKILL));
    check(exited_with(in_child(inherited_cpu_time), 0));
    ok("CPU time");
    check(exited_with(in_child(threads), 0));
    ok("threads of a user");
    return 0;
}
