// /proc, the devices without hardware, and the system calls about the machine.
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>

static char text[65536];

// Reads a whole file into `text`. Returns its length.
static ssize_t slurp(const char *path)
{
    int fd = open(path, O_RDONLY);
    ssize_t n = 0, got;

    check(fd >= 0);
    while ((got = read(fd, text + n, sizeof(text) - 1 - n)) > 0)
        n += got;
    check(got == 0);
    close(fd);
    text[n] = '\0';
    return n;
}

static char *format(const char *fmt, long number)
{
    static char buf[128];

    snprintf(buf, sizeof(buf), fmt, number);
    return buf;
}

// --- one task ---------------------------------------------------------------

struct stat_fields {
    int pid, ppid, pgrp, session;
    char name[32], state;
    unsigned long utime, stime, threads, vsize;
    unsigned long long start;
    long rss;
};

static void parse_stat(struct stat_fields *s)
{
    int n = sscanf(text,
                   "%d (%31[^)]) %c %d %d %d %*d %*d %*u %*u %*u %*u %*u "
                   "%lu %lu %*d %*d %*d %*d %lu %*d %llu %lu %ld",
                   &s->pid, s->name, &s->state, &s->ppid, &s->pgrp, &s->session,
                   &s->utime, &s->stime, &s->threads, &s->start, &s->vsize,
                   &s->rss);
    check(n == 12);
}

static volatile unsigned spins;

static void own_stat(void)
{
    struct stat_fields s, later;
    uint64_t start = now_ns();

    slurp("/proc/self/stat");
    parse_stat(&s);
    check(s.pid == getpid() && s.ppid == getppid());
    check(s.pgrp == getpgrp() && s.session == getsid(0));
    check(strcmp(s.name, "proc_files") == 0 && s.state == 'R');
    check(s.threads == 1 && s.vsize > 4096 && s.rss > 0);
    while (now_ns() - start < 300000000ull)
        spins++;
    slurp("/proc/self/stat");
    parse_stat(&later);
    check(later.start == s.start);
    check(later.utime + later.stime >= s.utime + s.stime + 5);
    check(strlen(strrchr(text, ')')) > 50 && strchr(text, '\n') != NULL);
    ok("stat");
}

static void own_status(void)
{
    slurp("/proc/self/status");
    check(strstr(text, "Name:\tproc_files\n") == text);
    check(strstr(text, format("\nPid:\t%ld\n", getpid())));
    check(strstr(text, format("\nPPid:\t%ld\n", getppid())));
    check(strstr(text, "\nThreads:\t1\n"));
    check(strstr(text, "\nVmRSS:"));
    signal(SIGUSR1, SIG_IGN);
    slurp("/proc/self/status");
    check(strtoull(strstr(text, "SigIgn:") + 7, NULL, 16) >> (SIGUSR1 - 1) & 1);
    ok("status");
}

static void own_names(const char *self)
{
    char link[PATH_MAX], expect[PATH_MAX];
    ssize_t n = slurp("/proc/self/cmdline");

    check(n == (ssize_t)strlen(self) + 1 && memcmp(text, self, n) == 0);
    slurp("/proc/self/comm");
    check(strcmp(text, "proc_files\n") == 0);
    n = readlink("/proc/self/exe", link, sizeof(link) - 1);
    check(n > 0);
    link[n] = '\0';
    check(realpath(self, expect) && strcmp(link, expect) == 0);
    check(chdir("/tmp") == 0);
    n = readlink("/proc/self/cwd", link, sizeof(link) - 1);
    check(n == 4 && memcmp(link, "/tmp", 4) == 0);
    n = readlink("/proc/self", link, sizeof(link) - 1);
    check(n > 0);
    link[n] = '\0';
    check(atoi(link) == getpid());
    check(access(format("/proc/%ld/../version", getpid()), R_OK) == 0);
    check(access("/proc/self/cwd/.", X_OK) == 0);
    check_error(open("/proc/99999999/stat", O_RDONLY), ENOENT);
    check_error(open("/proc/01/stat", O_RDONLY), ENOENT);
    check_error(open("/proc/version", O_WRONLY | O_TRUNC | O_CREAT | O_EXCL, 0),
                EEXIST);
    ok("names");
}

static void own_maps(void)
{
    unsigned long start, end, code = (unsigned long)own_maps;
    unsigned long stack = (unsigned long)&start;
    int found_code = 0, found_stack = 0;

    slurp("/proc/self/maps");
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char prot[5];

        check(sscanf(line, "%lx-%lx %4s", &start, &end, prot) == 3);
        if (code >= start && code < end)
            found_code = prot[2] == 'x' && strstr(line, "proc_files");
        if (stack >= start && stack < end)
            found_stack = prot[1] == 'w' && strstr(line, "[stack]");
    }
    check(found_code && found_stack);
    ok("maps");
}

// --- descriptors ------------------------------------------------------------

static int count_entries(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;

    check(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2;
}

static void descriptors(void)
{
    char link[128], buf[4];
    int before = count_entries("/proc/self/fd"), ends[2], fd, waiting;
    ssize_t n;

    check(pipe(ends) == 0);
    check(count_entries("/proc/self/fd") == before + 2);
    n = readlink(format("/proc/self/fd/%ld", ends[0]), link, sizeof(link) - 1);
    check(n > 6 && memcmp(link, "pipe:[", 6) == 0);
    // Opening the link opens the pipe.
    fd = open(format("/proc/self/fd/%ld", ends[1]), O_WRONLY);
    check(fd >= 0 && write(fd, "abc", 3) == 3);
    close(fd);
    fd = open(format("/proc/self/fd/%ld", ends[0]), O_RDONLY);
    check(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0) == 1);
    check(ioctl(fd, FIONREAD, &waiting) == 0 && waiting == 3);
    check(fd >= 0 && read(fd, buf, 4) == 3 && memcmp(buf, "abc", 3) == 0);
    check(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0) == 0);
    close(fd);
    close(ends[0]);
    close(ends[1]);
    check(count_entries("/proc/self/fd") == before);
    // An unlinked file can still be opened.
    fd = open("/tmp/proc_files.tmp", O_RDWR | O_CREAT | O_TRUNC, 0600);
    check(fd >= 0 && write(fd, "kept", 4) == 4);
    check(unlink("/tmp/proc_files.tmp") == 0);
    ends[0] = open(format("/proc/self/fd/%ld", fd), O_RDONLY);
    check(ends[0] >= 0 && read(ends[0], buf, 4) == 4);
    check(memcmp(buf, "kept", 4) == 0);
    close(ends[0]);
    close(fd);
    check_error(open("/proc/self/fd/999", O_RDONLY), ENOENT);
    ok("descriptors");
}

// --- threads, other tasks ---------------------------------------------------

static pthread_barrier_t barrier;

static void *wait_at_barrier(void *arg)
{
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return arg;
}

static void threads(void)
{
    pthread_t thread[3];
    DIR *dir;
    struct dirent *entry;
    int seen = 0;

    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 3; i++)
        check(pthread_create(&thread[i], NULL, wait_at_barrier, NULL) == 0);
    pthread_barrier_wait(&barrier);
    dir = opendir("/proc/self/task");
    check(dir);
    while ((entry = readdir(dir))) {
        struct stat_fields s;
        char path[300];

        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "/proc/self/task/%s/stat", entry->d_name);
        slurp(path);
        parse_stat(&s);
        check(s.pid == atoi(entry->d_name) && s.threads == 4);
        seen++;
    }
    closedir(dir);
    check(seen == 4);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 3; i++)
        check(pthread_join(thread[i], NULL) == 0);
    ok("threads");
}

static void zombie(void)
{
    struct stat_fields s;
    pid_t pid = fork();

    check(pid >= 0);
    if (pid == 0)
        _exit(7);
    do {
        slurp(format("/proc/%ld/stat", pid));
        parse_stat(&s);
    } while (s.state != 'Z');
    check(slurp(format("/proc/%ld/cmdline", pid)) == 0);
    check(waitpid(pid, NULL, 0) == pid);
    check_error(open(format("/proc/%ld/stat", pid), O_RDONLY), ENOENT);
    ok("zombie");
}

static void fork_for_ever(void)
{
    for (;;) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(0);
        if (pid > 0)
            waitpid(pid, NULL, 0);
    }
}

// Reads one task's files: "it is gone" is the only error allowed.
static void look_at(const char *pid)
{
    static const char *const files[] = { "stat", "status", "cmdline", "maps",
                                         "fd/0", "task",   "exe" };
    char path[300], buf[512];

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        int fd;

        snprintf(path, sizeof(path), "/proc/%s/%s", pid, files[i]);
        fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        if (fd < 0) {
            check(errno == ENOENT || errno == ESRCH || errno == EACCES);
            continue;
        }
        if (i < 4)
            check(read(fd, buf, sizeof(buf)) >= 0 || errno == ESRCH);
        close(fd);
    }
}

static void coming_and_going(void)
{
    pid_t busy[2];
    uint64_t end;

    for (int i = 0; i < 2; i++) {
        busy[i] = fork();
        check(busy[i] >= 0);
        if (busy[i] == 0)
            fork_for_ever();
    }
    end = now_ns() + 1000000000ull;
    while (now_ns() < end) {
        DIR *dir = opendir("/proc");
        struct dirent *entry;
        int found = 0;

        check(dir);
        while ((entry = readdir(dir))) {
            found += atoi(entry->d_name) == getpid();
            if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
                look_at(entry->d_name);
        }
        closedir(dir);
        check(found == 1);
    }
    for (int i = 0; i < 2; i++) {
        check(kill(busy[i], SIGKILL) == 0);
        check(waitpid(busy[i], NULL, 0) == busy[i]);
    }
    ok("tasks that come and go");
}

// --- the machine ------------------------------------------------------------

static unsigned long long cpu_sum(void)
{
    unsigned long long v[8], sum = 0;

    slurp("/proc/stat");
    check(sscanf(text, "cpu  %llu %llu %llu %llu %llu %llu %llu %llu", v, v + 1,
                 v + 2, v + 3, v + 4, v + 5, v + 6, v + 7) == 8);
    for (int i = 0; i < 8; i++)
        sum += v[i];
    return sum;
}

static void machine_files(void)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned long long first = cpu_sum(), grown;
    unsigned long total, available;
    double up, idle, load;

    sleep_ms(500);
    grown = cpu_sum() - first;
    check(grown >= 40ull * cpus && grown <= 500ull * cpus);
    check(strstr(text, format("\ncpu%ld ", cpus - 1)));
    check(!strstr(text, format("\ncpu%ld ", cpus)));
    check(strstr(text, "\nbtime ") && strstr(text, "\nprocs_running "));
    slurp("/proc/uptime");
    check(sscanf(text, "%lf %lf", &up, &idle) == 2 && up > 0.5);
    slurp("/proc/loadavg");
    check(sscanf(text, "%lf %*f %*f %*u/%*u %*u", &load) == 1);
    slurp("/proc/meminfo");
    check(sscanf(strstr(text, "MemTotal:"), "MemTotal: %lu kB", &total) == 1);
    check(sscanf(strstr(text, "MemFree:"), "MemFree: %lu", &available) == 1);
    check(available > 0 && available < total);
    slurp("/proc/mounts");
    check(strstr(text, " / ") && strstr(text, " /proc proc "));
    slurp("/proc/cpuinfo");
    check(strstr(text, "processor\t: 0\n") && strstr(text, "model name\t: "));
    slurp("/proc/interrupts");
    check(strstr(text, "CPU0"));
    slurp("/proc/version");
    ok("files of the machine");
}

// A reader in small steps sees one text; reading at position 0 makes a new one.
static void consistency(void)
{
    char one[4096], step[7];
    int fd = open("/proc/cpuinfo", O_RDONLY);
    ssize_t n, total = 0, size = slurp("/proc/cpuinfo");

    size = size > 4096 ? 4096 : size;
    while (total + 7 <= size && (n = read(fd, step, sizeof(step))) > 0) {
        memcpy(one + total, step, n);
        total += n;
    }
    check(memcmp(one, text, total) == 0 && total + 7 > size);
    check(pread(fd, step, 7, 2) == 7 && memcmp(step, text + 2, 7) == 0);
    check(lseek(fd, 0, SEEK_SET) == 0);
    check(read(fd, step, 7) == 7 && memcmp(step, text, 7) == 0);
    check_error(read(fd, (void *)(uintptr_t)1, 7), EFAULT);
    check_error(write(fd, step, 7), EBADF);
    close(fd);
    ok("consistent texts");
}

static void devices(void)
{
    int null = open("/dev/null", O_RDWR), zero = open("/dev/zero", O_RDWR);
    int full = open("/dev/full", O_RDWR), rnd = open("/dev/urandom", O_RDONLY);
    unsigned char buf[64] = { 1, 2, 3 }, again[64];
    struct stat st;

    check(null >= 0 && zero >= 0 && full >= 0 && rnd >= 0);
    check(read(null, buf, 64) == 0 && write(null, buf, 64) == 64);
    check(read(zero, buf, 64) == 64 && buf[0] == 0 && buf[2] == 0);
    check_error(read(zero, (void *)(uintptr_t)1, 64), EFAULT);
    check(write(zero, buf, 64) == 64);
    check(read(full, buf, 64) == 64);
    check_error(write(full, buf, 1), ENOSPC);
    check(read(rnd, buf, 64) == 64 && read(rnd, again, 64) == 64);
    check(memcmp(buf, again, 64) != 0);
    check(fstat(null, &st) == 0 && S_ISCHR(st.st_mode));
    check(st.st_rdev == makedev(1, 3));
    if (mknod("/tmp/proc_files.null", S_IFCHR | 0600, makedev(1, 3)) == 0) {
        int fd = open("/tmp/proc_files.null", O_WRONLY);

        check(fd >= 0 && write(fd, buf, 64) == 64);
        close(fd);
        check(unlink("/tmp/proc_files.null") == 0);
    }
    close(null);
    close(zero);
    close(full);
    close(rnd);
    ok("devices");
}

static void machine_calls(void)
{
    struct utsname names;
    struct sysinfo info;
    unsigned char buf[300] = { 0 };
    unsigned sum = 0;

    check(uname(&names) == 0 && names.release[0] >= '0');
    check_error(syscall(SYS_uname, 1), EFAULT);
    check(sysinfo(&info) == 0);
    check(info.totalram > info.freeram && info.procs > 0 && info.mem_unit > 0);
    check_error(syscall(SYS_sysinfo, 1), EFAULT);
    check(getrandom(buf, sizeof(buf), 0) == sizeof(buf));
    for (size_t i = 0; i < sizeof(buf); i++)
        sum += buf[i];
    check(sum > 300 * 90 && sum < 300 * 165); // mean 127.5, 10 sigmas and more
    check(getrandom(buf, 0, GRND_NONBLOCK) == 0);
    check_error(getrandom(buf, 1, 0x100), EINVAL);
    check_error(syscall(SYS_getrandom, 1, 8, 0), EFAULT);
    errno = 0;
    check(syscall(SYS_reboot, 1, 2, 3, 0) == -1);
    check(errno == EINVAL || errno == EPERM);
    ok("calls about the machine");
}

int main(int argc, char **argv)
{
    check(argc == 1);
    alarm(TEST_SECONDS);
    own_stat();
    own_status();
    own_names(argv[0]);
    own_maps();
    descriptors();
    threads();
    zombie();
    coming_and_going();
    machine_files();
    consistency();
    devices();
    machine_calls();
    return 0;
}
