// Jails: each episode has its own tmpfs with all that its paths name.
// Afterwards all remaining tasks are ended and all mounts removed, and with
// them all files.
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

// Copies, because a devtmpfs is the machine's own.
static void put_devices(void)
{
    static const char *const devices[] = {
        "null",      "zero", "full", "random",    "tty",    "tty0",
        "statclock", "rtc",  "rtc0", "failalloc", "keymap",
    };
    char from[32];
    struct stat s;
    for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++) {
        snprintf(from, sizeof(from), "/dev/%s", devices[i]);
        if (stat(from, &s) == 0 && mknod(from + 1, s.st_mode, s.st_rdev) < 0)
            complain(from);
    }
}

void jail_path(uint32_t lane, char path[16])
{
    snprintf(path, 16, JAIL, lane);
}

void jails_prepare(void)
{
    char path[16];
    for (uint32_t i = 0; i < LANES; i++) {
        jail_path(i, path);
        mkdir(path, 0755);
    }
}

void mounts_quiesce(void)
{
    char path[16];
    jail_path(0, path);
    if (mount("none", path, "devtmpfs", 0, NULL) < 0 || umount(path) < 0)
        complain("mount of a devtmpfs");
}

bool jail_make(uint32_t lane)
{
    static const char bytes[] = "what the jail's first file holds";
    char path[16];

    jail_path(lane, path);
    if (mount("none", path, "tmpfs", 0, NULL) < 0 || chdir(path) < 0)
        return complain("mount of a jail");
    mkdir("d", 0777);
    mkdir("d/e", 0777);
    mkdir("m", 0777);
    mkdir("dev", 0755);
    mkdir("proc", 0755);
    put_file("a", bytes, sizeof(bytes));
    put_file("d/b", "", 0);
    put_program("prog");
    put_file("script", "#!/prog x\n", 10);
    mkfifo("fifo", 0666);
    if (symlink("d/a", "link") < 0 || symlink("loop", "loop") < 0)
        return complain("symlink");
    put_devices();
    if (mount("none", "proc", "proc", 0, NULL) < 0)
        return complain("mount in a jail");
    return chdir("/") == 0;
}

// --- tasks

static pid_t supervisor;

static bool is_ours(const struct sysinfo_task *t)
{
    return t->id != (uint32_t)getpid() && !storm_is((pid_t)t->group) &&
           strstr(t->path, "fuzz") != NULL;
}

// Kills all of them and returns their number. Their parents reap zombies.
static uint32_t kill_all(void)
{
    size_t count;
    uint32_t found = 0;
    struct sysinfo_task *tasks = sysinfo_read_task("system.tasks", &count);

    // A worker whose registers are random (sigreturn) may arrive here.
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

#define MOUNTS_BYTES 65536
#define MOUNTS_MAX 1024

// Decodes /proc/mounts: a backslash and three octal digits are one character.
static void unescape(char *s)
{
    char *to = s;
    for (; *s != '\0'; *to++ = *s++) {
        unsigned int code;
        if (*s == '\\' && sscanf(s + 1, "%3o", &code) == 1) {
            s += 3;
            *s = (char)code;
        }
    }
    *to = '\0';
}

// Lists the mounts in jails, in the order in which they were made. Returns
// their number.
static uint32_t read_mounts(const char **paths)
{
    static char text[MOUNTS_BYTES];
    uint32_t count = 0;
    size_t size = 0;
    ssize_t n;
    int fd = open("/proc/mounts", O_RDONLY);

    while ((n = read(fd, text + size, sizeof(text) - 1 - size)) > 0)
        size += (size_t)n;
    close(fd);
    text[size] = '\0';
    char *rest, *line = strtok_r(text, "\n", &rest);
    for (; line != NULL && count < MOUNTS_MAX;
         line = strtok_r(NULL, "\n", &rest)) {
        char *path = strchr(line, ' ');
        if (path == NULL || strncmp(++path, JAILS, strlen(JAILS)) != 0)
            continue;
        path[strcspn(path, " ")] = '\0';
        unescape(path);
        paths[count++] = path;
    }
    return count;
}

// Unmounts them, the last first, because one may hide another's path. True if
// one could be unmounted, or there is none.
static bool unmount_some(uint32_t *left)
{
    static const char *paths[MOUNTS_MAX];
    uint32_t count = read_mounts(paths), done = 0;

    for (uint32_t n = count; n > 0; n--)
        done += umount2(paths[n - 1], 0) == 0;
    *left = count - done;
    return done > 0 || *left == 0;
}

bool jails_remove(void)
{
    uint32_t left, tries = 0;
    do {
        // A task that is exiting still has its files.
        if (unmount_some(&left) || ++tries < MOUNT_TRIES) {
            if (left > 0)
                nanosleep(&(struct timespec){ 0, tries ? 1000000 : 0 }, NULL);
            continue;
        }
        complain("umount");
        (void)!system("cat /proc/mounts; tasks -a");
        return false;
    } while (left > 0);
    return true;
}
