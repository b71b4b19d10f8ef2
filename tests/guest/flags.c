// Flags: tries each bit of each flags argument in the system call table. A call
// must obey a flag or refuse it; `flags` says which it refuses, and how. A call
// that is not listed fails the test.
#include "test.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

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

static int file, folder, failures;
static char *page, *scratch;

// Placeholders for argument values known only at run time.
enum { PAGE = 0x7f000000, SCRATCH, THE_FILE, THE_FOLDER, HERE, NAME, NEW };

// A call with a flags argument at `place`: it obeys the bits `obeyed` and
// refuses each of the others with `error`.
struct flags {
    const char *name;
    int place;
    unsigned long obeyed;
    int error;
    long args[6];
};

// clone: flags that are obeyed, and flags that ask for nothing.
#define CLONE_OBEYED                                              \
    (0xfful | CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | \
     CLONE_PTRACE | CLONE_VFORK | CLONE_PARENT | CLONE_THREAD |   \
     CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |         \
     CLONE_CHILD_CLEARTID | CLONE_DETACHED | CLONE_UNTRACED |     \
     CLONE_CHILD_SETTID | CLONE_IO)
#define MAP_OBEYED                                                        \
    (0x0fl | MAP_FIXED | MAP_ANONYMOUS | MAP_DENYWRITE | MAP_EXECUTABLE | \
     MAP_LOCKED | MAP_NORESERVE | MAP_POPULATE | MAP_NONBLOCK | MAP_STACK)
#define WAIT_OBEYED (WNOHANG | WUNTRACED | WCONTINUED | 0xc0000000ul)
#define WAITID_OBEYED (WEXITED | WNOWAIT)
#define MOUNT_OBEYED                                                          \
    (MS_RDONLY | MS_NOSUID | MS_SYNCHRONOUS | MS_REMOUNT | 128 | MS_NOATIME | \
     MS_NODIRATIME | MS_SILENT)
#define SOCKET_OBEYED (0xful | SOCK_NONBLOCK | SOCK_CLOEXEC) // and the type
#define SETFL_IGNORED (~(unsigned long)(O_ASYNC | O_DIRECT)) // as by Linux

// In the order of the table.
static const struct flags flags[] = {
    { "waitpid", 2, WAIT_OBEYED, EINVAL, { -1, 0, WNOHANG } },
    { "wait4", 2, WAIT_OBEYED, EINVAL, { -1, 0, WNOHANG, 0 } },
    { "waitid", 3, WAIT_OBEYED | WAITID_OBEYED, EINVAL, { 0, 0, 0, 5, 0 } },
    { "clone", 0, CLONE_OBEYED, EINVAL, { SIGCHLD } },
    // FUTEX_WAKE: any other bit makes it another operation, or none.
    { "futex", 1, 0x8f, ENOSYS, { PAGE, FUTEX_WAKE, 1, 0, PAGE, 0 } },
    { "futex_time64", 1, 0x8f, ENOSYS, { PAGE, FUTEX_WAKE, 1, 0, PAGE, 0 } },
    { "mprotect", 2, 7, EINVAL, { PAGE, 4096, PROT_READ | PROT_WRITE } },
    { "msync", 2, 7, EINVAL, { PAGE, 4096, 0 } },
    { "mremap", 3, 3, EINVAL, { PAGE, 4096, 4096, 0, 0 } },
    { "mmap2", 3, MAP_OBEYED, EOPNOTSUPP, { 0, 4096, 1, 3, THE_FILE, 0 } },
    { "mount", 3, MOUNT_OBEYED, EINVAL, { 0, HERE, NAME, 0, 0 } },
    { "umount2", 1, 3, EINVAL, { HERE, 0 } },
    { "personality", 0, ADDR_NO_RANDOMIZE | PER_LINUX32, EINVAL, { 0 } },
    { "flock", 1, 15, EINVAL, { THE_FILE, LOCK_UN } },
    { "fchownat", 4, 0x1100, EINVAL, { THE_FOLDER, NAME, -1, -1, 0 } },
    { "fstatat64", 3, 0x1900, EINVAL, { THE_FOLDER, NAME, SCRATCH, 0 } },
    { "unlinkat", 2, 0x200, EINVAL, { THE_FOLDER, NEW, 0 } },
    { "linkat", 4, 0x1400, EINVAL, { THE_FOLDER, NAME, THE_FOLDER, NEW, 0 } },
    { "utimensat", 3, 0x1100, EINVAL, { THE_FOLDER, NAME, 0, 0 } },
    { "utimensat_time64", 3, 0x1100, EINVAL, { THE_FOLDER, NAME, 0, 0 } },
    { "dup3", 2, O_CLOEXEC, EINVAL, { THE_FILE, 77, 0 } },
    { "pipe2", 1, O_CLOEXEC | O_NONBLOCK, EINVAL, { SCRATCH, 0 } },
    { "renameat2", 4, 1, EINVAL, { THE_FOLDER, NEW, THE_FOLDER, NEW, 0 } },
    { "statx", 2, 0x7900, EINVAL, { THE_FOLDER, NAME, 0, 0x7ff, SCRATCH } },
    { "faccessat2", 3, 0x1300, EINVAL, { THE_FOLDER, NAME, 0, 0 } },
    { "socket", 1, SOCKET_OBEYED, EINVAL, { AF_INET, SOCK_DGRAM, 0 } },
    { "accept4", 3, SOCK_NONBLOCK | SOCK_CLOEXEC, EINVAL, { THE_FILE, 0, 0 } },
    { "getrandom", 2, 7, EINVAL, { SCRATCH, 1, 0 } },
    // F_SETFL only.
    { "fcntl", 2, SETFL_IGNORED, EINVAL, { THE_FILE, F_SETFL, O_RDWR } },
    { "fcntl64", 2, SETFL_IGNORED, EINVAL, { THE_FILE, F_SETFL, O_RDWR } },
};

// Calls whose 'x' is not flags, or whose unknown bits Linux ignores, too.
static const char *const exempt[] = {
    "madvise", // an advice number: tested below
    "open",
    "openat",
    "sendto",
    "recvfrom", // Linux ignores unknown bits
    "timer_settime",
    "timer_settime64", // likewise
    "clock_nanosleep",
    "clock_nanosleep_time64",
    "mknod",
    "mknodat", // a device number
    "ioctl",   // a number of the file's own
    "reboot",  // two magic numbers
    "ipc_box",
    "profile", // Strobe's own: tests/guest/ipc_calls.c, ...
};

#define FLAGS (sizeof(flags) / sizeof(*flags))
#define EXEMPT (sizeof(exempt) / sizeof(*exempt))

static bool is_exempt(const char *name)
{
    for (unsigned i = 0; i < EXEMPT; i++) {
        if (strcmp(exempt[i], name) == 0)
            return true;
    }
    return false;
}

static const struct flags *flags_of(const char *name)
{
    for (unsigned i = 0; i < FLAGS; i++) {
        if (strcmp(flags[i].name, name) == 0)
            return &flags[i];
    }
    return NULL;
}

static long value(long arg)
{
    switch (arg) {
    case PAGE:
        return (long)page;
    case SCRATCH:
        memset(scratch, 0, 64);
        return (long)scratch;
    case THE_FILE:
        return file;
    case THE_FOLDER:
        return folder;
    case HERE:
        return (long)"here";
    case NAME:
        return (long)"name";
    case NEW:
        return (long)"new";
    }
    return arg;
}

static long make(int number, const struct flags *f, unsigned long bits)
{
    long args[6];
    for (int i = 0; i < 6; i++)
        args[i] = value(f->args[i]);
    args[f->place] |= (long)bits;
    errno = 0;
    return syscall(number, args[0], args[1], args[2], args[3], args[4],
                   args[5]);
}

static void try_bits(const struct call *c, const struct flags *f)
{
    for (int bit = 0; bit < 32; bit++) {
        unsigned long mask = 1ul << bit;
        if (f->obeyed & mask)
            continue;
        long got = make(c->number, f, mask);
        if (got == 0 && strcmp(c->name, "clone") == 0)
            _exit(0);
        if (got == -1 && errno == f->error)
            continue;
        dprintf(1, "FAILED %s: bit 0x%lx gives %ld (%s), not %s\n", c->name,
                mask, got, strerror(errno), strerror(f->error));
        failures++;
    }
}

static void every_call(void)
{
    for (unsigned i = 0; i < CALLS; i++) {
        const struct flags *f = flags_of(calls[i].name);
        if (f) {
            try_bits(&calls[i], f);
        } else if (strchr(calls[i].kinds, 'x') && !is_exempt(calls[i].name)) {
            dprintf(1, "FAILED: which flags has %s?\n", calls[i].name);
            failures++;
        }
    }
    if (failures)
        _exit(1);
    ok("flags that no call obeys are refused");
}

// --- what is not a bit ------------------------------------------------------

static void advice(void)
{
    static const int refused[] = { 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 18, 99 };
    for (unsigned i = 0; i < sizeof(refused) / sizeof(*refused); i++)
        check_error(madvise(page, 4096, refused[i]), EINVAL);
    ok("advice that is not followed is refused");
}

static void mount_options(void)
{
    check_error(mount("x", "here", "tmpfs", 0, "size=1m"), EINVAL);
    check_error(mount("x", "here", "tmpfs", MS_RDONLY, NULL), EINVAL);
    check_error(mount("x", "/", NULL, MS_REMOUNT | MS_RDONLY, NULL), EINVAL);
    check_error(mount("x", "here", "tmpfs", 0, (void *)8), EFAULT);
    check(mount("x", "here", "tmpfs", MS_NOATIME | 0xc0ed0000ul, "") == 0);
    check(umount("here") == 0);
    ok("mount: options");
}

static void futexes(void)
{
    char *gone =
        mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(munmap(gone, 4096) == 0);
    check_error(syscall(SYS_futex, gone, FUTEX_WAKE, 1), EFAULT);
    check_error(syscall(SYS_futex, page, FUTEX_REQUEUE, 1, 1, gone), EFAULT);
    check_error(syscall(SYS_futex, gone, FUTEX_WAIT, 0, 0), EFAULT);
    check_error(syscall(SYS_futex, gone, FUTEX_WAIT_PRIVATE, 0, 0), EFAULT);
    check(syscall(SYS_futex, page, FUTEX_WAKE, 1) == 0);
    ok("futexes: of memory that is there");
}

static void set_id_bits(void)
{
    struct stat s;
    int fd = open("suid", O_CREAT | O_RDWR, 0755);
    check(fchmod(fd, 06755) == 0 && write(fd, "x", 1) == 1);
    check(fstat(fd, &s) == 0 && (s.st_mode & 07777) == 06755); // root's stay
    check(fchown(fd, 5, 6) == 0);
    check(fstat(fd, &s) == 0 && (s.st_mode & 07777) == 0755);
    check(fchmod(fd, 06745) == 0 && chown("suid", -1, 7) == 0);
    check(fstat(fd, &s) == 0 && (s.st_mode & 07777) == 02745);
    check(mkdir("sgid", 0755) == 0 && chmod("sgid", 02755) == 0);
    check(chown("sgid", 5, 6) == 0);
    check(stat("sgid", &s) == 0 && (s.st_mode & 07777) == 02755);
    for (int cut = 0; cut < 2; cut++) {
        check(fchmod(fd, 06755) == 0);
        pid_t child = fork();
        if (child == 0) {
            check(syscall(SYS_setresuid32, -1, 1000, -1) == 0);
            check(cut ? ftruncate(fd, 0) == 0 : write(fd, "x", 1) == 1);
            _exit(0);
        }
        int status;
        check(waitpid(child, &status, 0) == child && exited_with(status, 0));
        check(fstat(fd, &s) == 0 && (s.st_mode & 07777) == 0755);
    }
    close(fd);
    ok("set-id bits go with owner and contents");
}

static int no_signal_child(void *arg)
{
    (void)arg;
    _exit(5);
}

static void waits(void)
{
    siginfo_t info;
    int status;
    static char stack[65536] __attribute__((aligned(16)));
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    check_error(waitid(P_PGID, 1, &info, WEXITED), ECHILD);
    check(waitid(P_PGID, getpgid(0), &info, WEXITED) == 0);
    check(info.si_pid == child);
    child = clone(no_signal_child, stack + sizeof(stack), 0, NULL);
    check(child > 0);
    check_error(waitpid(child, &status, 0), ECHILD);
    check(waitpid(child, &status, __WCLONE) == child);
    check(exited_with(status, 5));
    child = clone(no_signal_child, stack + sizeof(stack), SIGCHLD, NULL);
    check_error(waitpid(child, &status, __WCLONE), ECHILD);
    check(waitpid(child, &status, __WALL) == child);
    ok("waits: for whom they say");
}

int main(void)
{
    struct utsname names;
    check(uname(&names) == 0);
    bool ours = strcmp(names.sysname, "Strobe") == 0; // Linux has more flags
    mkdir("/tmp/flags", 0755);
    check(chdir("/tmp/flags") == 0);
    check(mkdir("here", 0755) == 0 || errno == EEXIST);
    file = open("name", O_CREAT | O_RDWR, 0644);
    folder = open(".", O_RDONLY);
    check(file >= 0 && folder >= 0 && ftruncate(file, 4096) == 0);
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                -1, 0);
    scratch = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ours) {
        every_call();
        advice();
        mount_options();
    }
    futexes();
    set_id_bits();
    waits();
    return 0;
}
