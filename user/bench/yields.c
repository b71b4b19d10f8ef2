// Two processes that yield to each other: a round is two context switches. Not
// measured on Linux, where a process that yields usually continues before the
// other one runs.
#include "bench.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static pid_t partner;
static volatile int *turns_of_partner;

static void start_yielder(void)
{
    turns_of_partner = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(turns_of_partner != MAP_FAILED, "mmap");
    partner = fork_partner();
    while (partner == 0) {
        call(SYS_sched_yield, 0, 0, 0);
        ++*turns_of_partner;
    }
}

static void do_yield(int n)
{
    int rounds = n, start;

    call(SYS_sched_yield, 0, 0, 0);
    start = *turns_of_partner;
    while (n-- > 0)
        call(SYS_sched_yield, 0, 0, 0);
    must(*turns_of_partner - start >= rounds, "turns of the other process");
}

static void end_yielder(void)
{
    kill(partner, SIGKILL);
    must(end_of(partner) == SIGKILL, "the partner's status");
    munmap((void *)turns_of_partner, sizeof(int));
}

const struct operation yields[] = {
    { .name = "yield-to-another", do_yield, 1000, start_yielder, end_yielder },
    { .name = NULL },
};
