// Mappings of files: private and shared, beyond the end, with and without the
// right to write.
#include "tests/guest/test.h"

#include <fcntl.h>
#include <sys/mman.h>

#define PAGE 4096u
#define PAGES 20u
#define SIZE (PAGES * PAGE - 1000)
#define RW (PROT_READ | PROT_WRITE)
#define NAME "/tmp/mm_file.data"

static char text[PAGES * PAGE];

static int make_file(void)
{
    int fd = open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
    check(fd >= 0);
    for (unsigned i = 0; i < SIZE; i++)
        text[i] = (char)('a' + i / PAGE);
    check(write(fd, text, SIZE) == (ssize_t)SIZE);
    return fd;
}

static void *map(int prot, int flags, int fd, unsigned page)
{
    return mmap(NULL, PAGES * PAGE, prot, flags, fd, page * PAGE);
}

static void test_private(int fd)
{
    char byte, *p = map(RW, MAP_PRIVATE, fd, 0);
    check(p != MAP_FAILED && memcmp(p, text, SIZE) == 0);
    for (unsigned i = SIZE; i < PAGES * PAGE; i++)
        check(p[i] == 0); // the rest of the last page
    p[0] = 'X';
    p[5 * PAGE] = 'Y';
    check(pread(fd, &byte, 1, 0) == 1 && byte == 'a');
    check(pwrite(fd, "Z", 1, 7 * PAGE) == 1);
    check(p[0] == 'X' && p[5 * PAGE] == 'Y' && p[1] == 'a');
    check(pwrite(fd, text + 7 * PAGE, 1, 7 * PAGE) == 1);
    check(munmap(p, PAGES * PAGE) == 0);
    p = map(PROT_READ, MAP_PRIVATE, fd, 2);
    check(p != MAP_FAILED && p[0] == 'c' && p[PAGE] == 'd');
    check(munmap(p, PAGES * PAGE) == 0);
    p = map(RW, MAP_PRIVATE, fd, 0);
    p[3 * PAGE + 9] = 'W'; // the first touch is a write
    check(p[3 * PAGE + 8] == 'd' && p[3 * PAGE + 9] == 'W');
    check(munmap(p, PAGES * PAGE) == 0);
    ok("private mappings show the file and keep their changes");
}

static void test_shared(int fd)
{
    char byte, *p = map(RW, MAP_SHARED, fd, 0);
    char *q = map(PROT_READ, MAP_SHARED, fd, 1);
    check(p != MAP_FAILED && q != MAP_FAILED);
    check(memcmp(p, text, SIZE) == 0 && q[0] == 'b');
    p[PAGE] = 'S';
    check(q[0] == 'S');
    check(pread(fd, &byte, 1, PAGE) == 1 && byte == 'S');
    check(pwrite(fd, "T", 1, PAGE + 1) == 1 && p[PAGE + 1] == 'T');
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        p[2 * PAGE] = 'C';
        _exit(0);
    }
    check(waitpid(pid, NULL, 0) == pid && p[2 * PAGE] == 'C');
    check(munmap(p, PAGES * PAGE) == 0 && munmap(q, PAGES * PAGE) == 0);
    check(pread(fd, &byte, 1, 2 * PAGE) == 1 && byte == 'C');
    ok("shared mappings are the file");
}

static void read_beyond(void)
{
    int fd = open(NAME, O_RDONLY);
    volatile char *p =
        mmap(NULL, (PAGES + 4) * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    check(p[SIZE - 1] == 'a' + PAGES - 1);
    (void)p[PAGES * PAGE];
}

static void test_end(int fd)
{
    check(killed_by(in_child(read_beyond), SIGBUS));
    int zero = open("/dev/zero", O_RDWR), out[2];
    char *p = mmap(NULL, (PAGES + 1) * PAGE, RW, MAP_PRIVATE, fd, 0);
    check(pipe(out) == 0);
    check_error(read(zero, p + PAGES * PAGE, 1), EFAULT);
    check_error(write(out[1], p + PAGES * PAGE, 1), EFAULT);
    check(munmap(p, (PAGES + 1) * PAGE) == 0);
    p = mmap(NULL, PAGE, RW, MAP_PRIVATE, zero, 0);
    check(p != MAP_FAILED && p[0] == 0 && (p[0] = 1));
    close(zero);
    ok("beyond the end is SIGBUS; /dev/zero maps");
}

static void test_rights(void)
{
    int rd = open(NAME, O_RDONLY), wr = open(NAME, O_WRONLY);
    int dir = open("/tmp", O_RDONLY);
    check(map(PROT_READ, MAP_PRIVATE, wr, 0) == MAP_FAILED && errno == EACCES);
    check(map(RW, MAP_SHARED, rd, 0) == MAP_FAILED && errno == EACCES);
    check(map(PROT_READ, MAP_PRIVATE, dir, 0) == MAP_FAILED && errno == ENODEV);
    char *p = map(PROT_READ, MAP_SHARED, rd, 0);
    check(p != MAP_FAILED);
    check_error(mprotect(p, PAGE, RW), EACCES);
    char *q = map(RW, MAP_PRIVATE, rd, 0);
    check(q != MAP_FAILED && (q[0] = 'R'));
    close(rd);
    check(unlink(NAME) == 0);
    check(p[3 * PAGE] == 'd' && q[0] == 'R'); // mappings keep the file
    check(munmap(p, PAGES * PAGE) == 0 && munmap(q, PAGES * PAGE) == 0);
    ok("the descriptor's rights count");
}

static void test_holes(void)
{
    int fd = open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
    check(ftruncate(fd, 8 * PAGE) == 0);
    char byte, *p = mmap(NULL, 8 * PAGE, RW, MAP_SHARED, fd, 0);
    check(p != MAP_FAILED && p[4 * PAGE] == 0);
    check(pwrite(fd, "h", 1, 4 * PAGE) == 1 && p[4 * PAGE] == 'h');
    p[6 * PAGE] = 'i';
    check(pread(fd, &byte, 1, 6 * PAGE) == 1 && byte == 'i');
    check(munmap(p, 8 * PAGE) == 0 && unlink(NAME) == 0);
    ok("holes of files");
}

int main(void)
{
    alarm(TEST_SECONDS);
    int fd = make_file();
    test_private(fd);
    test_shared(fd);
    test_end(fd);
    test_rights();
    test_holes();
    return 0;
}
