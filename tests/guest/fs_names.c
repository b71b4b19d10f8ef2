// Names: creating, linking, renaming and removing them, and every error.
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

static struct stat st;

static void make_file(const char *path, const char *text)
{
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    check(fd >= 0);
    check(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    check(close(fd) == 0);
}

static bool holds(const char *path, const char *text)
{
    char buf[256] = "";
    int fd = open(path, O_RDONLY);
    check(fd >= 0);
    check(read(fd, buf, sizeof(buf) - 1) >= 0);
    close(fd);
    return strcmp(buf, text) == 0;
}

static void open_errors(void)
{
    make_file("file", "text");
    check(mkdir("dir", 0755) == 0);
    check_error(open("", O_RDONLY), ENOENT);
    check_error(open("none", O_RDONLY), ENOENT);
    check_error(open("none/x", O_RDONLY), ENOENT);
    check_error(open("file/x", O_RDONLY), ENOTDIR);
    check_error(open("file/", O_RDONLY), ENOTDIR);
    check_error(open("file", O_CREAT | O_EXCL | O_RDWR, 0644), EEXIST);
    check_error(open("dir", O_RDWR), EISDIR);
    check_error(open("dir", O_WRONLY | O_CREAT, 0644), EISDIR);
    check_error(open("new/", O_WRONLY | O_CREAT, 0644), EISDIR);
    check_error(open("file", O_RDONLY | O_DIRECTORY), ENOTDIR);
    check_error(open((char *)8, O_RDONLY), EFAULT);
    check_error(open((char *)0xfffffff0, O_RDONLY), EFAULT);
    ok("open refuses what it must");
}

static void long_paths(void)
{
    char name[300];
    memset(name, 'n', sizeof(name));
    name[255] = '\0';
    make_file(name, "");
    check(unlink(name) == 0);
    name[255] = 'n';
    name[256] = '\0';
    check_error(open(name, O_CREAT | O_WRONLY, 0644), ENAMETOOLONG);
    check_error(stat(name, &st), ENAMETOOLONG);

    char *path = malloc(5000);
    for (int i = 0; i < 2500; i++)
        memcpy(path + 2 * i, "./", 2);
    path[4094] = '\0';
    check(stat(path, &st) == 0);
    strcpy(path + 4094, ".");
    check(stat(path, &st) == 0);
    strcpy(path + 4095, "/");
    check_error(stat(path, &st), ENAMETOOLONG);
    free(path);
    ok("names of 255 and paths of 4095 characters, no more");
}

static void slashes_and_dots(void)
{
    check(stat("dir/", &st) == 0 && S_ISDIR(st.st_mode));
    check(stat(".//dir///./../dir/.", &st) == 0 && S_ISDIR(st.st_mode));
    check(stat("/", &st) == 0);
    ino_t root = st.st_ino;
    check(stat("/../..", &st) == 0 && st.st_ino == root);
    check_error(rmdir("dir/."), EINVAL);
    check_error(rmdir("dir/.."), ENOTEMPTY);
    check_error(rmdir("/"), EBUSY);
    check_error(mkdir(".", 0755), EEXIST);
    check_error(mkdir("/", 0755), EEXIST);
    check(mkdir("slash/", 0755) == 0);
    check(rmdir("slash/") == 0);
    check_error(mkdir("file/", 0755), EEXIST);
    check_error(mkdir("file/x", 0755), ENOTDIR);
    check_error(unlink("file/"), ENOTDIR);
    ok("dots and slashes");
}

static void links(void)
{
    make_file("one", "1");
    check(link("one", "two") == 0);
    check(stat("one", &st) == 0 && st.st_nlink == 2);
    ino_t ino = st.st_ino;
    check(stat("two", &st) == 0 && st.st_ino == ino);
    check_error(link("one", "two"), EEXIST);
    check_error(link("none", "x"), ENOENT);
    check_error(link("dir", "x"), EPERM);
    check_error(link("one", "/dev/x"), EXDEV);
    check(unlink("one") == 0);
    check(stat("two", &st) == 0 && st.st_nlink == 1);
    check(unlink("two") == 0);
    check_error(unlink("two"), ENOENT);
    check_error(unlink("dir"), EISDIR);
    check_error(rmdir("file"), ENOTDIR);
    ok("hard links");
}

static void symlinks(void)
{
    char buf[64];
    check(symlink("file", "sym") == 0);
    check(holds("sym", "text"));
    check(lstat("sym", &st) == 0 && S_ISLNK(st.st_mode) && st.st_size == 4);
    check(readlink("sym", buf, sizeof(buf)) == 4 && !memcmp(buf, "file", 4));
    check(readlink("sym", buf, 2) == 2);
    check_error(readlink("file", buf, sizeof(buf)), EINVAL);
    check_error(open("sym", O_RDONLY | O_NOFOLLOW), ELOOP);
    check_error(symlink("x", "sym"), EEXIST);
    check_error(symlink("", "empty"), ENOENT);
    check(unlink("sym") == 0 && stat("file", &st) == 0);

    check(symlink("loop2", "loop1") == 0 && symlink("loop1", "loop2") == 0);
    check_error(stat("loop1", &st), ELOOP);
    check(unlink("loop1") == 0 && unlink("loop2") == 0);

    check(symlink("made", "dangling") == 0);
    check_error(stat("dangling", &st), ENOENT);
    check_error(open("dangling", O_CREAT | O_EXCL | O_WRONLY, 0644), EEXIST);
    make_file("dangling", "through");
    check(holds("made", "through"));
    check(unlink("dangling") == 0 && unlink("made") == 0);

    make_file("dir/in", "inside");
    check(symlink("dir", "dirlink") == 0);
    check(holds("dirlink/in", "inside"));
    check(lstat("dirlink/", &st) == 0 && S_ISDIR(st.st_mode));
    check_error(rmdir("dirlink"), ENOTDIR);
    check_error(rmdir("dirlink/"), ENOTDIR);
    check(symlink("../dir/../file", "dir/up") == 0);
    check(holds("dir/up", "text"));
    check(unlink("dirlink") == 0 && unlink("dir/in") == 0 &&
          unlink("dir/up") == 0);

    // Forty symbolic links are followed, the forty-first is not.
    char from[16], to[16] = "file";
    for (int i = 1; i <= 41; i++) {
        sprintf(from, "chain%d", i);
        check(symlink(to, from) == 0);
        strcpy(to, from);
    }
    check(stat("chain40", &st) == 0);
    check_error(stat("chain41", &st), ELOOP);
    for (int i = 1; i <= 41; i++) {
        sprintf(from, "chain%d", i);
        check(unlink(from) == 0);
    }
    ok("symlinks");
}

static void renames(void)
{
    make_file("a", "A");
    make_file("b", "B");
    check(rename("a", "b") == 0);
    check(holds("b", "A"));
    check_error(stat("a", &st), ENOENT);
    check(rename("b", "b") == 0 && holds("b", "A"));
    check(link("b", "c") == 0 && rename("b", "c") == 0);
    check(stat("b", &st) == 0 && st.st_nlink == 2); // same inode: no effect
    check(unlink("c") == 0);

    check(mkdir("d1", 0755) == 0 && mkdir("d1/sub", 0755) == 0);
    check(mkdir("d2", 0755) == 0);
    check_error(rename("d1", "d1/sub/x"), EINVAL);
    check(rename("d1", "d1") == 0);
    check_error(rename("d1/sub", "d1"), ENOTEMPTY);
    check_error(rename("d2", "d1"), ENOTEMPTY);
    check_error(rename("d1", "b"), ENOTDIR);
    check_error(rename("b", "d2"), EISDIR);
    check_error(rename("none", "x"), ENOENT);
    check_error(rename("b", "none/x"), ENOENT);
    check_error(rename("b/", "x"), ENOTDIR);
    check_error(rename("d1/.", "x"), EBUSY);
    check_error(rename("b", "/dev/x"), EXDEV);
    check(rename("d1", "d2") == 0); // an empty directory is replaced
    check(stat("d2/sub", &st) == 0);
    check(stat("d2/sub/..", &st) == 0);
    ino_t d2 = st.st_ino;
    check(stat("d2", &st) == 0 && st.st_ino == d2 && st.st_nlink == 3);
    check(mkdir("d3", 0755) == 0 && rename("d2/sub", "d3/moved") == 0);
    check(stat("d2", &st) == 0 && st.st_nlink == 2);
    check(stat("d3", &st) == 0 && st.st_nlink == 3);
    ino_t d3 = st.st_ino;
    check(stat("d3/moved/..", &st) == 0 && st.st_ino == d3);
    check(rmdir("d3/moved") == 0 && rmdir("d3") == 0 && rmdir("d2") == 0);
    check(unlink("b") == 0);
    ok("rename");
}

static void at_calls(void)
{
    int dir = open("dir", O_RDONLY | O_DIRECTORY);
    check(dir >= 0);
    int fd = openat(dir, "f", O_CREAT | O_WRONLY, 0600);
    check(fd >= 0 && close(fd) == 0);
    check(fstatat(dir, "f", &st, 0) == 0 && (st.st_mode & 07777) == 0600);
    check(mkdirat(dir, "sub", 0700) == 0);
    check_error(unlinkat(dir, "sub", 0), EISDIR);
    check(unlinkat(dir, "sub", AT_REMOVEDIR) == 0);
    check(symlinkat("f", dir, "s") == 0);
    check(fstatat(dir, "s", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
          S_ISLNK(st.st_mode));
    check(linkat(dir, "f", AT_FDCWD, "dir/g", 0) == 0);
    check(renameat(dir, "g", dir, "h") == 0);
    check(fchmodat(dir, "h", 0444, 0) == 0);
    check(stat("dir/f", &st) == 0 && (st.st_mode & 07777) == 0444);
    check(faccessat(dir, "h", R_OK, 0) == 0);
    check_error(faccessat(dir, "h", X_OK, 0), EACCES);
    check_error(openat(99, "x", O_RDONLY), EBADF);
    check(openat(99, "/", O_RDONLY) >= 0);
    int file = open("dir/f", O_RDONLY);
    check_error(openat(file, "x", O_RDONLY), ENOTDIR);
    check(unlink("dir/f") == 0 && unlink("dir/h") == 0 && unlink("dir/s") == 0);
    close(file);
    close(dir);
    ok("the at calls");
}

static void cwd(void)
{
    char top[256], buf[256];
    check(getcwd(top, sizeof(top)) != NULL);
    check(chdir("dir") == 0);
    check(getcwd(buf, sizeof(buf)) != NULL);
    check(strcmp(strrchr(buf, '/'), "/dir") == 0);
    check_error(getcwd(buf, 3) ? 0 : -1, ERANGE);
    check_error(chdir("../file"), ENOTDIR);
    check_error(chdir("none"), ENOENT);

    check(mkdir("gone", 0755) == 0 && chdir("gone") == 0);
    check(rmdir("../gone") == 0);
    check_error(getcwd(buf, sizeof(buf)) ? 0 : -1, ENOENT);
    check_error(open("x", O_CREAT | O_WRONLY, 0644), ENOENT);
    check(chdir(top) == 0);
    check(chdir("/") == 0 && getcwd(buf, sizeof(buf)) && !strcmp(buf, "/"));
    check(chdir(top) == 0);
    ok("the current directory, and one that is gone");
}

#define MANY 600

static void listing(void)
{
    static bool seen[MANY];
    char name[32];
    for (int i = 0; i < MANY; i++) {
        sprintf(name, "dir/%d", i);
        make_file(name, "");
    }
    DIR *d = opendir("dir");
    struct dirent *e;
    int dots = 0, count = 0;
    // Removal during a listing hides no remaining entry.
    while ((e = readdir(d)) != NULL) {
        if (e->d_name[0] == '.') {
            check(e->d_type == DT_DIR);
            dots++;
            continue;
        }
        int n = atoi(e->d_name);
        check(n >= 0 && n < MANY && !seen[n] && e->d_type == DT_REG);
        seen[n] = true;
        count++;
        sprintf(name, "dir/%d", n);
        check(unlink(name) == 0);
    }
    check(dots == 2 && count == MANY);
    rewinddir(d);
    for (count = 0; readdir(d); count++)
        ;
    check(count == 2);
    closedir(d);
    check_error(rmdir("dir/none"), ENOENT);
    make_file("dir/x", "");
    check_error(rmdir("dir"), ENOTEMPTY);
    check(unlink("dir/x") == 0);
    ok("listing a directory while it is emptied");
}

static void special(void)
{
    check(umask(027) == 022);
    check(mkdir("m", 0777) == 0 && stat("m", &st) == 0);
    check((st.st_mode & 07777) == 0750);
    check(umask(022) == 027);
    check(rmdir("m") == 0);
    check(mknod("null", S_IFCHR | 0600, 1 << 8 | 3) == 0);
    check(stat("null", &st) == 0 && S_ISCHR(st.st_mode) &&
          st.st_rdev == (1 << 8 | 3));
    int fd = open("null", O_RDWR);
    char c;
    check(fd >= 0 && write(fd, "x", 1) == 1 && read(fd, &c, 1) == 0);
    close(fd);
    check(unlink("null") == 0);
    check(chmod("file", 04711) == 0 && stat("file", &st) == 0 &&
          (st.st_mode & 07777) == 04711);
    check(chown("file", 5, -1) == 0 && stat("file", &st) == 0 &&
          st.st_uid == 5 && st.st_gid == 0);
    struct timespec t[2] = { { 1000000000, 5 }, { 0, UTIME_OMIT } };
    time_t before = st.st_mtime;
    check(utimensat(AT_FDCWD, "file", t, 0) == 0 && stat("file", &st) == 0);
    check(st.st_atime == 1000000000 && st.st_atim.tv_nsec == 5 &&
          st.st_mtime == before);
    t[1].tv_nsec = 1000000000;
    check_error(utimensat(AT_FDCWD, "file", t, 0), EINVAL);
    check(utimensat(AT_FDCWD, "file", NULL, 0) == 0);
    ok("modes, owners, times, device nodes");
}

int main(void)
{
    char dir[] = "/tmp/fs_names.XXXXXX";
    alarm(TEST_SECONDS);
    umask(022);
    check(mkdtemp(dir) && chdir(dir) == 0);
    open_errors();
    long_paths();
    slashes_and_dots();
    links();
    symlinks();
    renames();
    at_calls();
    cwd();
    listing();
    special();
    check(unlink("file") == 0 && rmdir("dir") == 0);
    check(chdir("/") == 0 && rmdir(dir) == 0);
    return 0;
}
