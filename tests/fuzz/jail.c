// The jail: a tmpfs of an episode's own, with all that its paths name, and what
// becomes of it: every task that is left is ended, every mount taken away, and
// with it all that was made there.
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "user/libstrobe/sysinfo.h"

#define END_TRIES 10000 // a millisecond each
#define MOUNT_TRIES 1000

static bool complain(const char *what)
{
    printf("FAILED %s: %s\n", what, strerror(errno));
    fflush(stdout);
    return false;
}

static void put_file(const char *path, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
        complain(path);
    close(fd);
}

// The smallest program: exit(0).
static void put_program(const char *path)
{
    static const uint8_t code[] = { 0x31, 0xdb, 0x31, 0xc0,
                                    0x40, 0xcd, 0x80, 0x90 };
    uint32_t image[] = { 0x464c457f, 0x00010101, 0,    0,    0x00030002,
                         1,          0x08048054, 0x34, 0,    0,
                         0x00200034, 1,          0,    1,    0,
                         0x08048000, 0x08048000, 0x5c, 0x5c, 5,
                         0x1000,     0,          0 };
    memcpy(&image[21], code, sizeof(code));
    put_file(path, image, sizeof(image));
}

// Copies: a devtmpfs would be the machine's own.
static void put_devices(void)
{
    static const char *const devices[] = {
        "null", "zero",      "full", "random", "tty",
        "tty0", "statclock", "rtc",  "rtc0",   "failalloc",
    };
    char from[32];
    struct stat s;
    for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++) {
        snprintf(from, sizeof(from), "/dev/%s", devices[i]);
        if (stat(from, &s) == 0 && mknod(from + 1, s.st_mode, s.st_rdev) < 0)
            complain(from);
    }
}

static uint32_t mounts_before;
static uint32_t find_mount(uint32_t n, char *path, size_t size);

bool jail_make(void)
{
    if (mounts_before == 0)
        mounts_before = find_mount(0, NULL, 0);
    mkdir(JAIL, 0755);
    if (mount("none", JAIL, "tmpfs", 0, NULL) < 0 || chdir(JAIL) < 0)
        return complain("mount " JAIL);
    mkdir("d", 0777);
    mkdir("d/e", 0777);
    mkdir("m", 0777);
    mkdir("dev", 0755);
    mkdir("proc", 0755);
    put_file("a", JAIL JAIL JAIL, sizeof(JAIL JAIL JAIL));
    put_file("d/b", "", 0);
    put_program("prog");
    put_file("script", "#!/prog x\n", 10);
    mkfifo("fifo", 0666);
    if (symlink("d/a", "link") < 0 || symlink("loop", "loop") < 0)
        return complain("symlink");
    put_devices();
    if (mount("none", "proc", "proc", 0, NULL) < 0)
        return complain("mount in " JAIL);
    return chdir("/") == 0;
}

// --- tasks

static pid_t supervisor;

static bool is_ours(const struct sysinfo_task *t)
{
    return t->id != (uint32_t)getpid() && !storm_is((pid_t)t->group) &&
           strstr(t->path, "fuzz") != NULL;
}

// Kills those that there are; how many. Zombies are their parents' affair.
static uint32_t kill_all(void)
{
    size_t count;
    uint32_t found = 0;
    struct sysinfo_task *tasks = sysinfo_read_task("system.tasks", &count);

    // A worker whose registers were set at random (sigreturn) may come here.
    if (supervisor == 0)
        supervisor = getpid();
    if (supervisor != getpid())
        _exit(1);
    if (tasks == NULL) {
        complain("system.tasks");
        exit(1);
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_ours(&tasks[i]) || tasks[i].state == SYSINFO_ZOMBIE)
            continue;
        found++;
        kill((pid_t)tasks[i].id, SIGKILL);
    }
    free(tasks);
    return found;
}

bool end_all_tasks(void)
{
    for (uint32_t i = 0; i < END_TRIES; i++) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (kill_all() == 0)
            return true;
        nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
    }
    printf("FAILED a task outlives SIGKILL\n");
    fflush(stdout);
    (void)!system("tasks -a");
    return false;
}

// --- mounts

// Where mount number `n` was made (1 is the first); how many there are.
static uint32_t find_mount(uint32_t n, char *path, size_t size)
{
    char line[1024], at[512];
    uint32_t count = 0;
    FILE *f = fopen("/proc/mounts", "r");

    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        if (sscanf(line, "%*s %511s", at) == 1 && ++count == n)
            snprintf(path, size, "%s", at);
    }
    if (f != NULL)
        fclose(f);
    return count;
}

// One of those made since, the last first: one may hide another's path.
static bool unmount_one(void)
{
    char path[512];
    for (uint32_t n = find_mount(0, NULL, 0); n > mounts_before; n--) {
        find_mount(n, path, sizeof(path));
        if (umount2(path, 0) == 0)
            return true;
    }
    return false;
}

bool jail_remove(void)
{
    uint32_t tries = 0;
    while (find_mount(0, NULL, 0) > mounts_before) {
        // A task that is being taken down still has its files.
        if (unmount_one() || ++tries < MOUNT_TRIES) {
            nanosleep(&(struct timespec){ 0, tries ? 1000000 : 0 }, NULL);
            continue;
        }
        complain("umount");
        (void)!system("cat /proc/mounts; tasks -a");
        return false;
    }
    return true;
}
