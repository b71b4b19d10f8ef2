// Tasks or threads that make a known number of system calls, and take turns
// meanwhile: whose events and samples are whose, and their names
// (tests/system/test_trace_threads.py).
//
//     crowd [tasks|threads CALLS...]      (both, with 30 and 3)
//
// Each number is a task, or a thread, of the name "calls CALLS", which calls
// getppid so often. It writes a line: its number, and its calls.
#include "test.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define TURN 5 // calls, then another task runs
#define MOST 16

static void *call(void *text)
{
    long calls = strtol(text, NULL, 10);
    char name[16];

    snprintf(name, sizeof(name), "calls %ld", calls);
    check(prctl(PR_SET_NAME, name) == 0);
    dprintf(1, "%d %ld\n", (int)syscall(SYS_gettid), calls);
    for (long i = 0; i < calls; i++) {
        syscall(SYS_getppid);
        if (i % TURN == 0)
            syscall(SYS_sched_yield);
    }
    return NULL;
}

static void with_tasks(int count, char *calls[])
{
    for (int i = 0; i < count; i++) {
        pid_t child = fork();
        check(child >= 0);
        if (!child) {
            call(calls[i]);
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
}

static void with_threads(int count, char *calls[])
{
    pthread_t threads[MOST];

    check(count <= MOST);
    for (int i = 0; i < count; i++)
        check(pthread_create(&threads[i], NULL, call, calls[i]) == 0);
    for (int i = 0; i < count; i++)
        check(pthread_join(threads[i], NULL) == 0);
}

int main(int argc, char *argv[])
{
    char *few[] = { "30", "3" }, **calls = argc > 2 ? argv + 2 : few;
    int count = argc > 2 ? argc - 2 : 2;

    if (argc < 2 || strcmp(argv[1], "tasks") == 0)
        with_tasks(count, calls);
    if (argc < 2 || strcmp(argv[1], "threads") == 0)
        with_threads(count, calls);
    ok("crowd");
    return 0;
}
