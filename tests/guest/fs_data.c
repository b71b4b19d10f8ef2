// File contents: reading, writing, positions, holes, truncation, vectors, and
// bad user memory.
#include "test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define PAGE 4096

static struct stat st;

static int fresh(int flags)
{
    int fd = open("data", O_CREAT | O_TRUNC | flags, 0644);
    check(fd >= 0);
    return fd;
}

static void positions(void)
{
    int fd = fresh(O_RDWR);
    char buf[16];
    check(write(fd, "0123456789", 10) == 10);
    check(lseek(fd, 0, SEEK_CUR) == 10);
    check(lseek(fd, -3, SEEK_END) == 7);
    check(read(fd, buf, sizeof(buf)) == 3 && !memcmp(buf, "789", 3));
    check(read(fd, buf, sizeof(buf)) == 0);
    check(pread(fd, buf, 4, 2) == 4 && !memcmp(buf, "2345", 4));
    check(pwrite(fd, "ab", 2, 4) == 2);
    check(lseek(fd, 0, SEEK_CUR) == 10);
    check(pread(fd, buf, 10, 0) == 10 && !memcmp(buf, "0123ab6789", 10));
    check(pread(fd, buf, 4, 100) == 0);
    check_error(lseek(fd, -1, SEEK_SET), EINVAL);
    check_error(lseek(fd, 0, 77), EINVAL);
    check_error(pread(fd, buf, 1, -1), EINVAL);
    check(lseek(fd, 5000000000ll, SEEK_SET) == 5000000000ll);
    check(read(fd, buf, 1) == 0);
    int p[2];
    check(pipe(p) == 0);
    check_error(lseek(p[0], 0, SEEK_SET), ESPIPE);
    check_error(pread(p[0], buf, 1, 0), ESPIPE);
    close(p[0]);
    close(p[1]);
    close(fd);
    ok("positions");
}

static void modes(void)
{
    char c;
    int r = fresh(O_RDONLY), w = open("data", O_WRONLY),
        d = open("/", O_RDONLY);
    check_error(write(r, "x", 1), EBADF);
    check_error(read(w, &c, 1), EBADF);
    check_error(read(d, &c, 1), EISDIR);
    check_error(write(d, &c, 1), EBADF);
    check_error(read(77, &c, 1), EBADF);
    check_error(read(-1, &c, 1), EBADF);
    check_error(ftruncate(r, 0), EINVAL);
    check_error(ftruncate(w, -1), EINVAL);
    check_error(truncate("/", 0), EISDIR);
    check_error(truncate("none", 0), ENOENT);
    int path = open("data", O_PATH);
    check(path >= 0 && fstat(path, &st) == 0 && S_ISREG(st.st_mode));
    check_error(read(path, &c, 1), EBADF);
    close(path);
    close(r);
    close(w);
    close(d);
    ok("what a descriptor was opened for");
}

static void holes(void)
{
    static char buf[3 * PAGE];
    int fd = fresh(O_RDWR);
    check(pwrite(fd, "end", 3, 1000000) == 3);
    check(fstat(fd, &st) == 0 && st.st_size == 1000003);
    check(st.st_blocks > 0 && st.st_blocks <= 16);
    memset(buf, 1, sizeof(buf));
    check(pread(fd, buf, sizeof(buf), 500001) == (ssize_t)sizeof(buf));
    for (size_t i = 0; i < sizeof(buf); i++)
        check(buf[i] == 0);
    check(pwrite(fd, "far", 3, 3ll << 30) == 3);
    check(fstat(fd, &st) == 0 && st.st_size == (3ll << 30) + 3);
    check(pread(fd, buf, 10, 3ll << 30) == 3 && !memcmp(buf, "far", 3));
    check(ftruncate(fd, 0) == 0 && fstat(fd, &st) == 0);
    check(st.st_size == 0 && st.st_blocks == 0);
    close(fd);
    ok("holes");
}

static void truncation(void)
{
    static char buf[2 * PAGE];
    int fd = fresh(O_RDWR);
    memset(buf, 'x', sizeof(buf));
    check(write(fd, buf, sizeof(buf)) == (ssize_t)sizeof(buf));
    check(ftruncate(fd, 100) == 0);
    check(ftruncate(fd, PAGE + 100) == 0);
    check(pread(fd, buf, sizeof(buf), 0) == PAGE + 100);
    for (int i = 0; i < PAGE + 100; i++)
        check(buf[i] == (i < 100 ? 'x' : 0));
    check(truncate("data", 50) == 0 && fstat(fd, &st) == 0 && st.st_size == 50);
    int again = open("data", O_WRONLY | O_TRUNC);
    check(again >= 0 && fstat(fd, &st) == 0 && st.st_size == 0);
    close(again);
    close(fd);
    ok("what truncation cut off reads as zeros");
}

static void vectors(void)
{
    char a[4], b[4], c[8];
    struct iovec w[3] = { { "one", 3 }, { NULL, 0 }, { "three", 5 } };
    struct iovec r[3] = { { a, 2 }, { b, 4 }, { c, 8 } };
    int fd = fresh(O_RDWR);
    check(writev(fd, w, 3) == 8);
    check(lseek(fd, 0, SEEK_SET) == 0);
    check(readv(fd, r, 3) == 8);
    check(!memcmp(a, "on", 2) && !memcmp(b, "ethr", 4) && !memcmp(c, "ee", 2));
    check(writev(fd, w, 0) == 0);
    check_error(writev(fd, w, 1025), EINVAL);
    check_error(writev(fd, w, -1), EINVAL);
    check_error(writev(fd, (void *)8, 1), EFAULT);
    struct iovec big[3] = { { a, 2 }, { c, 0x7fffffff }, { a, 0x7fffffff } };
    check(pread(fd, a, 1, 0) == 1 && preadv(fd, big, 3, 3) == 5);
    struct iovec negative[1] = { { a, 0x80000000 } };
    check_error(readv(fd, negative, 1), EINVAL);
    check(preadv(fd, r, 1, 3) == 2 && !memcmp(a, "th", 2));
    check(pwritev(fd, w, 1, 5) == 3);
    struct iovec many[1024];
    for (int i = 0; i < 1024; i++)
        many[i] = (struct iovec){ "z", 1 };
    check(writev(fd, many, 1024) == 1024);
    close(fd);
    ok("vectors");
}

static void bad_memory(void)
{
    // Two mapped pages and an unmapped one.
    char *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(p != MAP_FAILED && munmap(p + 2 * PAGE, PAGE) == 0);
    memset(p, 'p', 2 * PAGE);
    int fd = fresh(O_RDWR);
    check(write(fd, p + PAGE, 2 * PAGE) == PAGE);
    check(fstat(fd, &st) == 0 && st.st_size == PAGE);
    check_error(write(fd, p + 2 * PAGE, 10), EFAULT);
    check(write(fd, p, 2 * PAGE) == 2 * PAGE);
    check(pread(fd, p + PAGE + 10, 2 * PAGE, 0) == PAGE - 10);
    check_error(pread(fd, p + 2 * PAGE, 1, 0), EFAULT);
    check_error(pread(fd, (void *)0xc0000000, 1, 0), EFAULT);
    check_error(pread(fd, (void *)0xfffff000, 0x2000, 0), EFAULT);
    check_error(write(fd, (void *)0xbffffff0, 100), EFAULT);
    struct iovec v[2] = { { p, 10 }, { p + 2 * PAGE, 10 } };
    check(lseek(fd, 0, SEEK_SET) == 0 && readv(fd, v, 2) == 10);
    check(lseek(fd, 0, SEEK_CUR) == 10);
    int pipe_fd[2];
    check(pipe(pipe_fd) == 0);
    check(write(pipe_fd[1], p + PAGE, 2 * PAGE) == PAGE);
    check_error(read(pipe_fd[0], p + 2 * PAGE, 16), EFAULT);
    check(read(pipe_fd[0], p, 2 * PAGE) == PAGE); // nothing is lost
    close(pipe_fd[0]);
    close(pipe_fd[1]);
    close(fd);
    munmap(p, 2 * PAGE);
    ok("a transfer ends where memory does");
}

#define APPENDERS 4
#define LINES 500

static void append(void)
{
    close(fresh(O_WRONLY));
    for (int i = 0; i < APPENDERS; i++) {
        if (fork() == 0) {
            int fd = open("data", O_WRONLY | O_APPEND);
            char line[100];
            memset(line, 'a' + i, sizeof(line));
            for (int n = 0; n < LINES; n++)
                check(write(fd, line, sizeof(line)) == sizeof(line));
            _exit(0);
        }
    }
    int status;
    for (int i = 0; i < APPENDERS; i++)
        check(wait(&status) > 0 && status == 0);
    int fd = open("data", O_RDONLY), count[APPENDERS] = { 0 };
    char line[100];
    for (int n = 0; n < APPENDERS * LINES; n++) {
        check(read(fd, line, sizeof(line)) == sizeof(line));
        for (size_t i = 1; i < sizeof(line); i++)
            check(line[i] == line[0]);
        count[line[0] - 'a']++;
    }
    for (int i = 0; i < APPENDERS; i++)
        check(count[i] == LINES);
    check(read(fd, line, 1) == 0);
    close(fd);
    ok("appends are whole");
}

static void shared_position(void)
{
    int fd = fresh(O_RDWR);
    if (fork() == 0) {
        check(write(fd, "child", 5) == 5);
        _exit(0);
    }
    int status;
    check(wait(&status) > 0 && status == 0);
    check(write(fd, "parent", 6) == 6);
    char buf[11];
    check(pread(fd, buf, 11, 0) == 11 && !memcmp(buf, "childparent", 11));
    close(fd);
    ok("a fork shares the position");
}

static void unlinked(void)
{
    int fd = fresh(O_RDWR);
    char buf[4];
    check(write(fd, "live", 4) == 4 && unlink("data") == 0);
    check(fstat(fd, &st) == 0 && st.st_nlink == 0 && st.st_size == 4);
    check(pread(fd, buf, 4, 0) == 4 && !memcmp(buf, "live", 4));
    check_error(stat("data", &st), ENOENT);
    close(fd);
    ok("an unlinked file lives until it is closed");
}

static void mapped(void)
{
    int fd = fresh(O_RDWR);
    check(ftruncate(fd, 2 * PAGE) == 0);
    char *m = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    check(m != MAP_FAILED && m[PAGE] == 0);
    check(pwrite(fd, "seen", 4, PAGE) == 4);
    check(!memcmp(m + PAGE, "seen", 4));
    char buf[4];
    check(pwrite(fd, m + PAGE, 4, 0) == 4); // from its own mapping
    check(pread(fd, buf, 4, 0) == 4 && !memcmp(buf, "seen", 4));
    munmap(m, 2 * PAGE);
    close(fd);
    ok("a shared mapping sees writes, holes included");
}

static void sends(void)
{
    static char buf[3 * PAGE], got[3 * PAGE];
    for (size_t i = 0; i < sizeof(buf); i++)
        buf[i] = (char)(i * 7);
    int in = fresh(O_RDWR), out = open("copy", O_CREAT | O_RDWR, 0644);
    check(write(in, buf, sizeof(buf)) == (ssize_t)sizeof(buf));
    check(lseek(in, 100, SEEK_SET) == 100);
    check(sendfile(out, in, NULL, 1 << 20) == (ssize_t)sizeof(buf) - 100);
    check(lseek(in, 0, SEEK_CUR) == (off_t)sizeof(buf));
    check(pread(out, got, sizeof(got), 0) == (ssize_t)sizeof(buf) - 100);
    check(!memcmp(got, buf + 100, sizeof(buf) - 100));
    off_t at = 10;
    check(sendfile(out, in, &at, 5) == 5 && at == 15);
    check(lseek(in, 0, SEEK_CUR) == (off_t)sizeof(buf));
    check(sendfile(out, in, NULL, 10) == 0);
    check_error(sendfile(in, 77, NULL, 1), EBADF);
    close(in);
    close(out);
    check(unlink("copy") == 0);
    ok("sendfile");
}

int main(void)
{
    char dir[] = "/tmp/fs_data.XXXXXX";
    alarm(TEST_SECONDS);
    check(mkdtemp(dir) && chdir(dir) == 0);
    positions();
    modes();
    holes();
    truncation();
    vectors();
    bad_memory();
    append();
    shared_position();
    unlinked();
    mapped();
    sends();
    check(unlink("data") == 0 && chdir("/") == 0 && rmdir(dir) == 0);
    return 0;
}
