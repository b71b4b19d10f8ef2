// Descriptors: copies, flags, limits, locks.
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

static void copies(void)
{
    int fd = open("f", O_CREAT | O_RDWR, 0644);
    check(fd >= 0);
    int copy = dup(fd);
    check(copy > fd && write(copy, "x", 1) == 1);
    check(lseek(fd, 0, SEEK_CUR) == 1);
    check(dup2(fd, fd) == fd && dup2(fd, 100) == 100);
    check(lseek(100, 0, SEEK_CUR) == 1);
    check_error(dup2(99, 98), EBADF);
    check_error(dup2(99, 99), EBADF);
    check_error(dup2(fd, 100000), EBADF);
    check_error(dup2(fd, -1), EBADF);
    check_error(dup3(fd, fd, 0), EINVAL);
    check(dup3(fd, 101, O_CLOEXEC) == 101);
    check(fcntl(101, F_GETFD) == FD_CLOEXEC && fcntl(100, F_GETFD) == 0);
    check(fcntl(fd, F_DUPFD, 50) == 50);
    check(fcntl(fd, F_DUPFD_CLOEXEC, 50) == 51);
    check(fcntl(51, F_GETFD) == FD_CLOEXEC);
    check(fcntl(51, F_SETFD, 0) == 0 && fcntl(51, F_GETFD) == 0);
    check_error(fcntl(fd, F_DUPFD, 1 << 20), EINVAL);
    check_error(fcntl(99, F_GETFD), EBADF);
    check_error(fcntl(fd, 12345), EINVAL);
    close(50);
    check(dup(fd) < 50);
    check(close(100) == 0);
    check_error(close(100), EBADF);
    ok("copies of descriptors");
    for (int i = 3; i < 110; i++)
        close(i);
}

static void flags(void)
{
    int fd = open("f", O_RDWR | O_APPEND), value = 1;
    check((fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND)) == (O_RDWR | O_APPEND));
    check(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    check((fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK)) ==
          (O_RDWR | O_NONBLOCK));
    value = 0;
    check(ioctl(fd, FIONBIO, &value) == 0);
    check(!(fcntl(fd, F_GETFL) & O_NONBLOCK));
    check(ioctl(fd, FIOCLEX) == 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
    check(ioctl(fd, FIONCLEX) == 0 && fcntl(fd, F_GETFD) == 0);
    check(ftruncate(fd, 100) == 0 && ioctl(fd, FIONREAD, &value) == 0);
    check(value == 100);
    check_error(ioctl(fd, TIOCGWINSZ, &value), ENOTTY);
    close(fd);
    ok("flags");
}

static void limit(void)
{
    struct rlimit r, old;
    check(getrlimit(RLIMIT_NOFILE, &old) == 0);
    r = old;
    r.rlim_cur = 300;
    check(setrlimit(RLIMIT_NOFILE, &r) == 0);
    int fd, last = -1;
    while ((fd = dup(0)) >= 0)
        last = fd;
    check(errno == EMFILE && last == 299);
    int p[2];
    check_error(pipe(p), EMFILE);
    check_error(open("f", O_RDONLY), EMFILE);
    close(150);
    check_error(pipe(p), EMFILE); // needs two; leaves the free one free
    check(dup(0) == 150);
    for (fd = 3; fd < 300; fd++)
        close(fd);
    check(setrlimit(RLIMIT_NOFILE, &old) == 0);
    ok("the limit of descriptors");
}

static void locks(void)
{
    int a = open("f", O_RDWR), b = open("f", O_RDWR), status;
    check(flock(a, LOCK_EX) == 0);
    check_error(flock(b, LOCK_SH | LOCK_NB), EWOULDBLOCK);
    check(flock(a, LOCK_SH) == 0 && flock(b, LOCK_SH | LOCK_NB) == 0);
    check_error(flock(a, LOCK_EX | LOCK_NB), EWOULDBLOCK);
    check(flock(b, LOCK_UN) == 0);
    check(flock(a, LOCK_EX | LOCK_NB) == 0);
    pid_t child = fork();
    if (child == 0) {
        close(a); // a copy: the parent's keeps the lock
        close(b);
        int c = open("f", O_RDWR);
        check_error(flock(c, LOCK_EX | LOCK_NB), EWOULDBLOCK);
        check(flock(c, LOCK_EX) == 0); // waits for the parent
        _exit(7);
    }
    sleep_ms(50);
    check(waitpid(child, &status, WNOHANG) == 0);
    close(a);
    check(waitpid(child, &status, 0) == child && exited_with(status, 7));
    check(flock(b, LOCK_EX | LOCK_NB) == 0); // the child's lock ended with it
    close(b);
    ok("flock");
}

static struct flock range(short type, off_t start, off_t len)
{
    return (struct flock){ .l_type = type, .l_start = start, .l_len = len };
}

static void record_locks(void)
{
    int fd = open("g", O_CREAT | O_RDWR, 0644), status;
    struct flock l = range(F_WRLCK, 100, 100);
    check(fcntl(fd, F_SETLK, &l) == 0);
    l = range(F_UNLCK, 140, 20); // splits it
    check(fcntl(fd, F_SETLK, &l) == 0);
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        l = range(F_WRLCK, 140, 20);
        check(fcntl(fd, F_SETLK, &l) == 0);
        l = range(F_WRLCK, 130, 20);
        check(fcntl(fd, F_SETLK, &l) == -1 &&
              (errno == EAGAIN || errno == EACCES));
        l = range(F_RDLCK, 0, 0);
        check(fcntl(fd, F_GETLK, &l) == 0);
        check(l.l_type == F_WRLCK && l.l_start == 100 && l.l_len == 40 &&
              l.l_pid == parent);
        l = range(F_WRLCK, 160, 0);
        check(fcntl(fd, F_SETLKW, &l) == 0); // until the parent closes
        _exit(0);
    }
    sleep_ms(100);
    check(waitpid(child, &status, WNOHANG) == 0);
    close(open("g", O_RDONLY)); // any close drops the process's locks
    check(waitpid(child, &status, 0) == child && status == 0);
    l = range(F_WRLCK, 5, -10);
    check_error(fcntl(fd, F_SETLK, &l), EINVAL);
    l = range(7, 0, 0);
    check_error(fcntl(fd, F_SETLK, &l), EINVAL);
    close(fd);
    ok("record locks");
}

static volatile bool stop;

static void *open_and_close(void *arg)
{
    (void)arg;
    while (!stop) {
        int fd = open("f", O_RDONLY);
        check(fd >= 0 && close(fd) == 0);
    }
    return NULL;
}

// Threads open and close files while another reads descriptors that may be
// theirs.
static void threads(void)
{
    pthread_t t[3];
    char c;
    for (int i = 0; i < 3; i++)
        check(pthread_create(&t[i], NULL, open_and_close, NULL) == 0);
    for (int i = 0; i < 20000; i++) {
        ssize_t n = read(3 + i % 4, &c, 1);
        check(n >= 0 || errno == EBADF);
    }
    stop = true;
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    ok("threads share descriptors");
}

int main(void)
{
    char dir[] = "/tmp/fs_fds.XXXXXX";
    alarm(TEST_SECONDS);
    check(mkdtemp(dir) && chdir(dir) == 0);
    copies();
    flags();
    limit();
    locks();
    record_locks();
    threads();
    check(unlink("f") == 0 && unlink("g") == 0 && chdir("/") == 0);
    check(rmdir(dir) == 0);
    return 0;
}
