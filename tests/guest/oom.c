// Out of memory: the task with the most memory is killed, not the one that
// asks. For a machine with little memory (tests/system/test_oom.py). On Linux
// it does nothing, because it would disturb all other programs.
#include "memory.h"

#include <sys/utsname.h>

#define MIB (1024u * 1024)
#define LEFT (3 * MIB)   // free memory that the big task leaves
#define WANTED (6 * MIB) // by the small tasks: more than LEFT
#define SMALL_ONES 8

static void fill(int done)
{
    while (free_memory() > LEFT)
        touch(MIB / 4);
    check(write(done, "x", 1) == 1);
    wait_killed();
}

static pid_t start_big(void (*how)(int done))
{
    int done[2];
    char c;
    check(pipe(done) == 0);
    pid_t big = fork();
    check(big >= 0);
    if (big == 0) {
        how(done[1]);
        _exit(2);
    }
    check(read(done[0], &c, 1) == 1);
    close(done[0]);
    close(done[1]);
    return big;
}

static void ask(void)
{
    touch(WANTED);
}

// The kernel touches the pages, in a system call.
static void ask_by_read(void)
{
    int zero[2];
    char *memory = mmap(NULL, WANTED, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(memory != MAP_FAILED && pipe(zero) == 0);
    for (size_t i = 0; i < WANTED; i += PAGE) {
        check(write(zero[1], "x", 1) == 1);
        check(read(zero[0], memory + i, 1) == 1 && memory[i] == 'x');
    }
}

// The small tasks are forked before memory is scarce, when fork would fail.
// They keep what they got until all have got theirs.
static int go[2], got[2], finish[2];

static pid_t start_small(void (*ask_how)(void))
{
    char c;
    pid_t small = fork();
    check(small >= 0);
    if (small == 0) {
        check(read(go[0], &c, 1) == 1);
        ask_how();
        check(write(got[1], "x", 1) == 1);
        check(read(finish[0], &c, 1) == 1);
        _exit(0);
    }
    return small;
}

// Small tasks ask for memory when the big one has filled it: they survive, the
// big one is killed.
static void small_live(void (*fill_how)(int done), void (*ask_how)(void),
                       int count, const char *what)
{
    int status;
    char c;
    pid_t small[SMALL_ONES];
    check(count <= SMALL_ONES);
    for (int i = 0; i < count; i++)
        small[i] = start_small(ask_how);
    pid_t big = start_big(fill_how);
    check(write(go[1], "12345678", count) == count);
    for (int i = 0; i < count; i++)
        check(read(got[0], &c, 1) == 1);
    check(write(finish[1], "12345678", count) == count);
    for (int i = 0; i < count; i++)
        check(waitpid(small[i], &status, 0) == small[i] &&
              exited_with(status, 0));
    check(waitpid(big, &status, 0) == big && killed_by(status, SIGKILL));
    while (free_memory() < 2 * WANTED) // a task that shared it may still exit
        sleep_ms(1);
    ok(what);
}

// Two tasks share their memory: killing only one would free nothing.
static void fill_shared(int done)
{
    if (vfork() == 0)
        fill(done);
    _exit(3);
}

static void ask_a_part(void)
{
    touch(WANTED / SMALL_ONES);
}

int main(void)
{
    struct utsname names;
    alarm(TEST_SECONDS);
    check(uname(&names) == 0);
    if (strcmp(names.sysname, "Strobe") != 0 || free_memory() > 128 * MIB) {
        ok("skipped: not Strobe, or too much memory");
        return 0;
    }
    check(pipe(go) == 0 && pipe(got) == 0 && pipe(finish) == 0);
    small_live(fill, ask, 1, "the largest ends, not the one that asks");
    small_live(fill, ask_by_read, 1,
               "the same where a system call needs a page");
    small_live(fill_shared, ask, 1, "who shares its memory goes with it");
    small_live(fill, ask_a_part, SMALL_ONES, "for many that ask, one ends");
    return 0;
}
