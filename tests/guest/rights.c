// Who may do what with the nodes of /dev, /proc and /sensors: a walk, as user
// 1000, tries to open, to read and to write each node that it finds, and every
// ioctl on each one that opens, and compares with the table below. A node
// without a row fails. The walk has a controlling terminal, that root has given
// to the user. Started as root, on a machine with /dev/tty0.
//
// tests/system/test_users.py: the kernel has no ioctl that the table lacks.
#include "sensors.h"

#include <dirent.h>
#include <fnmatch.h>
#include <grp.h>
#include <limits.h>
#include <linux/rtc.h>
#include <sys/stat.h>
#include <termios.h>

#define USER 1000u
#define TERMINAL "/dev/tty0"
#define ROOTS_SENSOR "/sensors/rights-root"
#define OWN_SENSOR "/sensors/rights-user"

// What a user may do with a node.
enum {
    R = 1, // open it for reading, and read; list a directory
    W = 2, // open it for writing, and write; create a name in a directory
    X = 4, // the node answers to the ioctls of its kind, not to W
    SKIP = 8,
};

// Kinds of nodes, by the ioctls that they know.
enum kind { PLAIN, SENSOR, CLOCK, TTY, KINDS };

// Patterns of fnmatch; the first one that matches counts. `own`: when the user
// owns the node.
static const struct row {
    const char *pattern;
    int others, own;
    enum kind kind;
} rows[] = {
    { "/dev", R, R, PLAIN },
    { "/dev/null", R | W, R | W, PLAIN },
    { "/dev/zero", R | W, R | W, PLAIN },
    { "/dev/full", R | W, R | W, PLAIN }, // no space is no refusal
    { "/dev/random", R | W, R | W, PLAIN },
    { "/dev/urandom", R | W, R | W, PLAIN },
    { "/dev/kmsg", 0, 0, PLAIN },
    { "/dev/failalloc", 0, 0, PLAIN }, // of kernels with checkers
    { "/dev/keymap", R, R, PLAIN },
    { "/dev/statclock", 0, 0, PLAIN }, // but for profile_users=
    { "/dev/rtc", R, R, CLOCK },
    { "/dev/rtc0", R, R, CLOCK },
    { "/dev/console", 0, 0, TTY },
    { "/dev/tty", W, W, TTY }, // the user's; a read would wait for a line
    { "/dev/tty0", 0, W, TTY },
    { "/dev/tty[1-9]", 0, 0, TTY },
    { "/dev/ttyS[0-9]", 0, 0, TTY },
    { "/dev/[sv]d*", 0, 0, PLAIN },

    { "/proc", R, R, PLAIN },
    { "/proc/cmdline", R, R, PLAIN },
    { "/proc/cpuinfo", R, R, PLAIN },
    { "/proc/filesystems", R, R, PLAIN },
    { "/proc/interrupts", R, R, PLAIN },
    { "/proc/loadavg", R, R, PLAIN },
    { "/proc/meminfo", R, R, PLAIN },
    { "/proc/mounts", R, R, PLAIN },
    { "/proc/stat", R, R, PLAIN },
    { "/proc/uptime", R, R, PLAIN },
    { "/proc/version", R, R, PLAIN },
    { "/proc/sys", R, R, PLAIN },
    { "/proc/sys/kernel", R, R, PLAIN },
    { "/proc/sys/kernel/randomize_va_space", R, R, PLAIN },
    { "/proc/[0-9]*/stat", R, R, PLAIN },
    { "/proc/[0-9]*/statm", R, R, PLAIN },
    { "/proc/[0-9]*/status", R, R, PLAIN },
    { "/proc/[0-9]*/cmdline", R, R, PLAIN },
    { "/proc/[0-9]*/comm", R, R | W, PLAIN },
    { "/proc/[0-9]*/maps", 0, R, PLAIN },
    { "/proc/[0-9]*/mounts", R, R, PLAIN },
    { "/proc/[0-9]*/fd", 0, R, PLAIN },
    { "/proc/[0-9]*/fd/*", 0, SKIP, PLAIN }, // their files have rows
    { "/proc/[0-9]*/task", R, R, PLAIN },
    { "/proc/[0-9]*/task/[0-9]*/stat", R, R, PLAIN },
    { "/proc/[0-9]*/task/[0-9]*/status", R, R, PLAIN },
    { "/proc/[0-9]*/task/[0-9]*/cmdline", R, R, PLAIN },
    { "/proc/[0-9]*/task/[0-9]*/comm", R, R | W, PLAIN },
    { "/proc/[0-9]*/task/[0-9]*", R, R, PLAIN },
    { "/proc/[0-9]*", R, R, PLAIN },

    { "/sensors", R | W, R | W, PLAIN },
    { ROOTS_SENSOR, R, R, SENSOR }, // although its mode is 0666
    { OWN_SENSOR, 0, R, SENSOR },   // of another task
    { "/sensors/sched", R, R, PLAIN },
    { "/sensors/sched/latency", R, R, SENSOR },
    { "/sensors/sched/switch.[0-9]*", 0, 0, SENSOR },
    { "/sensors/irq", R, R, PLAIN },
    { "/sensors/irq/duration", R, R, SENSOR },
    { "/sensors/syscall", R, R, PLAIN },
    { "/sensors/syscall/duration", R, R, SENSOR },
    { "/sensors/mm", R, R, PLAIN },
    { "/sensors/mm/fault", R, R, SENSOR },
    { "/sensors/mm/free", R, R, SENSOR },
    { "/sensors/time", R, R, PLAIN },
    { "/sensors/time/lateness", R, R, SENSOR },
    { "/sensors/heap", R, R, PLAIN },
    { "/sensors/heap/*", R, R, SENSOR }, // the kernel's caches
    { "/sensors/kernel", R, R, PLAIN },
    { "/sensors/kernel/trace", R, R, PLAIN },
    { "/sensors/kernel/trace/[0-9]*", 0, 0, SENSOR }, // of root's trace
};

// --- ioctls -----------------------------------------------------------------

// A valid argument for each, so that only the caller's rights decide.
static int number, on = 1;
static pid_t group;
static char character = 'x';
static struct termios modes;
static struct {
    unsigned short rows, columns, x, y;
} size = { 25, 80, 0, 0 };
static struct rtc_time date = { .tm_mday = 1, .tm_year = 110 };
static struct rtc_time date_read;
static struct sensor_request sensor = {
    .layout = { .type = SENSOR_SCALAR, .scalar = { SENSOR_COUNTER, 64 } }
};

// What the ioctl gives a user, on nodes of its kind; ENOTTY on all others.
static const struct {
    const char *name;
    unsigned request;
    void *argument;
    enum kind kind;
    int error;
} ioctls[] = {
    { "RTC_RD_TIME", RTC_RD_TIME, &date_read, CLOCK, 0 },
    { "RTC_SET_TIME", RTC_SET_TIME, &date, CLOCK, EACCES },
    { "SENSOR_CREATE", SENSOR_CREATE, &sensor, SENSOR, EBADF },
    { "TCGETS", TCGETS, &modes, TTY, 0 },
    { "TCSETS", TCSETS, &modes, TTY, 0 },
    { "TCSETSW", TCSETSW, &modes, TTY, 0 },
    { "TCSETSF", TCSETSF, &modes, TTY, 0 },
    { "TIOCGWINSZ", TIOCGWINSZ, &size, TTY, 0 },
    { "TIOCSWINSZ", TIOCSWINSZ, &size, TTY, 0 },
    { "TIOCGPGRP", TIOCGPGRP, &group, TTY, 0 },
    { "TIOCSPGRP", TIOCSPGRP, &group, TTY, 0 },
    { "TIOCGSID", TIOCGSID, &number, TTY, 0 },
    { "TIOCOUTQ", TIOCOUTQ, &number, TTY, 0 },
    { "TIOCSTI", TIOCSTI, &character, TTY, EIO },
    { "TCXONC", TCXONC, (void *)TCOON, TTY, 0 },
    { "TCFLSH", TCFLSH, (void *)TCIOFLUSH, TTY, 0 },
    { "TCSBRK", TCSBRK, (void *)1, TTY, 0 },
    { "TCSBRKP", TCSBRKP, (void *)1, TTY, 0 },
    { "TIOCSCTTY", TIOCSCTTY, (void *)1, TTY, EPERM },
    // Of every file.
    { "FIONREAD", FIONREAD, &number, KINDS, 0 },
    { "FIONBIO", FIONBIO, &on, KINDS, 0 },
    { "FIOCLEX", FIOCLEX, NULL, KINDS, 0 },
    { "FIONCLEX", FIONCLEX, NULL, KINDS, 0 },
};
#define IOCTLS (sizeof(ioctls) / sizeof(ioctls[0]))

static unsigned nodes, tried, wrong;

static void differs(const char *path, const char *what, const char *expected)
{
    wrong++;
    dprintf(1, "FAILED %s: %s: %s; expected: %s\n", path, what,
            errno ? strerror(errno) : "allowed", expected);
}

static void try_ioctls(const char *path, int fd, enum kind kind, bool regular)
{
    for (unsigned i = 0; i < IOCTLS; i++) {
        int expected = ioctls[i].kind == kind || ioctls[i].kind == KINDS
                           ? ioctls[i].error
                           : ENOTTY;
        if (ioctls[i].request == FIONREAD && kind != TTY &&
            !(regular && kind == PLAIN))
            expected = ENOTTY;
        errno = 0;
        tried++;
        if (ioctl(fd, ioctls[i].request, ioctls[i].argument) >= 0)
            errno = 0;
        if (errno != expected)
            differs(path, ioctls[i].name,
                    expected ? strerror(expected) : "allowed");
    }
}

// --- nodes ------------------------------------------------------------------

static bool has_gone(void)
{
    return errno == ENOENT || errno == ESRCH;
}

// Whether the errno is a refusal, not a lack of something else.
static bool is_refusal(void)
{
    return errno == EACCES || errno == EPERM || errno == EROFS ||
           errno == ETXTBSY;
}

// Tries the access, and ioctls if the node opens. Returns whether the user may.
static bool may(const char *path, const struct row *row, int flags,
                bool regular)
{
    char byte = '0';
    bool reads = flags == O_RDONLY;
    tried++;
    errno = 0;
    int fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return !is_refusal();
    try_ioctls(path, fd, row->kind, regular);
    errno = 0;
    ssize_t n = reads ? read(fd, &byte, 1) : write(fd, &byte, 1);
    bool refused = n < 0 && is_refusal();
    close(fd);
    return !refused;
}

static void try_file(const char *path, const struct row *row, int rights,
                     bool regular)
{
    bool reads = may(path, row, O_RDONLY, regular);
    if (has_gone())
        return;
    if (reads != !!(rights & R) && !(row->kind == TTY && rights & W))
        differs(path, "reading", rights & R ? "allowed" : "refused");
    bool writes = may(path, row, O_WRONLY, regular);
    if (has_gone())
        return;
    if (writes != !!(rights & W))
        differs(path, "writing", rights & W ? "allowed" : "refused");
}

static void try_directory(const char *path, int rights)
{
    char new[PATH_MAX];
    snprintf(new, sizeof(new), "%s/rights-new", path);
    errno = 0;
    tried++;
    int fd = open(new, O_CREAT | O_EXCL | O_RDWR, 0600);
    if ((fd >= 0) != !!(rights & W))
        differs(path, "creating a name", rights & W ? "allowed" : "refused");
    if (fd >= 0)
        close(fd);
}

static const struct row *row_of(const char *path)
{
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (fnmatch(rows[i].pattern, path, FNM_PATHNAME) == 0)
            return &rows[i];
    }
    return NULL;
}

// Calls fn with the path of each entry, and closes the directory.
static void for_each_entry(DIR *dir, const char *path, void (*fn)(const char *))
{
    char child[PATH_MAX];
    for (const struct dirent *e; (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(child, sizeof(child), "%s/%s", path, e->d_name);
        fn(child);
    }
    closedir(dir);
}

static void walk(const char *path);

static void walk_directory(const char *path, int rights)
{
    errno = 0;
    DIR *dir = opendir(path);
    if (!dir && has_gone())
        return;
    if (!!dir != !!(rights & R))
        differs(path, "listing", rights & R ? "allowed" : "refused");
    try_directory(path, rights);
    if (dir)
        for_each_entry(dir, path, walk);
}

static void walk(const char *path)
{
    struct stat s;
    if (lstat(path, &s) != 0 || S_ISLNK(s.st_mode))
        return; // of a task that has ended, or the target has a row
    const struct row *row = row_of(path);
    nodes++;
    if (!row) {
        wrong++;
        dprintf(1, "FAILED %s: no row says who may use it\n", path);
        return;
    }
    int rights = s.st_uid == USER ? row->own : row->others;
    if (rights & SKIP)
        return;
    if (S_ISDIR(s.st_mode))
        walk_directory(path, rights);
    else
        try_file(path, row, rights, S_ISREG(s.st_mode));
}

// --- the walk's session -----------------------------------------------------

static void become_user(void)
{
    check(setgroups(0, NULL) == 0 && setgid(USER) == 0 && setuid(USER) == 0);
}

// The last of the ioctls: it would end the walk's terminal.
static void give_up_terminal(void)
{
    int tty = open("/dev/tty", O_RDWR);
    check(tty >= 0 && ioctl(tty, TIOCNOTTY) == 0);
    check_error(open("/dev/tty", O_RDWR), ENXIO);
}

static void walk_all(void)
{
    become_user();
    check(close(create_scalar(OWN_SENSOR)) == 0);
    pid_t pid = fork(); // is not the leader of the session, and owns no sensor
    check(pid >= 0);
    if (pid) {
        int status;
        check(waitpid(pid, &status, 0) == pid && exited_with(status, 0));
        return;
    }
    int tty = open("/dev/tty", O_RDWR);
    check(tty >= 0 && tcgetattr(tty, &modes) == 0);
    group = getpgrp();
    check(tcgetpgrp(tty) == group && close(tty) == 0);
    walk("/dev");
    walk("/proc");
    walk("/sensors");
    dprintf(1, "# %u nodes, %u accesses and ioctls\n", nodes, tried);
    check(nodes > 50 && !wrong);
    give_up_terminal();
}

static void in_session(void)
{
    check(setsid() > 0);
    int tty = open(TERMINAL, O_RDWR);
    check(tty >= 0 && ioctl(tty, TIOCSCTTY, 1) == 0);
    check(fchown(tty, USER, USER) == 0);
    check(exited_with(in_child(walk_all), 0));
    check(fchown(tty, 0, 0) == 0);
}

static void remove_sensor(const char *path)
{
    unlink(path);
}

// Of tasks that have ended.
static void remove_sensors(void)
{
    DIR *dir = opendir("/sensors");
    check(dir);
    for_each_entry(dir, "/sensors", remove_sensor);
}

int main(void)
{
    alarm(TEST_SECONDS);
    remove_sensors();
    int fd = create_scalar(ROOTS_SENSOR);
    check(fchmod(fd, 0666) == 0);
    check(exited_with(in_child(in_session), 0));
    check(unlink(ROOTS_SENSOR) == 0);
    ok("a user's rights to every node of /dev, /proc and /sensors");
    return 0;
}
