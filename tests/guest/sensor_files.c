// /sensors: who may create, map, write and remove, and how long sensors live.
#include "sensors.h"
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define DIR "/sensors/test"
#define PATH DIR "/value"
#define VALUE 0x1234567

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static uint64_t wide(struct sensor_wide w)
{
    return (uint64_t)w.high << 32 | w.low;
}

static uint32_t *map(int fd, int prot, int flags, uint32_t offset)
{
    void *m = mmap(NULL, PAGE, prot, flags, fd, offset);
    check(m != MAP_FAILED);
    return m;
}

static const struct sensor_header *map_header(int fd)
{
    return (const void *)map(fd, PROT_READ, MAP_SHARED, 0);
}

static int open_to_read(const char *path)
{
    int fd = open(path, O_RDONLY);
    check(fd >= 0);
    return fd;
}

// --- mapping attacks, by the owner and by others

static void no_way_to_write(int fd, uint32_t offset)
{
    check_error(
        (long)mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset),
        EACCES);
    check_error((long)mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, fd, offset),
                EACCES);
    uint32_t *m = map(fd, PROT_READ, MAP_SHARED, offset);
    check_error(mprotect(m, PAGE, PROT_READ | PROT_WRITE), EACCES);
    check_error(mprotect(m, PAGE, PROT_WRITE), EACCES);
    void *moved = mremap(m, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
    check(moved != MAP_FAILED);
    check_error(mprotect(moved, PAGE, PROT_READ | PROT_WRITE), EACCES);
    check(munmap(moved, 2 * PAGE) == 0);
    // A private copy is the task's own.
    m = map(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE, offset);
    const uint32_t *original = map(fd, PROT_READ, MAP_SHARED, offset);
    uint32_t before = *original;
    *m = ~before;
    check(*original == before);
    check(munmap(m, PAGE) == 0 && munmap((void *)original, PAGE) == 0);
}

static void faults_on_write(int fd, uint32_t offset)
{
    volatile uint32_t *m = map(fd, PROT_READ, MAP_SHARED, offset);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        *m = 1;
        _exit(0);
    }
    int status;
    check(waitpid(pid, &status, 0) == pid && killed_by(status, SIGSEGV));
    check(munmap((void *)m, PAGE) == 0);
}

static void attack_as_other(void)
{
    char again[64];
    int fd = open_to_read(PATH);
    snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
    check_error(open(PATH, O_RDWR), EACCES); // root, too
    check_error(open(PATH, O_WRONLY), EACCES);
    check_error(open(again, O_RDWR), EACCES);
    no_way_to_write(fd, 0);
    no_way_to_write(fd, PAGE);
    faults_on_write(fd, PAGE);
    check(write(fd, "x", 1) < 0);
    check(ftruncate(fd, 0) < 0);
    check(truncate(PATH, 0) < 0);
    check_error(request_scalar(fd), EBADF);
}

static void maps(void)
{
    int fd = create_scalar(PATH);
    uint32_t *data = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED, PAGE);
    no_way_to_write(fd, 0);
    faults_on_write(fd, 0);
    // The header with the data behind it, in one mapping.
    check_error(
        (long)mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
        EACCES);
    const char *all = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    check(all != MAP_FAILED);
    check_error(mprotect((void *)(all + PAGE), PAGE, PROT_READ | PROT_WRITE),
                EACCES);
    *data = VALUE;
    check(*(const uint32_t *)(all + PAGE) == VALUE);
    check(write(fd, "x", 1) < 0 && ftruncate(fd, 0) < 0);
    ok("the owner writes the data and not the header");
    check(exited_with(in_child(attack_as_other), 0));
    check(*data == VALUE);
    ok("others cannot make a mapping writable");
    check(unlink(PATH) == 0 && close(fd) == 0);
    check(munmap(data, PAGE) == 0 && munmap((void *)all, 2 * PAGE) == 0);
}

// --- lives

static uint32_t *inherited;

static void write_inherited(void)
{
    *inherited += VALUE;
}

static void a_fork_writes_too(void)
{
    int fd = create_scalar(PATH);
    inherited = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED, PAGE);
    *inherited = 1;
    check(exited_with(in_child(write_inherited), 0));
    check(*inherited == VALUE + 1);
    check(wide(map_header(fd)->closed_ns) == 0);
    check(unlink(PATH) == 0 && close(fd) == 0);
    ok("a child of fork writes");
}

// The creator: a child that creates, tells so, and waits to be told its end.
static int to_creator[2], from_creator[2];
static void (*creators_end)(void);

static void creator(void)
{
    char c;
    int fd = create_scalar(PATH);
    uint32_t *data = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED, PAGE);
    *data = VALUE;
    check(write(from_creator[1], "c", 1) == 1);
    check(read(to_creator[0], &c, 1) == 1);
    creators_end();
}

static pid_t start_creator(void (*end)(void))
{
    char c;
    check(pipe2(to_creator, O_CLOEXEC) == 0);
    check(pipe2(from_creator, O_CLOEXEC) == 0);
    creators_end = end;
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        creator();
        _exit(0);
    }
    check(read(from_creator[0], &c, 1) == 1);
    return pid;
}

static void end_creator(pid_t pid)
{
    int status;
    check(write(to_creator[1], "e", 1) == 1);
    check(waitpid(pid, &status, 0) == pid);
    check(close(to_creator[0]) == 0 && close(to_creator[1]) == 0);
    check(close(from_creator[0]) == 0 && close(from_creator[1]) == 0);
}

static void exits(void)
{
    _exit(0);
}

static void is_killed(void)
{
    kill(getpid(), SIGKILL);
}

static void executes(void)
{
    execl("/bin/sleep", "sleep", "0.2", NULL);
}

static void ends_closed(void (*end)(void))
{
    pid_t pid = start_creator(end);
    int fd = open_to_read(PATH);
    const struct sensor_header *h = map_header(fd);
    const uint32_t *data = map(fd, PROT_READ, MAP_SHARED, PAGE);
    check(h->owner == (uint32_t)pid && wide(h->created_ns) &&
          !wide(h->closed_ns));
    end_creator(pid);
    check(wide(h->closed_ns) >= wide(h->created_ns) && *data == VALUE);
    // It stays as long as this task has it.
    int again = open_to_read(PATH);
    check(close(again) == 0 && close(fd) == 0);
    check(exists(PATH));
    check(munmap((void *)h, PAGE) == 0);
    check(exists(PATH) && *data == VALUE);
    check(munmap((void *)data, PAGE) == 0);
    check(!exists(PATH));
}

static void removed_before_its_creator_ends(void)
{
    pid_t pid = start_creator(exits);
    check(exists(PATH) && unlink(PATH) == 0);
    end_creator(pid);
    check(!exists(PATH));
}

// Nobody reads it when its creator ends: its last value stays, until a reader
// has gone, or until it is removed.
static void kept_without_readers(void)
{
    end_creator(start_creator(exits));
    check(exists(PATH));
    int fd = open_to_read(PATH), other = open_to_read(PATH);
    const struct sensor_header *h = map_header(fd);
    const uint32_t *data = map(fd, PROT_READ, MAP_SHARED, PAGE);
    check(wide(h->closed_ns) && *data == VALUE);
    check(munmap((void *)h, PAGE) == 0 && munmap((void *)data, PAGE) == 0);
    check(close(other) == 0 && exists(PATH));
    check(close(fd) == 0 && !exists(PATH));
    end_creator(start_creator(is_killed));
    check(exists(PATH) && unlink(PATH) == 0 && !exists(PATH));
    ok("a closed sensor stays until its last reader has gone");
}

#define KEPT_MAX 128u // SENSORS_KEPT_MAX in the kernel

static const char *kept_path(uint32_t n)
{
    static char path[64];
    snprintf(path, sizeof(path), "/sensors/kept.%u", (unsigned)n);
    return path;
}

static uint32_t first_kept;

static void creates_some(void)
{
    for (uint32_t i = 0; i < 20; i++)
        close(create_scalar(kept_path(first_kept + i)));
}

// The oldest ones go when there are too many.
static void forgotten_when_too_many(void)
{
    for (; first_kept < KEPT_MAX + 20; first_kept += 20)
        check(exited_with(in_child(creates_some), 0));
    uint32_t kept = 0;
    for (uint32_t i = 0; i < first_kept; i++)
        kept += exists(kept_path(i));
    check(kept == KEPT_MAX && !exists(kept_path(0)));
    check(exists(kept_path(first_kept - 1)));
    for (uint32_t i = 0; i < first_kept; i++)
        unlink(kept_path(i));
    ok("of closed sensors that nobody reads the oldest go");
}

static void removed_under_its_writer(void)
{
    int fd = create_scalar(PATH);
    uint32_t *data = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED, PAGE);
    int reader = open_to_read(PATH);
    const uint32_t *seen = map(reader, PROT_READ, MAP_SHARED, PAGE);
    check(unlink(PATH) == 0 && !exists(PATH));
    *data = VALUE;
    check(*seen == VALUE);
    // The name is free for another one.
    int other = create_scalar(PATH);
    uint32_t *others = map(other, PROT_READ | PROT_WRITE, MAP_SHARED, PAGE);
    *others = 1;
    check(*seen == VALUE && close(fd) == 0 && close(other) == 0);
    check(close(reader) == 0 && exists(PATH) && unlink(PATH) == 0);
    check(munmap(data, PAGE) == 0 && munmap((void *)seen, PAGE) == 0);
    check(munmap(others, PAGE) == 0);
}

static void lives(void)
{
    a_fork_writes_too();
    ends_closed(exits);
    ends_closed(is_killed);
    ends_closed(executes);
    ok("a sensor is closed by its creator's end and exec, and stays");
    removed_before_its_creator_ends();
    kept_without_readers();
    forgotten_when_too_many();
    removed_under_its_writer();
    ok("a removed sensor is written on");
    int fd = open(PATH, O_CREAT | O_RDWR, 0644);
    check(fd >= 0 && exists(PATH) && close(fd) == 0 && !exists(PATH));
    ok("without a type it goes with its descriptor");
}

// --- names

static void names(void)
{
    int fd = create_scalar(PATH);
    check_error(rename(PATH, DIR "/other"), EPERM);
    check_error(link(PATH, DIR "/other"), EPERM);
    check_error(symlink(PATH, DIR "/other"), EPERM);
    check_error(mkfifo(DIR "/other", 0644), EPERM);
    check_error(open(PATH, O_CREAT | O_EXCL | O_RDWR, 0644), EEXIST);
    check_error(unlink("/sensors/mm/free"), EPERM);
    check_error(open("/sensors/mm/free", O_RDWR), EACCES);
    check_error(rmdir(DIR), ENOTEMPTY);
    check(unlink(PATH) == 0 && close(fd) == 0);
    ok("names");
}

// --- users

static void as_a_user(void)
{
    check(setgid(1000) == 0 && setuid(1000) == 0);
    check_error(open(DIR "/secret", O_RDONLY), EACCES);
    check_error(unlink("/sensors/shared"), EPERM);
    check(open("/sensors/shared", O_RDONLY) >= 0);
    int fd = create_scalar("/sensors/of_user");
    check(fd >= 0 && unlink("/sensors/of_user") == 0);
}

static void modes(void)
{
    int secret = create_scalar(DIR "/secret");
    int shared = create_scalar("/sensors/shared");
    check(chmod(DIR "/secret", 0600) == 0);
    check(exited_with(in_child(as_a_user), 0));
    check(unlink(DIR "/secret") == 0 && unlink("/sensors/shared") == 0);
    check(close(secret) == 0 && close(shared) == 0);
    ok("the mode says who may read");
}

// --- quotas

static void number(void)
{
    char path[64];
    int fds[SENSOR_TASK_COUNT_MAX];
    for (uint32_t i = 0; i < SENSOR_TASK_COUNT_MAX; i++) {
        snprintf(path, sizeof(path), DIR "/n%u", i);
        fds[i] = create_scalar(path);
    }
    check_error(open(PATH, O_CREAT | O_RDWR, 0644), EDQUOT);
    check(!exists(PATH));
    check(unlink(path) == 0 && close(fds[SENSOR_TASK_COUNT_MAX - 1]) == 0);
    create_scalar(PATH);
}

static void bytes(void)
{
    char path[64];
    int fd, first = -1;
    uint32_t megabytes = 0;
    for (;; megabytes++) {
        snprintf(path, sizeof(path), DIR "/b%u", megabytes);
        fd = open(path, O_CREAT | O_RDWR, 0644);
        check(fd >= 0);
        if (megabytes == 0)
            first = fd;
        if (request_megabyte(fd))
            break;
    }
    check(errno == EDQUOT && megabytes == SENSOR_TASK_BYTES_MAX >> 20);
    // Removed, but still open: it takes its memory.
    check(unlink(DIR "/b0") == 0);
    check_error(request_megabyte(fd), EDQUOT);
    check(close(first) == 0 && request_megabyte(fd) == 0);
}

// They are closed, and have had no reader: those that had a type.
static void remove_all(const char *prefix, uint32_t count)
{
    char path[64];
    for (uint32_t i = 0; i <= count; i++) {
        snprintf(path, sizeof(path), DIR "/%s%u", prefix, (unsigned)i);
        unlink(path);
    }
}

static void quotas(void)
{
    check(exited_with(in_child(number), 0));
    check(exited_with(in_child(bytes), 0));
    check(unlink(PATH) == 0);
    remove_all("n", SENSOR_TASK_COUNT_MAX - 1);
    remove_all("b", SENSOR_TASK_BYTES_MAX >> 20);
    check(rmdir(DIR) == 0 && mkdir(DIR, 0777) == 0);
    ok("quotas");
}

int main(void)
{
    alarm(TEST_SECONDS);
    if (!exists("/sensors"))
        return 0; // Linux
    check(mkdir(DIR, 0777) == 0);
    maps();
    lives();
    names();
    modes();
    quotas();
    check(rmdir(DIR) == 0);
    return 0;
}
