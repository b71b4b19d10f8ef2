// system.threads and system.tasks with 2,000 threads (or as many as fit into
// memory): the lists are complete. Prints how long interrupts were off.
//
//     sysinfo_many [THREADS]
#include "test.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "user/libstrobe/sysinfo.h"

#define TASKS 8
#define STACK 16384

static int wanted = 2000;

static uint64_t value(const char *path)
{
    uint64_t v;

    check(sysinfo_read_value(path, &v) == 0);
    return v;
}

static void *sleep_on(void *arg)
{
    for (;;)
        pause();
    return arg;
}

// Starts a task with up to `n` threads. Returns -1 if there is no room for a
// task.
static pid_t start(int n, int report)
{
    pid_t pid = fork();
    check(pid >= 0 || errno == EAGAIN || errno == ENOMEM);
    if (pid != 0)
        return pid;
    pthread_attr_t attributes;
    pthread_t t;
    int made = 1;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    while (made < n && pthread_create(&t, &attributes, sleep_on, NULL) == 0)
        made++;
    check(write(report, &made, sizeof(made)) == sizeof(made));
    sleep_on(NULL);
    _exit(1);
}

static int start_all(pid_t *tasks)
{
    int fds[2], total = 0, made;

    check(pipe(fds) == 0);
    for (int i = 0; i < TASKS; i++) {
        tasks[i] = start(wanted / TASKS, fds[1]);
        if (tasks[i] < 0)
            continue;
        check(read(fds[0], &made, sizeof(made)) == sizeof(made));
        total += made;
    }
    close(fds[0]);
    close(fds[1]);
    return total;
}

static void complete(const pid_t *tasks, int total)
{
    size_t n, task_count;
    struct sysinfo_thread *t = sysinfo_read_thread("system.threads", &n);
    struct sysinfo_task *k = sysinfo_read_task("system.tasks", &task_count);
    int seen = 0, threads = 0;

    check(t != NULL && k != NULL);
    for (size_t i = 0; i < n; i++) {
        for (int j = 0; j < TASKS; j++)
            seen += t[i].task == (uint32_t)tasks[j];
    }
    for (size_t i = 0; i < task_count; i++) {
        for (int j = 0; j < TASKS; j++)
            threads += k[i].id == (uint32_t)tasks[j] ? k[i].threads : 0;
    }
    check(seen == total && threads == total);
    free(t);
    free(k);
}

static uint64_t cost(const char *path, int rounds)
{
    uint64_t began = now_ns();

    for (int i = 0; i < rounds; i++)
        check(sysinfo_get_data(path, NULL, 0) > 0);
    return (now_ns() - began) / rounds;
}

int main(int argc, char **argv)
{
    pid_t tasks[TASKS];
    struct sysinfo_cpu cpu;

    alarm(TEST_SECONDS);
    if (sysinfo_get_type("") < 0 && errno == ENOSYS) {
        ok("system.threads: skipped, it is Strobe's");
        return 0;
    }
    if (argc > 1)
        wanted = atoi(argv[1]);
    check(sysinfo_get_cpu("system.cpus.0", &cpu) == 0);
    uint64_t before = value("system.snapshots.longest");
    int total = start_all(tasks);
    check(total >= 500 || total == wanted);
    for (int i = 0; i < 10; i++)
        complete(tasks, total);
    uint64_t hold = value("system.snapshots.longest");
    check(hold > before || hold > 0);
    dprintf(1, "# threads %d\n# interrupts off: %llu cycles, %llu us\n", total,
            (unsigned long long)hold,
            (unsigned long long)(hold * 1000000 / cpu.frequency));
    check(sysinfo_get_data("system.audit", NULL, 0) > 0);
    dprintf(1, "# audit: interrupts off: %llu cycles\n",
            (unsigned long long)value("system.snapshots.audit"));
    dprintf(1, "# system.threads: %llu us, system.tasks: %llu us\n",
            (unsigned long long)cost("system.threads", 5) / 1000,
            (unsigned long long)cost("system.tasks", 5) / 1000);
    for (int i = 0; i < TASKS && tasks[i] > 0; i++) {
        check(kill(tasks[i], SIGKILL) == 0);
        check(waitpid(tasks[i], NULL, 0) == tasks[i]);
    }
    ok("lists of many threads");
    return 0;
}
