// Tasks that make a known number of system calls, and take turns meanwhile:
// whose events are whose (tests/system/test_trace_threads.py).
//
//     crowd CALLS...
//
// Each argument is a task, which calls getppid so often. The line of a task:
// its number, and its calls.
#include "test.h"

#include <sys/syscall.h>
#include <sys/wait.h>

#define TURN 5 // calls, then another task runs

static void call(long calls)
{
    dprintf(1, "%d %ld\n", (int)getpid(), calls);
    for (long i = 0; i < calls; i++) {
        syscall(SYS_getppid);
        if (i % TURN == 0)
            syscall(SYS_sched_yield);
    }
}

int main(int argc, char *argv[])
{
    for (int i = 1; i < argc; i++) {
        pid_t child = fork();
        check(child >= 0);
        if (!child) {
            call(strtol(argv[i], NULL, 10));
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    ok("crowd");
    return 0;
}
