// The grammar: the call that an operation makes, and the tokens of its
// arguments. Tokens follow the kinds in syscalls.def, so that a new call is
// tried without a change here; `choices` refines them for single calls.
#include "fuzz.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <strobe/kbox.h>
#include <strobe/sensor.h>

#define SYSCALL_ARG(kind, type, name) kind
#define SYSCALL_NO_ARGS 0
#define SYSCALL(number, name, ...) { number, #name, { __VA_ARGS__ } },
const struct call calls[] = {
#include <strobe/syscalls.def>
};

const uint32_t call_count = sizeof(calls) / sizeof(*calls);

_Static_assert(sizeof(calls) / sizeof(*calls) <= CALLS_MAX, "CALLS_MAX");

// --- what is known of single calls

enum how { ONE_OF, SOME_OF, A_TOKEN };

struct choice {
    const char *call;
    uint32_t place;
    enum how how;
    uint32_t token; // A_TOKEN
    const uint32_t *values;
    uint32_t count;
};

#define VALUES(...)                    \
    (const uint32_t[]){ __VA_ARGS__ }, \
        sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t)
#define ONE(call, place, ...)                       \
    {                                               \
        call, place, ONE_OF, 0, VALUES(__VA_ARGS__) \
    }
#define SOME(call, place, ...)                       \
    {                                                \
        call, place, SOME_OF, 0, VALUES(__VA_ARGS__) \
    }
#define IS(call, place, token)                       \
    {                                                \
        call, place, A_TOKEN, TOKEN_##token, NULL, 0 \
    }

#define OPEN_FLAGS                                                             \
    O_WRONLY, O_RDWR, O_CREAT, O_CREAT, O_TRUNC, O_APPEND, O_EXCL, O_NONBLOCK, \
        O_DIRECTORY, O_NOFOLLOW, O_CLOEXEC, O_PATH, O_NOCTTY
#define CLOCKS 0, 1, 2, 3, 4, 5, 6, 7, 8, 11, -2, -6
#define FUTEX_OPS 0, 1, 3, 4, 5, 6, 7, 9, 10, 128, 129, 131, 132, 133, 265
#define SIGNAL_FLAGS 1, 2, 4, 0x04000000, 0x08000000, 0x10000000, 0x40000000
#define CLONE_FLAGS                                                            \
    CLONE_VM, CLONE_FS, CLONE_FILES, CLONE_SIGHAND, CLONE_VFORK, CLONE_PARENT, \
        CLONE_THREAD, CLONE_SETTLS, CLONE_PARENT_SETTID, CLONE_CHILD_CLEARTID, \
        CLONE_CHILD_SETTID, 17, 17, 10, CLONE_SYSVSEM
#define IOCTLS                                                              \
    0x5401, 0x5402, 0x5403, 0x5404, 0x5409, 0x540a, 0x540b, 0x540e, 0x540f, \
        0x5410, 0x5411, 0x5412, 0x5413, 0x5414, 0x541b, 0x5421, 0x5422,     \
        0x5425, 0x5429, 0x5450, 0x5451, 0x80247009, 0x7001, 0x7002, 0x7003, \
        0x7004, 0x4004700c, 0x8004700b, SENSOR_CREATE, SENSOR_CREATE,       \
        SENSOR_CREATE
#define FCNTLS                                                              \
    F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, 5, 6, 7, 8, 9, 12, 13, 14, \
        1030, 1031, 1032, 36, 37, 38
#define PAGES 1, PAGE, PAGE, 2 * PAGE, 3 * PAGE, 8 * PAGE, 64 * PAGE, 5000
#define AT_FLAGS 0x100, 0x200, 0x400, 0x800, 0x1000
#define MESSAGE_FLAGS 2, 0x20, 0x40, 0x40, 0x4000, 1
#define SOCKET_OPTIONS 2, 3, 4, 6, 7, 8, 9, 20, 21, 66, 67
#define WAIT_FLAGS 1, 2, 4, 8, 0x1000000, 0x40000000

static const struct choice choices[] = {
    ONE("waitpid", 0, -1, -1, 0),
    SOME("waitpid", 2, 1, 1, 2, 8),
    ONE("wait4", 0, -1, -1, 0),
    SOME("wait4", 2, 1, 1, 2, 8, 0x40000000),
    ONE("waitid", 0, 0, 1, 2, 3),
    SOME("waitid", 3, WAIT_FLAGS),
    IS("execve", 1, arguments),
    IS("execve", 2, arguments),
    SOME("clone", 0, CLONE_FLAGS),
    IS("clone", 3, descriptor),
    ONE("getrlimit", 0, 0, 1, 2, 3, 4, 6, 7, 9, 11, 13),
    ONE("ugetrlimit", 0, 0, 1, 2, 3, 4, 6, 7, 9, 11, 13),
    ONE("setrlimit", 0, 0, 1, 2, 3, 4, 6, 7, 9, 11, 13),
    IS("setrlimit", 1, limit),
    ONE("prlimit64", 1, 0, 1, 2, 3, 4, 6, 7, 9, 11),
    IS("prlimit64", 2, limit),
    ONE("getrusage", 0, 0, 1, -1),
    ONE("setreuid32", 0, 0, 1000, -1),
    ONE("setreuid32", 1, 0, 1000, -1),
    ONE("setregid32", 0, 0, 1000, -1),
    ONE("setregid32", 1, 0, 1000, -1),
    ONE("setresuid32", 0, 0, 1000, -1),
    ONE("setresuid32", 1, 0, 1000, -1),
    ONE("setresuid32", 2, 0, 1000, -1),
    ONE("setresgid32", 0, 0, 1000, -1),
    ONE("setresgid32", 1, 0, 1000, -1),
    ONE("setresgid32", 2, 0, 1000, -1),
    ONE("setuid32", 0, 0, 1000),
    ONE("setgid32", 0, 0, 1000),
    ONE("setgroups32", 0, 0, 1, 4, 32),
    IS("setgroups32", 1, ids),
    ONE("getgroups32", 0, 0, 1, 32, 64),
    IS("set_thread_area", 0, descriptor),
    IS("get_thread_area", 0, descriptor),
    ONE("getpriority", 0, 0, 1, 2),
    ONE("setpriority", 0, 0, 1, 2),
    ONE("setpriority", 2, 0, 5, 19, -20),
    ONE("nice", 0, 1, 0, -1, 5),
    IS("futex", 0, memory),
    ONE("futex", 1, FUTEX_OPS),
    IS("futex", 3, time),
    IS("futex", 4, memory),
    IS("futex_time64", 0, memory),
    ONE("futex_time64", 1, FUTEX_OPS),
    IS("futex_time64", 3, time),
    IS("futex_time64", 4, memory),
    ONE("sched_setaffinity", 1, 4, 4, 8, 128),
    IS("sched_setaffinity", 2, words),
    ONE("sched_getaffinity", 1, 4, 4, 8, 128),
    ONE("alarm", 0, 0, 1, 100),
    ONE("setitimer", 0, 0, 1, 2),
    IS("setitimer", 1, interval),
    ONE("getitimer", 0, 0, 1, 2),
    IS("rt_sigaction", 1, action),
    ONE("rt_sigaction", 3, 8),
    ONE("rt_sigprocmask", 0, 0, 1, 2),
    IS("rt_sigprocmask", 1, signals),
    ONE("rt_sigprocmask", 3, 8),
    ONE("rt_sigpending", 1, 8, 4),
    IS("rt_sigtimedwait", 0, signals),
    IS("rt_sigtimedwait", 2, time),
    ONE("rt_sigtimedwait", 3, 8),
    IS("rt_sigtimedwait_time64", 0, signals),
    IS("rt_sigtimedwait_time64", 2, time),
    ONE("rt_sigtimedwait_time64", 3, 8),
    IS("rt_sigsuspend", 0, signals),
    ONE("rt_sigsuspend", 1, 8),
    IS("sigaltstack", 0, stack),
    IS("settimeofday", 0, time),
    IS("rt_sigqueueinfo", 2, words),
    IS("stime", 0, words),
    IS("adjtimex", 0, adjustment),
    IS("clock_adjtime", 1, adjustment),
    IS("clock_adjtime64", 1, adjustment),
    ONE("clock_adjtime", 0, CLOCKS),
    ONE("clock_adjtime64", 0, CLOCKS),
    IS("nanosleep", 0, time),
    ONE("timer_create", 0, CLOCKS),
    IS("timer_create", 1, event),
    IS("timer_create", 2, words),
    ONE("timer_settime", 0, 0, 1, 2, 3),
    ONE("timer_settime64", 0, 0, 1, 2, 3),
    IS("timer_settime", 2, interval),
    IS("timer_settime64", 2, interval),
    ONE("timer_settime", 1, 0, 1),
    ONE("timer_settime64", 1, 0, 1),
    ONE("timer_gettime", 0, 0, 1, 2, 3),
    ONE("timer_gettime64", 0, 0, 1, 2, 3),
    ONE("timer_delete", 0, 0, 1, 2, 3),
    ONE("timer_getoverrun", 0, 0, 1, 2, 3),
    ONE("clock_settime", 0, CLOCKS),
    ONE("clock_settime64", 0, CLOCKS),
    IS("clock_settime", 1, time),
    IS("clock_settime64", 1, time),
    ONE("clock_gettime", 0, CLOCKS),
    ONE("clock_gettime64", 0, CLOCKS),
    ONE("clock_getres", 0, CLOCKS),
    ONE("clock_getres_time64", 0, CLOCKS),
    ONE("clock_nanosleep", 0, CLOCKS),
    ONE("clock_nanosleep_time64", 0, CLOCKS),
    IS("clock_nanosleep", 2, time),
    IS("clock_nanosleep_time64", 2, time),
    ONE("clock_nanosleep", 1, 0, 1),
    ONE("clock_nanosleep_time64", 1, 0, 1),
    IS("mmap", 0, mapping),
    IS("munmap", 0, memory),
    ONE("munmap", 1, PAGES),
    IS("mprotect", 0, memory),
    ONE("mprotect", 1, PAGES),
    ONE("mprotect", 2, 0, 1, 3, 3, 7, 5, 4),
    IS("msync", 0, memory),
    ONE("msync", 1, PAGES),
    ONE("msync", 2, 1, 2, 4, 6),
    IS("mremap", 0, memory),
    ONE("mremap", 1, PAGES),
    ONE("mremap", 2, PAGES),
    ONE("mremap", 3, 0, 1, 3, 5, 7),
    IS("mremap", 4, memory),
    IS("mmap2", 0, memory),
    ONE("mmap2", 1, PAGES),
    ONE("mmap2", 2, 0, 1, 3, 3, 7, 5),
    ONE("mmap2", 3, 0x21, 0x22, 0x22, 0x31, 0x32, 0x32, 0x8022, 0x8031, 1, 2,
        0x11, 0x12, 0x10022, 0x100032, 3, 0x8011),
    ONE("mmap2", 5, 0, 0, 1, 2),
    IS("mincore", 0, memory),
    ONE("mincore", 1, PAGES),
    IS("madvise", 0, memory),
    ONE("madvise", 1, PAGES),
    ONE("madvise", 2, 0, 1, 2, 3, 4, 8, 10, 11, 12),
    SOME("open", 1, OPEN_FLAGS),
    SOME("openat", 2, OPEN_FLAGS),
    ONE("lseek", 2, 0, 1, 2, 3, 4),
    ONE("llseek", 4, 0, 1, 2),
    ONE("llseek", 1, 0, 0, 1),
    ONE("access", 1, 0, 1, 2, 4),
    ONE("faccessat", 2, 0, 1, 2, 4),
    ONE("faccessat2", 2, 0, 1, 2, 4),
    IS("mount", 0, disk),
    IS("mount", 2, filesystem),
    ONE("mount", 3, 0, 0, 0, 1, 0x20, 0x1000),
    ONE("umount2", 1, 0, 0, 1, 2, 4, 8),
    ONE("ioctl", 1, IOCTLS),
    IS("ioctl", 2, request),
    ONE("fcntl", 1, FCNTLS),
    ONE("fcntl64", 1, FCNTLS),
    IS("fcntl", 2, lock),
    IS("fcntl64", 2, lock),
    IS("select", 0, select),
    ONE("newselect", 0, 0, 1, 16, 64, 1024),
    IS("newselect", 1, sets),
    IS("newselect", 2, sets),
    IS("newselect", 3, sets),
    IS("newselect", 4, time),
    ONE("pselect6", 0, 0, 1, 16, 64),
    IS("pselect6", 1, sets),
    IS("pselect6", 2, sets),
    IS("pselect6", 3, sets),
    IS("pselect6", 4, time),
    ONE("pselect6_time64", 0, 0, 1, 16, 64),
    IS("pselect6_time64", 1, sets),
    IS("pselect6_time64", 2, sets),
    IS("pselect6_time64", 4, time),
    ONE("truncate", 1, 0, 1, PAGE, 100000),
    ONE("ftruncate", 1, 0, 1, 100000),
    ONE("truncate64", 1, 0, 1, 4097),
    ONE("truncate64", 2, 0, 0, 1),
    ONE("ftruncate64", 1, 0, 1, 4097),
    ONE("ftruncate64", 2, 0, 0, 1),
    ONE("flock", 1, 1, 2, 4, 5, 6, 8),
    IS("readv", 1, iovec),
    IS("writev", 1, iovec),
    ONE("readv", 2, 0, 1, 2, 3, 8, 1025),
    ONE("writev", 2, 0, 1, 2, 3, 8, 1025),
    IS("preadv", 1, iovec),
    IS("pwritev", 1, iovec),
    ONE("preadv", 2, 0, 1, 2, 8),
    ONE("pwritev", 2, 0, 1, 2, 8),
    ONE("preadv", 4, 0, 0, 1),
    ONE("pwritev", 4, 0, 0, 1),
    ONE("pread64", 4, 0, 0, 1),
    ONE("pwrite64", 4, 0, 0, 1),
    IS("poll", 0, polls),
    ONE("poll", 1, 0, 1, 4, 8),
    ONE("poll", 2, 0, 0, 1, 3),
    IS("ppoll", 0, polls),
    ONE("ppoll", 1, 0, 1, 4, 8),
    IS("ppoll", 2, time),
    IS("ppoll", 3, signals),
    ONE("ppoll", 4, 8),
    IS("ppoll_time64", 0, polls),
    ONE("ppoll_time64", 1, 0, 1, 4, 8),
    IS("ppoll_time64", 2, time),
    IS("ppoll_time64", 3, signals),
    ONE("ppoll_time64", 4, 8),
    IS("utime", 1, words),
    IS("utimes", 1, time),
    IS("futimesat", 2, time),
    IS("utimensat", 2, time),
    IS("utimensat_time64", 2, time),
    SOME("utimensat", 3, AT_FLAGS),
    SOME("utimensat_time64", 3, AT_FLAGS),
    SOME("fchownat", 4, AT_FLAGS),
    SOME("fstatat64", 3, AT_FLAGS),
    ONE("unlinkat", 2, 0, 0x200),
    ONE("linkat", 4, 0, 0x400, 0x1000),
    SOME("statx", 2, AT_FLAGS),
    ONE("renameat2", 4, 0, 0, 1, 2, 4),
    SOME("faccessat2", 3, AT_FLAGS),
    ONE("statfs64", 1, 84),
    ONE("fstatfs64", 1, 84),
    ONE("mknod", 1, 0100644, 0010600, 0020600, 0140600),
    ONE("mknodat", 2, 0100644, 0010600, 0020600, 0140600),
    ONE("mknod", 2, 0x103, 0x105, 0x107, 0x108),
    ONE("mknodat", 3, 0x103, 0x105),
    IS("pipe", 0, zeros),
    IS("pipe2", 0, zeros),
    ONE("pipe2", 1, 0, O_NONBLOCK, O_NONBLOCK | O_CLOEXEC),
    ONE("dup3", 2, 0, O_CLOEXEC),
    ONE("syslog", 0, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10),
    ONE("getrandom", 2, 0, 1, 2, 3),
    IS("sethostname", 0, text),
    ONE("sethostname", 1, 0, 5, 64),
    IS("sysinfo_get_data", 0, node),
    IS("sysinfo_get_keys", 0, node),
    IS("sysinfo_get_type", 0, node),
    IS("sysinfo_get_data", 1, length),
    IS("sysinfo_get_keys", 1, length),
    IS("sysinfo_get_type", 1, length),
    IS("ipc_call", 1, call),
    IS("ipc_wait", 1, call),
    ONE("ipc_wait", 2, 0, 0, 1, 3),
    IS("ipc_answer", 1, call),
    ONE("ipc_forward", 1, 1, 2, 3, 4, 5),
    IS("ipc_forward", 3, call),
    ONE("ipc_box", 0, 0, 0, 0, 1),
    ONE("ipc_irq", 1, 0, 1, 4, 8, 32, 33, 40, 255, 256),
    ONE("ipc_irq", 2, 0, 1),
    ONE("socket", 0, 2, 2, 2, 1, 10),
    ONE("socket", 1, 2, 2, 2, 0x802, 0x80002, 1),
    ONE("socket", 2, 0, 0, 17, 6),
    IS("bind", 0, socket),
    IS("connect", 0, socket),
    IS("listen", 0, socket),
    IS("accept4", 0, socket),
    IS("getsockopt", 0, socket),
    IS("setsockopt", 0, socket),
    IS("getsockname", 0, socket),
    IS("getpeername", 0, socket),
    IS("sendto", 0, socket),
    IS("sendmsg", 0, socket),
    IS("recvfrom", 0, socket),
    IS("recvmsg", 0, socket),
    IS("shutdown", 0, socket),
    IS("bind", 1, address),
    ONE("bind", 2, 16, 16, 16, 8, 128),
    IS("connect", 1, address),
    ONE("connect", 2, 16, 16, 16, 8),
    IS("sendto", 4, address),
    ONE("sendto", 5, 16, 16, 0, 8),
    SOME("sendto", 3, MESSAGE_FLAGS),
    IS("sendmsg", 1, message),
    SOME("sendmsg", 2, MESSAGE_FLAGS),
    IS("recvfrom", 4, memory),
    IS("recvfrom", 5, zeros),
    SOME("recvfrom", 3, MESSAGE_FLAGS),
    IS("recvmsg", 1, message),
    SOME("recvmsg", 2, MESSAGE_FLAGS),
    IS("getsockname", 2, words),
    IS("getpeername", 2, words),
    ONE("getsockopt", 1, 1, 1, 0, 17),
    ONE("getsockopt", 2, SOCKET_OPTIONS),
    IS("getsockopt", 4, words),
    ONE("setsockopt", 1, 1, 1, 0, 17),
    ONE("setsockopt", 2, SOCKET_OPTIONS),
    IS("setsockopt", 3, time),
    ONE("setsockopt", 4, 4, 8, 16),
    ONE("shutdown", 1, 0, 1, 2),
    ONE("profile", 1, 0, 0x8048000, 0x8049000),
    ONE("profile", 2, 0, 0x8050000, 0x804a000),
};

static const char *const descriptor_calls[] = {
    "open", "openat",      "creat",   "dup",          "dup2",
    "dup3", "ipc_connect", "ipc_box", "kbox_connect", "socket",
};
static const char *const fatal_calls[] = {
    "exit", "exit_group", "execve", "sigreturn", "rt_sigreturn",
};
static const char *const sparing_calls[] = {
    "getpgid",     "getsid",       "getpriority", "sched_getaffinity",
    "ipc_connect", "kbox_connect", "profile",
};

static bool is_among(const char *call, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(call, names[i]) == 0)
            return true;
    }
    return false;
}
#define IS_AMONG(call, names) \
    is_among(call, names, sizeof(names) / sizeof(*(names)))

static const struct choice *choice_of(const char *call, uint32_t place)
{
    for (size_t i = 0; i < sizeof(choices) / sizeof(*choices); i++) {
        if (choices[i].place == place && strcmp(choices[i].call, call) == 0)
            return &choices[i];
    }
    return NULL;
}

// All of that by a call's index, because making operations must not cost more
// than the calls themselves. Read-only, because operations overwrite variables:
// one that was then made on a task outside its episode killed the machine's
// shell.
static struct known {
    const struct choice *choice[ARGUMENTS];
    bool is_fatal, spares_others, gives_descriptor;
} __attribute__((aligned(32))) known[CALLS_MAX] __attribute__((aligned(PAGE)));
_Static_assert(sizeof(known) % PAGE == 0, "nothing else becomes read-only");

void grammar_prepare(void)
{
    for (uint32_t i = 0; i < call_count; i++) {
        const char *name = calls[i].name;
        known[i] = (struct known){
            .is_fatal = IS_AMONG(name, fatal_calls),
            .spares_others = IS_AMONG(name, sparing_calls),
            .gives_descriptor = IS_AMONG(name, descriptor_calls),
        };
        for (uint32_t a = 0; a < ARGUMENTS; a++)
            known[i].choice[a] = choice_of(name, a);
    }
    if (mprotect(known, sizeof(known), PROT_READ) < 0)
        perror("fuzz: mprotect");
}

bool call_gives_descriptor(uint32_t call)
{
    return known[call].gives_descriptor;
}

bool call_spares_others(uint32_t call)
{
    return known[call].spares_others;
}

// --- tokens

static struct token number(uint32_t value)
{
    return (struct token){ TOKEN_num, value };
}

static struct token token(struct draw *d, uint32_t kind)
{
    return (struct token){ kind, draw_word(d) };
}

static struct token chosen(struct draw *d, const struct choice *c)
{
    if (c->how == A_TOKEN)
        return token(d, c->token);
    if (c->how == ONE_OF)
        return number(c->values[draw_below(d, c->count)]);
    uint32_t sum = 0;
    for (uint32_t n = draw_below(d, 5); n > 0; n--)
        sum |= c->values[draw_below(d, c->count)];
    return number(sum);
}

static struct token by_pointer(struct draw *d)
{
    switch (draw_below(d, 8)) {
    case 0:
        return token(d, TOKEN_edge);
    case 1:
        return number(0);
    case 2:
    case 3:
        return token(d, TOKEN_words);
    case 4:
        return token(d, TOKEN_zeros);
    default:
        return token(d, TOKEN_memory);
    }
}

static uint32_t some_size(struct draw *d)
{
    static const uint32_t sizes[] = { 0,    1,    4,    8,    16,         64,
                                      100,  256,  1000, 4095, 4096,       4097,
                                      8192, 8193, 5,    2,    0x7fffffff, -1 };
    return sizes[draw_below(d, sizeof(sizes) / sizeof(*sizes))];
}

static struct token by_kind(struct draw *d, char kind)
{
    switch (kind) {
    case 'f':
        return token(d, TOKEN_fd);
    case 'p':
        return by_pointer(d);
    case 's':
        return token(d, TOKEN_path);
    case 't':
        return token(d, draw_below(d, 8) ? TOKEN_victim : TOKEN_task);
    case 'g':
        return number(draw_below(d, 66));
    case 'n':
        return number(some_size(d));
    case 'o':
        return number(draw_below(d, 4) ? draw_below(d, 8) << 6 | 044
                                       : draw_below(d, 010000));
    case 'x':
        return number(draw_below(d, 2) ? 0 : 1u << draw_below(d, 32));
    default:
        return number(draw_below(d, 4) ? draw_below(d, 8) : some_size(d));
    }
}

static struct token any(struct draw *d, uint32_t call, uint32_t place)
{
    const struct call *c = &calls[call];
    bool is_pointer = c->kinds[place] == 'p' || c->kinds[place] == 's';
    // (A random task id may be the supervisor's.)
    if (c->kinds[place] != 't' && draw_below(d, 32) == 0) {
        if (is_pointer)
            return token(d, draw_below(d, 4) ? TOKEN_bad : TOKEN_own);
        return number(draw_word(d) >> draw_below(d, 32));
    }
    const struct choice *choice = known[call].choice[place];
    if (choice != NULL && draw_below(d, 16))
        return chosen(d, choice);
    return by_kind(d, c->kinds[place]);
}

static uint32_t some_call(struct draw *d)
{
    uint32_t call = draw_below(d, call_count);
    // Calls that end their task are made less often.
    while (known[call].is_fatal && draw_below(d, 16))
        call = draw_below(d, call_count);
    return call;
}

void grammar_make(uint64_t seed, uint32_t index, struct operation *op)
{
    struct draw d = draw_of(seed, index);
    memset(op, 0, sizeof(*op));
    op->worker = draw_below(&d, WORKERS);
    op->call = some_call(&d);
    op->slot = draw_below(&d, SLOTS);
    for (uint32_t i = 0; calls[op->call].kinds[i] != '\0'; i++)
        op->argument[i] = any(&d, op->call, i);
}
