// Bad pointers: each pointer argument of each system call gets bad addresses;
// the call must fail with EFAULT.
//
// The calls come from the kernel's own table. The other arguments get a
// harmless value by their kind, or one from `specials` below.
#include "test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <strobe/kbox.h>

#define FOLDER "/tmp/badptr"
#define FILE_NAME FOLDER "/file"
#define LINK_NAME FOLDER "/link"

struct call {
    int number;
    const char *name;
    char kinds[7]; // one letter per argument (syscalls.def), then NUL
};

#define SYSCALL_ARG(kind, type, name) kind
#define SYSCALL_NO_ARGS 0
#define SYSCALL(number, name, ...) { number, #name, { __VA_ARGS__ } },
static const struct call calls[] = {
#include <strobe/syscalls.def>
};

#define CALLS (sizeof(calls) / sizeof(*calls))

// Calls that use a pointer only as a number, keep it for later or need not use
// it, and calls that do not return.
static const char *const exempt[] = {
    "clone", "set_tid_address", "brk",   "munmap",  "mprotect",
    "msync", "mremap",          "mmap2", "madvise", "reboot",
};

// Values for arguments.
enum {
    DEFAULT = 0x7f000000, // by the argument's kind
    THE_FILE,
    THE_FOLDER,
    THE_PIPE,
    THE_PHONE,
    THE_BUSY_PHONE, // a call on it has an answer due
    THE_PROGRAM,
    THE_LINK,
    THE_NODE, // of the sysinfo tree
    THE_TIMER,
    THE_SOCKET, // connected to itself, with a datagram
};

// Arguments with which a call uses the pointer at `place` (-1: at any). `other`
// is the result allowed besides EFAULT (0: none; 1: success; -1: any error).
struct special {
    const char *name;
    int place;
    int other;
    long args[6];
};

#define D DEFAULT

static const struct special specials[] = {
    { "waitpid", -1, 0, { -1, D, 0 } },
    { "wait4", -1, 0, { -1, D, 0, D } },
    { "waitid", -1, 0, { 0, 0, D, 4, D } },
    { "execve", -1, 0, { THE_PROGRAM, D, D } },
    { "getrlimit", -1, 0, { 7, D } },
    { "setrlimit", -1, 0, { 7, D } },
    { "ugetrlimit", -1, 0, { 7, D } },
    { "prlimit64", -1, 0, { 0, 7, D, D } },
    { "getgroups32", -1, 1, { 32, D } }, // the task may have no groups
    { "setgroups32", -1, EPERM, { 1, D } },
    { "futex", 3, 0, { D, 0, 0, D, 0 } },
    // No thread waits, so the kernel need not read the second word.
    { "futex", 4, 1, { D, 3, 1, 1, D } },
    { "futex_time64", 3, 0, { D, 0, 0, D, 0 } },
    { "futex_time64", 4, 1, { D, 3, 1, 1, D } },
    { "prctl", -1, 0, { 15, D } }, // PR_SET_NAME
    { "set_thread_area", -1, 0, { D } },
    { "rt_sigaction", -1, 0, { D, D, D, 8 } },
    { "rt_sigprocmask", -1, 0, { D, D, D, 8 } },
    { "rt_sigpending", -1, 0, { D, 8 } },
    { "rt_sigsuspend", -1, 0, { D, 8 } },
    { "rt_sigtimedwait", 1, EAGAIN, { D, D, D, 8 } }, // no signal: not written
    { "rt_sigtimedwait", -1, 0, { D, D, D, 8 } },
    { "rt_sigtimedwait_time64", 1, EAGAIN, { D, D, D, 8 } },
    { "rt_sigtimedwait_time64", -1, 0, { D, D, D, 8 } },
    { "sigaltstack", 1, 0, { 0, D } },
    { "settimeofday", 1, 0, { 0, D } },
    { "settimeofday", 0, 0, { D, 0 } },
    { "nanosleep", 1, 1, { D, D } }, // only when interrupted
    { "clock_nanosleep", 3, 1, { 1, 0, D, D } },
    { "clock_nanosleep_time64", 3, 1, { 1, 0, D, D } },
    { "timer_create", 1, 0, { 0, D, D } },
    { "timer_create", 2, 0, { 0, 0, D } },
    { "timer_settime", -1, 0, { THE_TIMER, 0, D, D } },
    { "timer_settime64", -1, 0, { THE_TIMER, 0, D, D } },
    { "timer_gettime", -1, 0, { THE_TIMER, D } },
    { "timer_gettime64", -1, 0, { THE_TIMER, D } },
    { "mincore", 0, EINVAL, { D, 4096, D } },
    { "mincore", 2, 0, { D, 4096, D } },
    { "readlink", -1, 0, { THE_LINK, D, D } },
    { "readlinkat", -1, 0, { D, THE_LINK, D, D } },
    { "ioctl", -1, 0, { THE_PIPE, 0x541b, D } },    // FIONREAD
    { "fcntl", -1, EINVAL, { THE_FILE, 5, D } },    // F_GETLK
    { "fcntl64", -1, EINVAL, { THE_FILE, 12, D } }, // F_GETLK64
    { "newselect", -1, 0, { 1, D, D, D, D } },
    { "pselect6", -1, 0, { 1, D, D, D, D, 0 } },
    { "pselect6_time64", -1, 0, { 1, D, D, D, D, 0 } },
    { "ppoll", -1, 0, { D, 1, D, D, 8 } },
    { "ppoll_time64", -1, 0, { D, 1, D, D, 8 } },
    { "pread64", -1, 0, { D, D, D, 0, 0 } },
    { "pwrite64", -1, 0, { D, D, D, 0, 0 } },
    { "preadv", -1, 0, { D, D, 1, 0, 0 } },
    { "pwritev", -1, 0, { D, D, 1, 0, 0 } },
    { "getdents64", -1, 0, { THE_FOLDER, D, 4096 } },
    { "statfs64", -1, 0, { D, 84, D } },
    { "fstatfs64", -1, 0, { D, 84, D } },
    { "chroot", -1, EPERM, { D } },
    { "mount", 4, -1, { D, D, D, 0, D } }, // any error: it must not mount
    { "mount", -1, -1, { D, D, D, 0, 0 } },
    { "umount2", -1, EPERM, { D, 0 } },
    { "mknod", -1, EPERM, { D, 0100644, 0 } },
    { "mknodat", -1, EPERM, { D, D, 0100644, 0 } },
    { "bind", -1, 0, { THE_SOCKET, D, 16 } },
    { "connect", -1, 0, { THE_SOCKET, D, 16 } },
    { "accept4", -1, EOPNOTSUPP, { THE_SOCKET, D, D, 0 } },
    // Sizes are 0 there, so nothing is written.
    { "getsockopt", 3, 1, { THE_SOCKET, SOL_SOCKET, SO_TYPE, D, D } },
    { "getsockopt", 4, 0, { THE_SOCKET, SOL_SOCKET, SO_TYPE, D, D } },
    { "setsockopt", -1, 0, { THE_SOCKET, SOL_SOCKET, SO_REUSEADDR, D, 4 } },
    { "getsockname", 1, 1, { THE_SOCKET, D, D } },
    { "getsockname", 2, 0, { THE_SOCKET, D, D } },
    { "getpeername", 1, 1, { THE_SOCKET, D, D } },
    { "getpeername", 2, 0, { THE_SOCKET, D, D } },
    { "sendto", 1, 0, { THE_SOCKET, D, D, 0, 0, 0 } },
    { "sendto", 4, 0, { THE_SOCKET, D, D, 0, D, 16 } },
    // The header is of zeros.
    { "sendmsg", -1, 0, { THE_SOCKET, D, 0 } },
    { "recvmsg", -1, 0, { THE_SOCKET, D, 0 } },
    { "recvfrom", 1, 0, { THE_SOCKET, D, D, 0, 0, 0 } },
    { "recvfrom", 4, 1, { THE_SOCKET, D, D, 0, D, D } },
    { "recvfrom", 5, 0, { THE_SOCKET, D, D, 0, D, D } },
    { "syslog", -1, 1, { 3, D, D } }, // the log may be empty
    { "sysinfo_get_data", -1, 0, { THE_NODE, 14, D, 64 } },
    { "sysinfo_get_keys", -1, 0, { THE_NODE, 14, D, 64 } },
    { "sysinfo_get_type", -1, 0, { THE_NODE, 14 } },
    { "ipc_call", -1, 0, { THE_PHONE, D } },
    { "ipc_wait", -1, 0, { THE_BUSY_PHONE, D, 1000 } },
};

#define SPECIALS (sizeof(specials) / sizeof(*specials))

static char *good; // a page of zeros
static char *edge; // the last bytes before an unmapped page

static const uint32_t bad_addresses[] = { 0x10, 0xc0000010, 0xfffffff0 };

#define BAD_ADDRESSES (sizeof(bad_addresses) / sizeof(*bad_addresses))

static long raw(int number, const long a[6])
{
    long r;
    // ebp is both the sixth argument and the frame pointer.
    __asm__ volatile("push %%ebp; push 20(%2); mov 16(%2), %%edi;"
                     "mov 12(%2), %%esi; mov 8(%2), %%edx; mov (%2), %%ebx;"
                     "mov 4(%2), %%ecx; pop %%ebp; int $0x80; pop %%ebp"
                     : "=a"(r)
                     : "0"(number), "c"(a)
                     : "ebx", "edx", "esi", "edi", "memory");
    return r;
}

static const struct special *special_of(const char *name, int place)
{
    for (size_t i = 0; i < SPECIALS; i++) {
        if (strcmp(specials[i].name, name) == 0 &&
            (specials[i].place == place || specials[i].place == -1))
            return &specials[i];
    }
    return NULL;
}

static bool is_exempt(const char *name)
{
    for (size_t i = 0; i < sizeof(exempt) / sizeof(*exempt); i++) {
        if (strcmp(exempt[i], name) == 0)
            return true;
    }
    return false;
}

static int socket_of_itself(void)
{
    struct sockaddr_in a = { .sin_family = AF_INET,
                             .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t size = sizeof(a);
    int s = socket(AF_INET, SOCK_DGRAM, 0);

    check(bind(s, (struct sockaddr *)&a, sizeof(a)) == 0);
    check(getsockname(s, (struct sockaddr *)&a, &size) == 0);
    check(connect(s, (struct sockaddr *)&a, sizeof(a)) == 0);
    check(send(s, good, 64, 0) == 64);
    return s;
}

static long value_of(long wanted, char kind)
{
    switch (wanted) {
    case THE_FILE:
        return open(FILE_NAME, O_RDWR);
    case THE_FOLDER:
        return open(FOLDER, O_RDONLY);
    case THE_PIPE:;
        int fds[2];
        check(pipe(fds) == 0);
        return fds[0];
    case THE_PHONE:
        return syscall(SYS_kbox_connect, getpid());
    case THE_BUSY_PHONE:;
        struct ipc_call call = { .method = 9999 };
        int phone = syscall(SYS_kbox_connect, getpid());
        check(syscall(SYS_ipc_call, phone, &call) == 0);
        return phone;
    case THE_PROGRAM:
        return (long)"/proc/self/exe";
    case THE_LINK:
        return (long)LINK_NAME;
    case THE_NODE:
        return (long)"system.threads";
    case THE_SOCKET:
        return socket_of_itself();
    case THE_TIMER:;
        int id;
        check(syscall(SYS_timer_create, 0, NULL, &id) == 0);
        return id;
    case DEFAULT:
        break;
    default:
        return wanted;
    }
    switch (kind) {
    case 'f':
        return open(FILE_NAME, O_RDWR);
    case 's':
        return (long)FILE_NAME;
    case 'p':
        return (long)good;
    case 'n':
        return 64;
    case 'u':
        return 1;
    case 'o':
        return 4; // a valid mode, and R_OK
    case 't':
        return getpid();
    case 'g':
        return SIGUSR1;
    default:
        return 0;
    }
}

static bool as_expected(long r, const struct special *s)
{
    int other = s != NULL ? s->other : 0;
    return r == -EFAULT || (other > 1 && r == -other) ||
           (other == 1 && r >= 0) || (other == -1 && r < 0 && r > -4096);
}

// In a child: makes the call with `address` at `place`.
static void try(const struct call *c, int place, uint32_t address)
{
    const struct special *s = special_of(c->name, place);
    long args[6] = { 0 };

    alarm(10);
    if (strncmp(c->name, "wait", 4) == 0) {
        if (fork() == 0)
            _exit(0);
    }
    for (int i = 0; i < 6; i++) {
        bool given = i < (int)strlen(c->kinds);
        args[i] = value_of(s != NULL && given ? s->args[i] : DEFAULT,
                           given ? c->kinds[i] : 'i');
    }
    args[place] = address;
    long r = raw(c->number, args);
    if (!as_expected(r, s)) {
        dprintf(1, "FAILED %s(%s): argument %d = %#x gives %ld\n", c->name,
                c->kinds, place, address, r);
        _exit(1);
    }
    _exit(0);
}

static int try_in_child(const struct call *c, int place, uint32_t address)
{
    int status;
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0)
        try(c, place, address);
    check(waitpid(pid, &status, 0) == pid);
    if (!WIFEXITED(status))
        dprintf(1, "FAILED %s: argument %d = %#x: died (%#x)\n", c->name, place,
                address, status);
    return !exited_with(status, 0);
}

static void walk_the_table(void)
{
    int failed = 0, tried = 0;
    bool is_strobe = syscall(SYS_kbox_connect, 1 << 22) < 0 && errno == ESRCH;

    for (size_t i = 0; i < CALLS; i++) {
        const struct call *c = &calls[i];
        if (is_exempt(c->name) || (c->number >= 1000 && !is_strobe))
            continue;
        for (int place = 0; c->kinds[place] != '\0'; place++) {
            if (c->kinds[place] != 'p' && c->kinds[place] != 's')
                continue;
            for (size_t b = 0; b < BAD_ADDRESSES; b++, tried++)
                failed += try_in_child(c, place, bad_addresses[b]);
            if (c->kinds[place] == 's') // runs into an unmapped page
                failed += try_in_child(c, place, (uint32_t)edge);
        }
    }
    check(failed == 0);
    check(tried > 300);
    ok("bad pointers to every system call");
}

// Pointers inside the structures that arguments point to.
static void inner_pointers(void)
{
    struct iovec parts[2] = { { good, 16 }, { (void *)0xc0000010, 16 } };
    char *arguments[] = { "x", (char *)0xc0000010, NULL };
    int fd = open(FILE_NAME, O_RDWR), fds[2];

    check(pipe(fds) == 0);
    check_error(readv(fd, parts + 1, 1), EFAULT);
    check_error(writev(fd, parts + 1, 1), EFAULT);
    check_error(writev(fds[1], parts + 1, 1), EFAULT);
    ssize_t n = readv(fd, parts, 2); // the valid part may be read first
    check(n == 16 || (n == -1 && errno == EFAULT));
    check_error(execve("/proc/self/exe", arguments, NULL), EFAULT);
    parts[0].iov_len = (size_t)-1;
    check_error(readv(fd, parts, 1), EINVAL);
    close(fd);

    int phone = syscall(SYS_kbox_connect, getpid());
    if (phone >= 0) {
        struct ipc_call call = { .method = IPC_M_SPROFILE_ALL,
                                 .arg = { SPROFILE_M_TASK_BEGIN, 0xc0000010 } };
        check(syscall(SYS_ipc_call, phone, &call) == 0);
        check(syscall(SYS_ipc_wait, phone, &call, 1000) == 0);
        check(call.retval == -EFAULT);
        close(phone);
    }
    ok("bad pointers inside of structures");
}

// Results are not written to read-only memory. A buffer may end where its
// mapping ends.
static void protected_memory(void)
{
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fd = open(FILE_NAME, O_RDWR);

    check(page != MAP_FAILED && fd >= 0);
    check(mprotect(page + 4096, 4096, PROT_NONE) == 0);
    check(read(fd, page + 4096 - 64, 64) == 64);
    check_error(read(fd, page + 4096, 64), EFAULT);
    check_error(write(fd, page + 4096, 64), EFAULT);
    check(mprotect(page, 4096, PROT_READ) == 0);
    check_error(read(fd, page, 64), EFAULT);
    check_error(pipe((int *)page), EFAULT);
    close(fd);
    ok("protected memory");
}

static void prepare(void)
{
    good = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                -1, 0);
    check(good != MAP_FAILED);
    char *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(two != MAP_FAILED && munmap(two + 4096, 4096) == 0);
    edge = memset(two + 4096 - 6, 'x', 6);
    mkdir(FOLDER, 0755);
    unlink(LINK_NAME);
    check(symlink("target", LINK_NAME) == 0);
    int fd = open(FILE_NAME, O_RDWR | O_CREAT | O_TRUNC, 0644);
    check(fd >= 0 && write(fd, good, 4096) == 4096);
    close(fd);
    signal(SIGUSR1, SIG_IGN);
}

int main(void)
{
    alarm(TEST_SECONDS);
    prepare();
    walk_the_table();
    inner_pointers();
    protected_memory();
    unlink(FILE_NAME);
    unlink(LINK_NAME);
    rmdir(FOLDER);
    return 0;
}
