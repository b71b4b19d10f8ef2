// The cost of one task's demands, to itself and to others: prints nanoseconds
// per operation, which tests/system/test_appetite.py compares.
//
//     appetite areas N      discard and touch a page, in a space of N areas
//     appetite gaps N       mmaps of changing lengths in such a space
//     appetite locks N      open, lock and close of a file while another task
//                           holds N locks of another file
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#define PAGE 4096u
#define ROUNDS 1000u

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static unsigned draw(void)
{
    static unsigned state = 1;
    state = state * 1103515245 + 12345;
    return state >> 8;
}

// Maps n pages of alternating protection, so that each is an area.
static char *make_areas(unsigned n)
{
    char *at = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(at != MAP_FAILED);
    for (unsigned i = 0; i < n; i += 2)
        check(mprotect(at + i * PAGE, PAGE, PROT_READ) == 0);
    return at;
}

static void areas(unsigned n)
{
    char *at = make_areas(n);
    for (unsigned i = 1; i < n; i += 2) // so that the page tables exist
        at[i * PAGE] = 1;
    long long start = now();
    for (unsigned i = 0; i < ROUNDS; i++) {
        char *page = at + (draw() % n | 1) * PAGE;
        check(madvise(page, PAGE, MADV_DONTNEED) == 0);
        *(volatile char *)page = 1;
    }
    dprintf(1, "%lld\n", (now() - start) / ROUNDS);
}

// Unmaps every other area. One page fits into a gap, two pages do not.
static void gaps(unsigned n)
{
    char *at = make_areas(n);
    for (unsigned i = 0; i < n; i += 2)
        check(munmap(at + i * PAGE, PAGE) == 0);
    long long start = now();
    for (unsigned i = 0; i < ROUNDS; i++) {
        size_t length = (i % 2 + 1) * PAGE;
        void *got =
            mmap(NULL, length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        check(got != MAP_FAILED && munmap(got, length) == 0);
    }
    dprintf(1, "%lld\n", (now() - start) / ROUNDS);
}

static void take_locks(const char *path, unsigned n)
{
    struct flock l = { .l_type = F_WRLCK, .l_len = 1 };
    int fd = open(path, O_CREAT | O_RDWR, 0644);
    for (unsigned i = 0; i < n; i++) {
        l.l_start = 2 * i;
        check(fcntl(fd, F_SETLK, &l) == 0);
    }
}

static void locks(unsigned n)
{
    int ready[2];
    char c = 0;
    check(pipe(ready) == 0);
    pid_t child = fork();
    if (child == 0) {
        take_locks("theirs", n);
        check(write(ready[1], &c, 1) == 1);
        pause();
    }
    check(read(ready[0], &c, 1) == 1);
    struct flock l = { .l_type = F_WRLCK, .l_len = 1 };
    long long start = now();
    for (unsigned i = 0; i < ROUNDS; i++) {
        int fd = open("ours", O_CREAT | O_RDWR, 0644);
        check(fd >= 0 && fcntl(fd, F_SETLK, &l) == 0 && close(fd) == 0);
    }
    dprintf(1, "%lld\n", (now() - start) / ROUNDS);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
    unsigned n = argc > 2 ? atoi(argv[2]) : 100;
    const char *what = argc > 2 ? argv[1] : "";
    if (strcmp(what, "areas") == 0)
        areas(n);
    else if (strcmp(what, "gaps") == 0)
        gaps(n);
    else if (strcmp(what, "locks") == 0)
        locks(n);
    else
        areas(n), gaps(n), locks(n), ok("all kinds of appetite");
    return 0;
}
