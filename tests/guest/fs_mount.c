// Mounting and unmounting, chroot, statfs. Strobe only: it needs root on a
// whole machine.
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>

static struct stat st;

static int make(const char *path)
{
    return open(path, O_CREAT | O_RDWR, 0644);
}

static void mounts(void)
{
    char buf[4096] = "", cwd[128];
    check(mkdir("m", 0755) == 0 && mkdir("m/under", 0755) == 0);
    check(stat("m", &st) == 0);
    dev_t below = st.st_dev;
    check_error(mount("x", "m", "nofs", 0, NULL), ENODEV);
    check_error(mount("x", "none", "tmpfs", 0, NULL), ENOENT);
    int fd = make("file");
    close(fd);
    check_error(mount("x", "file", "tmpfs", 0, NULL), ENOTDIR);
    check_error(mount("x", "/proc/self/fd", "tmpfs", 0, NULL), EPERM);
    check_error(umount("m"), EINVAL);
    check_error(umount("/"), EBUSY);

    check(mount("x", "m", "tmpfs", 0, NULL) == 0);
    check(stat("m", &st) == 0 && st.st_dev != below);
    check_error(stat("m/under", &st), ENOENT);
    check_error(rmdir("m"), EBUSY);
    check_error(rename("m", "n"), EBUSY);
    check(mkdir("m/a", 0755) == 0 && mkdir("m/a/b", 0755) == 0);
    fd = make("m/a/f");
    check(fd >= 0 && write(fd, "kept", 4) == 4);
    check_error(rename("m/a/f", "f"), EXDEV);
    check_error(link("m/a/f", "f"), EXDEV);
    check(chdir("m/a/b") == 0 && getcwd(cwd, sizeof(cwd)) != NULL);
    check(strstr(cwd, "/m/a/b") != NULL);
    check(stat("../../..", &st) == 0 && st.st_dev == below);
    int mounts_fd = open("/proc/mounts", O_RDONLY);
    check(read(mounts_fd, buf, sizeof(buf) - 1) > 0);
    close(mounts_fd);
    check(strstr(buf, "/m tmpfs") != NULL);

    check(mkdir("/tmp/fs_mount/m/in", 0755) == 0);
    check(mount("x", "/tmp/fs_mount/m/in", "tmpfs", 0, NULL) == 0);
    check_error(umount("/tmp/fs_mount/m"), EBUSY);
    check(umount("/tmp/fs_mount/m/in") == 0);

    check_error(umount2("/tmp/fs_mount/m", 64), EINVAL);
    check(umount2("/tmp/fs_mount/m", MNT_DETACH) == 0); // while in use
    check_error(umount("/tmp/fs_mount/m"), EINVAL);
    check(pread(fd, buf, 10, 0) == 4 && !memcmp(buf, "kept", 4));
    check_error(getcwd(buf, sizeof(buf)) ? 0 : -1, ENOENT);
    int late = make("late");
    check(late >= 0 && close(late) == 0 && access("../f", R_OK) == 0);
    check(mkdir("lost", 0755) == 0);
    check_error(mount("x", "lost", "tmpfs", 0, NULL), EINVAL);
    close(fd);
    check(chdir("/tmp/fs_mount") == 0);
    check(stat("m/under", &st) == 0 && st.st_dev == below);
    for (int i = 0; i < 50; i++) {
        check(mount("x", "m", i % 2 ? "proc" : "devtmpfs", 0, NULL) == 0);
        check(stat(i % 2 ? "m/self" : "m/null", &st) == 0);
        check(umount("m") == 0);
    }
    check(rmdir("m/under") == 0 && rmdir("m") == 0 && unlink("file") == 0);
    ok("mounts");
}

static void check_busy(void)
{
    check_error(umount("m"), EBUSY);
    check(access("m/d/f", R_OK) == 0);
}

// A mount stays while any part of it is in use; then it can be removed.
static void mounts_in_use(void)
{
    check(mkdir("m", 0755) == 0 && mount("x", "m", "tmpfs", 0, NULL) == 0);
    check(mkdir("m/d", 0755) == 0);
    int fd = make("m/d/f");
    check(write(fd, "kept", 4) == 4 && link("m/d/f", "m/g") == 0);
    check_busy(); // an open file
    char *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    check(map != MAP_FAILED && close(fd) == 0);
    check_busy(); // a mapped file
    check(munmap(map, 4096) == 0);
    fd = make("m/removed");
    check(unlink("m/removed") == 0);
    check_busy(); // an unlinked file
    close(fd);
    fd = open("m/d", O_RDONLY | O_DIRECTORY);
    check_busy(); // an open directory
    close(fd);
    check(rename("m/d", "m/e") == 0 && rename("m/e", "m/d") == 0);
    check(chdir("m") == 0);
    check_error(umount("/tmp/fs_mount/m"), EBUSY); // a working directory
    check(chdir("/tmp/fs_mount") == 0);
    int there[2];
    char byte;
    check(pipe(there) == 0);
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        check(chroot("m") == 0 && write(there[1], "", 1) == 1);
        for (;;)
            pause();
    }
    check(read(there[0], &byte, 1) == 1);
    check_busy(); // a task's root
    check(close(there[0]) == 0 && close(there[1]) == 0);
    check(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    check(umount("m") == 0 && rmdir("m") == 0);
    fd = open("/dev/null", O_RDONLY);
    check_error(umount("/dev"), EBUSY);
    close(fd);
    fd = open("/proc/self/maps", O_RDONLY);
    check_error(umount("/proc"), EBUSY);
    check(close(fd) == 0 && umount("/proc") == 0);
    check_error(open("/proc/self/maps", O_RDONLY), ENOENT);
    check(mount("x", "/proc", "proc", 0, NULL) == 0);
    ok("mounts in use");
}

static void statfs_calls(void)
{
    struct statfs s;
    check(statfs("/tmp", &s) == 0 && s.f_type == 0x01021994);
    check(s.f_bsize == 4096 && s.f_blocks > 0 && s.f_bfree <= s.f_blocks);
    check(s.f_namelen == 255);
    check(statfs("/proc", &s) == 0 && s.f_type == 0x9fa0);
    check_error(statfs("/none", &s), ENOENT);
    ok("statfs");
}

static void in_root(void)
{
    char buf[128];
    check(mkdir("root", 0755) == 0 && mkdir("root/d", 0755) == 0);
    check(symlink("/d", "root/s") == 0);
    int outside = open("/", O_RDONLY);
    check(chroot("root") == 0 && chdir("/") == 0);
    check(stat("/d", &st) == 0 && stat("/s/.", &st) == 0);
    check(stat("/../../d", &st) == 0);
    check_error(stat("/bin", &st), ENOENT);
    check(chdir("/d") == 0 && getcwd(buf, sizeof(buf)) && !strcmp(buf, "/d"));
    check(fchdir(outside) == 0 && chroot(".") == 0);
    check(chdir("/tmp/fs_mount") == 0);
    check(unlink("root/s") == 0 && rmdir("root/d") == 0 && rmdir("root") == 0);
    ok("chroot");
}

// Fills /tmp: ENOSPC, the machine keeps running, and all space is freed.
static void fill(void)
{
    static char block[65536];
    struct statfs before, after;
    memset(block, 1, sizeof(block));
    check(statfs("/tmp", &before) == 0);
    int fd = make("big");
    ssize_t n;
    while ((n = write(fd, block, sizeof(block))) > 0)
        ;
    check(n == -1 && errno == ENOSPC);
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        char *m = malloc(100000);
        memset(m, 2, 100000);
        _exit(0);
    }
    int status;
    check(waitpid(child, &status, 0) == child && status == 0);
    // The space that the child freed is usable, and runs out, too.
    char name[16];
    int made = 0, err;
    do {
        snprintf(name, sizeof(name), "more%d", made);
        err = mkdir(name, 0755);
    } while (err == 0 && ++made < 100000);
    check(err == -1 && errno == ENOSPC);
    check(unlink("big") == 0 && close(fd) == 0);
    while (made > 0) {
        snprintf(name, sizeof(name), "more%d", --made);
        check(rmdir(name) == 0);
    }
    check(statfs("/tmp", &after) == 0);
    long lost = (long)before.f_bfree - (long)after.f_bfree;
    check(lost < 200);
    ok("a full file system");
}

// A mount's line has the same fields whatever its name is.
static void mounts_with_odd_names(void)
{
    char buf[4096] = "";
    check(mkdir("a b\n\\c", 0755) == 0);
    check(mount("x", "a b\n\\c", "tmpfs", 0, NULL) == 0);
    int fd = open("/proc/mounts", O_RDONLY);
    check(read(fd, buf, sizeof(buf) - 1) > 0);
    close(fd);
    check(strstr(buf, " /tmp/fs_mount/a\\040b\\012\\134c tmpfs rw") != NULL);
    check(umount("a b\n\\c") == 0 && rmdir("a b\n\\c") == 0);

    char name[256] = "";
    memset(name, 'x', 255);
    check(mkdir(name, 0755) == 0 && mount("x", name, "tmpfs", 0, NULL) == 0);
    fd = open("/proc/mounts", O_RDONLY);
    check(read(fd, buf, sizeof(buf) - 1) > 0);
    close(fd);
    check(strstr(buf, name) != NULL);
    check(umount(name) == 0 && rmdir(name) == 0);
    ok("mounts with odd names");
}

static void mount_in_jail(void)
{
    check(chroot("/tmp/fs_mount/jail") == 0 && chdir("/") == 0);
    check(mount("x", "/dev", "tmpfs", 0, NULL) == 0);
}

// A mount by a task with another root has the reader's own path name.
static void mounts_of_another_root(void)
{
    char buf[4096] = "";
    check(mkdir("jail", 0755) == 0 && mkdir("jail/dev", 0755) == 0);
    check(exited_with(in_child(mount_in_jail), 0));
    int fd = open("/proc/mounts", O_RDONLY);
    check(read(fd, buf, sizeof(buf) - 1) > 0);
    close(fd);
    check(strstr(buf, "tmpfs /tmp/fs_mount/jail/dev tmpfs") != NULL);
    check(strstr(buf, "\ntmpfs /dev tmpfs") == NULL);
    check(umount("jail/dev") == 0 && rmdir("jail/dev") == 0);
    check(rmdir("jail") == 0);
    ok("mounts of another root");
}

int main(void)
{
    alarm(TEST_SECONDS);
    check(mkdir("/tmp/fs_mount", 0755) == 0 && chdir("/tmp/fs_mount") == 0);
    mounts();
    mounts_in_use();
    mounts_of_another_root();
    mounts_with_odd_names();
    statfs_calls();
    in_root();
    fill();
    check(chdir("/") == 0 && rmdir("/tmp/fs_mount") == 0);
    return 0;
}
