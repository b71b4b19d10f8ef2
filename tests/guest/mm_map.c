// Anonymous mappings: mmap, munmap, mprotect, mremap, brk, madvise, mincore,
// and the errors of each.
#include "tests/guest/test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define PAGE 4096u
#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

static char *map(size_t pages)
{
    char *p = mmap(NULL, pages * PAGE, RW, ANON, -1, 0);
    check(p != MAP_FAILED && (uintptr_t)p % PAGE == 0);
    return p;
}

// Accesses the address in a child. Returns the signal that ended it, or 0.
static int touch(volatile char *p, bool write)
{
    int status;
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        if (write)
            *p = 1;
        else
            (void)*p;
        _exit(0);
    }
    check(waitpid(pid, &status, 0) == pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void test_anonymous(void)
{
    char *p = map(16);
    for (unsigned i = 0; i < 16 * PAGE; i += 512)
        check(p[i] == 0);
    memset(p, 'x', 16 * PAGE);
    check(munmap(p + 4 * PAGE, 2 * PAGE) == 0);
    check(p[4 * PAGE - 1] == 'x' && p[6 * PAGE] == 'x');
    check(touch(p + 4 * PAGE, false) == SIGSEGV);
    check(munmap(p + 4 * PAGE, 2 * PAGE) == 0); // not mapped: no error
    char *q = mmap(p + 5 * PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0);
    check(q == p + 5 * PAGE && *q == 0);
    q = mmap(p, 16 * PAGE, RW, ANON | MAP_FIXED, -1, 0); // over everything
    check(q == p && q[0] == 0 && q[15 * PAGE] == 0);
    check(munmap(p, 16 * PAGE) == 0);
    ok("anonymous memory is zero, splits and is replaced");
}

static void test_errors(void)
{
    char *p = map(2);
    void *far = (void *)0xfffff000;
    check(mmap(NULL, 0, RW, ANON, -1, 0) == MAP_FAILED && errno == EINVAL);
    check(mmap(NULL, ~0u, RW, ANON, -1, 0) == MAP_FAILED && errno == ENOMEM);
    check(mmap(NULL, PAGE, RW, MAP_ANONYMOUS, -1, 0) == MAP_FAILED &&
          errno == EINVAL);
    check(mmap(NULL, PAGE, RW, MAP_PRIVATE, -1, 0) == MAP_FAILED &&
          errno == EBADF);
    check(mmap(p + 1, PAGE, RW, ANON | MAP_FIXED, -1, 0) == MAP_FAILED &&
          errno == EINVAL);
    check(mmap(far, PAGE, RW, ANON | MAP_FIXED, -1, 0) == MAP_FAILED &&
          errno == ENOMEM);
    check(mmap(p, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED &&
          errno == EEXIST);
    check_error(munmap(p + 1, PAGE), EINVAL);
    check_error(munmap(p, 0), EINVAL);
    check_error(munmap(far, 2 * PAGE), EINVAL);
    // musl's mprotect rounds to pages
    check_error(syscall(SYS_mprotect, p + 1, PAGE, PROT_READ), EINVAL);
    check_error(mprotect(far, PAGE, PROT_READ), ENOMEM);
    check_error(mprotect(p, PAGE, 64), EINVAL);
    check(munmap(p + PAGE, PAGE) == 0);
    check_error(mprotect(p, 2 * PAGE, PROT_READ), ENOMEM);
    check_error(msync(p + 1, PAGE, MS_SYNC), EINVAL);
    check_error(msync(p, PAGE, MS_SYNC | MS_ASYNC), EINVAL);
    check_error(msync(p, 2 * PAGE, MS_SYNC), ENOMEM);
    check_error(madvise(p, PAGE, 12345), EINVAL);
    check_error(madvise(p, 2 * PAGE, MADV_DONTNEED), ENOMEM);
    // The kernel's own copies fail at bad addresses, too.
    check_error(write(1, p + PAGE, 1), EFAULT);
    check_error(write(1, (void *)0xc0100000, 1), EFAULT);
    check_error(read(open("/dev/zero", 0), (void *)4096, 1), EFAULT);
    check(munmap(p, PAGE) == 0);
    ok("bad numbers give the errors of Linux");
}

static void test_protection(void)
{
    char *p = map(3);
    p[0] = p[PAGE] = p[2 * PAGE] = 1;
    check(mprotect(p + PAGE, PAGE, PROT_READ) == 0);
    check(touch(p + PAGE, false) == 0 && touch(p + PAGE, true) == SIGSEGV);
    check(touch(p, true) == 0 && touch(p + 2 * PAGE, true) == 0);
    check(mprotect(p + PAGE, PAGE, PROT_NONE) == 0);
    check(touch(p + PAGE, false) == SIGSEGV);
    int fds[2];
    check(pipe(fds) == 0);
    check_error(write(fds[1], p + PAGE, 1), EFAULT);
    check(write(fds[1], "z", 1) == 1);
    check_error(read(fds[0], p + PAGE, 1), EFAULT);
    check(mprotect(p + PAGE, PAGE, RW) == 0);
    check(p[PAGE] == 1);
    p[PAGE] = 2; // and it may be written at once
    check(p[PAGE] == 2);
    char *none = mmap(NULL, PAGE, PROT_NONE, ANON, -1, 0);
    check(none != MAP_FAILED && touch(none, false) == SIGSEGV);
    check(munmap(p, 3 * PAGE) == 0 && munmap(none, PAGE) == 0);
    ok("mprotect takes and gives access");
}

static void test_execution(void)
{
    char *p = map(1);
    memcpy(p, "\xb8\x2a\x00\x00\x00\xc3", 6); // mov $42, %eax; ret
    check(mprotect(p, PAGE, PROT_READ | PROT_EXEC) == 0);
    check(((int (*)(void))(uintptr_t)p)() == 42);
    check(munmap(p, PAGE) == 0);
    ok("what is mapped executable executes");
}

static void fill(unsigned *p, unsigned pages)
{
    for (unsigned i = 0; i < pages; i++)
        p[i * 1024] = i + 1;
}

static bool filled(unsigned *p, unsigned pages)
{
    for (unsigned i = 0; i < pages; i++) {
        if (p[i * 1024] != i + 1)
            return false;
    }
    return true;
}

static void test_remap(void)
{
    unsigned *p = (unsigned *)map(64), *q;
    fill(p, 64);
    q = mremap(p, 64 * PAGE, 32 * PAGE, 0);
    check(q == p && filled(q, 32) && touch((char *)p + 32 * PAGE, 0));
    q = mremap(p, 32 * PAGE, 48 * PAGE, 0); // the room is free again
    check(q == p && filled(q, 32) && q[32 * 1024] == 0);
    check(mmap((char *)p + 48 * PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0) !=
          MAP_FAILED);
    check(mremap(p, 48 * PAGE, 49 * PAGE, 0) == MAP_FAILED && errno == ENOMEM);
    q = mremap(p, 48 * PAGE, 2048 * PAGE, MREMAP_MAYMOVE);
    check(q != MAP_FAILED && q != p && filled(q, 32) && q[2047 * 1024] == 0);
    check(touch((char *)p, false) == SIGSEGV);
    check(touch((char *)p + 48 * PAGE, false) == 0);
    char *to = map(40);
    p = mremap(q, 32 * PAGE, 32 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    check((char *)p == to && filled(p, 32));
    fill(p, 40);
    check(filled(p, 40));
    check(mremap(p, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
                 to + PAGE) == MAP_FAILED &&
          errno == EINVAL);
    check(mremap(p, PAGE, ~0u, MREMAP_MAYMOVE) == MAP_FAILED);
    check(mremap((void *)PAGE, PAGE, 2 * PAGE, 0) == MAP_FAILED &&
          errno == EFAULT);
    check(munmap(p, 40 * PAGE) == 0);
    ok("mremap shrinks, grows and moves");
}

static uintptr_t raw_brk(uintptr_t to)
{
    return (uintptr_t)syscall(SYS_brk, to);
}

static void test_brk(void)
{
    uintptr_t start = raw_brk(0);
    check(raw_brk(start + 10 * PAGE) == start + 10 * PAGE);
    memset((void *)start, 1, 10 * PAGE);
    check(raw_brk(start + PAGE) == start + PAGE);
    check(raw_brk(start + 4 * PAGE) == start + 4 * PAGE);
    check(*(char *)(start + 3 * PAGE) == 0); // a page mapped again is zero
    check(raw_brk(~0u) == start + 4 * PAGE);
    check(raw_brk(1) == start + 4 * PAGE);
    check(raw_brk(start) == start);
    ok("brk grows, shrinks and refuses");
}

static void test_advice(void)
{
    char *p = map(4);
    unsigned char vec[4];
    memset(p, 1, 2 * PAGE);
    check(mincore(p, 4 * PAGE, vec) == 0);
    check(vec[0] == 1 && vec[1] == 1 && vec[2] == 0 && vec[3] == 0);
    check(madvise(p, PAGE, MADV_DONTNEED) == 0);
    check(p[0] == 0 && p[PAGE] == 1);
    check(madvise(p, 4 * PAGE, MADV_WILLNEED) == 0);
    check(msync(p, 4 * PAGE, MS_SYNC) == 0);
    check(munmap(p, 4 * PAGE) == 0);
    check_error(mincore(p, PAGE, vec), ENOMEM);
    ok("madvise, mincore and msync");
}

// So many areas that the kernel adds a tree to their list.
static void test_many(void)
{
    enum { N = 2000 };
    char *base = map(2 * N);
    for (unsigned i = 0; i < N; i++) {
        base[2 * i * PAGE] = (char)i;
        check(mprotect(base + (2 * i + 1) * PAGE, PAGE, PROT_READ) == 0);
    }
    for (unsigned i = 0; i < N; i++)
        check(base[2 * i * PAGE] == (char)i);
    for (unsigned i = 0; i < N; i++)
        check(mprotect(base + (2 * i + 1) * PAGE, PAGE, RW) == 0);
    check(munmap(base, 2 * N * PAGE) == 0);
    ok("thousands of areas");
}

int main(void)
{
    alarm(TEST_SECONDS);
    test_anonymous();
    test_errors();
    test_protection();
    test_execution();
    test_remap();
    test_brk();
    test_advice();
    test_many();
    return 0;
}
