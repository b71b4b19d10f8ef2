// Memory across fork: copy on write, shared mappings, many children at once.
#include "tests/guest/test.h"

#include <fcntl.h>
#include <sys/mman.h>

#define PAGE 4096u
#define PAGES 64u
#define RW (PROT_READ | PROT_WRITE)

static unsigned data[1024] = { 1, 2, 3 };
static unsigned bss[1024];

static unsigned *map(int flags)
{
    unsigned *p = mmap(NULL, PAGES * PAGE, RW, flags | MAP_ANONYMOUS, -1, 0);
    check(p != MAP_FAILED);
    return p;
}

static void fill(unsigned *p, unsigned with)
{
    for (unsigned i = 0; i < PAGES; i++)
        p[i * 1024] = with + i;
}

static bool filled(unsigned *p, unsigned with)
{
    for (unsigned i = 0; i < PAGES; i++) {
        if (p[i * 1024] != with + i)
            return false;
    }
    return true;
}

static unsigned *private, *shared;

static void child_writes(void)
{
    unsigned on_stack = 5;
    check(filled(private, 100));
    fill(private, 900);
    data[0] = bss[0] = on_stack = 77;
    check(filled(private, 900) && on_stack == 77);
    fill(shared, 300);
}

static void test_copy_on_write(void)
{
    private = map(MAP_PRIVATE);
    shared = map(MAP_SHARED);
    fill(private, 100);
    check(exited_with(in_child(child_writes), 0));
    check(filled(private, 100) && data[0] == 1 && bss[0] == 0);
    check(filled(shared, 300));
    ok("a child's writes stay its own, shared memory is shared");
}

static void grandchild_reads(void)
{
    check(filled(private, 200));
}

static void child_reads_late(void)
{
    sleep_ms(20); // the parent writes first
    check(filled(private, 200));
    check(exited_with(in_child(grandchild_reads), 0));
}

static void test_parent_writes(void)
{
    fill(private, 200);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        child_reads_late();
        _exit(0);
    }
    fill(private, 500);
    int status;
    check(waitpid(pid, &status, 0) == pid && exited_with(status, 0));
    check(filled(private, 500));
    ok("a parent's writes stay its own");
}

// The kernel, too, writes into pages that a fork shares.
static void child_reads_file(void)
{
    int fd = open("/dev/zero", O_RDONLY);
    check(fd >= 0 && read(fd, private, PAGE) == PAGE);
    check(private[0] == 0);
}

static void test_kernel_writes(void)
{
    fill(private, 42);
    check(exited_with(in_child(child_reads_file), 0));
    check(filled(private, 42));
    ok("the kernel's writes are copied too");
}

static void test_many_children(void)
{
    enum { CHILDREN = 12, ROUNDS = 20 };
    fill(shared, 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        fill(private, round);
        for (unsigned c = 0; c < CHILDREN; c++) {
            pid_t pid = fork();
            check(pid >= 0);
            if (pid == 0) {
                check(filled(private, round));
                fill(private, 1000 * c);
                check(filled(private, 1000 * c));
                __atomic_fetch_add(&shared[c * 1024], 1, __ATOMIC_RELAXED);
                _exit(0);
            }
        }
        int status;
        for (unsigned c = 0; c < CHILDREN; c++)
            check(wait(&status) > 0 && exited_with(status, 0));
        check(filled(private, round));
    }
    for (unsigned c = 0; c < CHILDREN; c++)
        check(shared[c * 1024] == c + ROUNDS);
    ok("many children at once");
}

int main(void)
{
    alarm(TEST_SECONDS);
    test_copy_on_write();
    test_parent_writes();
    test_kernel_writes();
    test_many_children();
    return 0;
}
