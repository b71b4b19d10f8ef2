// system.tasks and system.threads: the values of known tasks, and lists that
// are exact however fast tasks come and go.
#include "test.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "user/libstrobe/sysinfo.h"

static struct sysinfo_task task_of(pid_t pid)
{
    struct sysinfo_task t;
    char path[40];

    snprintf(path, sizeof(path), "system.tasks.%d", pid);
    check(sysinfo_get_task(path, &t) == 0);
    return t;
}

static bool task_exists(pid_t pid)
{
    char path[40];

    snprintf(path, sizeof(path), "system.tasks.%d", pid);
    return sysinfo_get_type(path) > 0;
}

static void own_task(const char *program)
{
    struct sysinfo_task t = task_of(getpid()), later;

    check(t.id == (uint32_t)getpid() && t.parent == (uint32_t)getppid());
    check(t.group == (uint32_t)getpgrp() && t.session == (uint32_t)getsid(0));
    check(t.uid == getuid() && t.threads == 1 && t.nice == 0);
    check(t.state == SYSINFO_RUNNING);
    check(strcmp(t.name, "sysinfo_tasks") == 0);
    check(strcmp(t.path, program) == 0);
    check(t.virtual >= t.resident && t.resident > 0 && t.faults > 0);

    volatile char *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 1 << 20; i += 4096)
        memory[i] = 1;
    later = task_of(getpid());
    check(later.virtual >= t.virtual + (1 << 20));
    check(later.resident >= t.resident + (1 << 20));
    check(later.faults >= t.faults + 256);
    check(later.user > t.user && later.kernel > t.kernel);
    munmap((void *)memory, 1 << 20);
    ok("the own task");
}

// Cycles of a busy loop are user time, those of a storm of calls also kernel
// time; getrusage agrees.
static void times(void)
{
    struct sysinfo_cpu cpu;
    struct rusage before, after;

    check(sysinfo_get_cpu("system.cpus.0", &cpu) == 0);
    check(getrusage(RUSAGE_SELF, &before) == 0);
    struct sysinfo_task t = task_of(getpid());
    for (uint64_t end = now_ns() + 100000000; now_ns() < end;)
        for (volatile int i = 0; i < 1000; i++)
            ;
    for (int i = 0; i < 20000; i++)
        syscall(SYS_getppid);
    struct sysinfo_task later = task_of(getpid());
    check(getrusage(RUSAGE_SELF, &after) == 0);
    uint64_t inner = sysinfo_milliseconds(later.user - t.user, cpu.frequency);
    uint64_t outer = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000 +
                     (after.ru_utime.tv_usec - before.ru_utime.tv_usec) / 1000;
    check(later.user > t.user && later.kernel > t.kernel);
    check(inner <= outer + 1);
    ok("times of a busy program");
}

static void child_states(void)
{
    int fds[2];
    char c;

    check(pipe(fds) == 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        close(fds[1]);
        for (volatile int i = 0; i < 100000; i++)
            ;
        _exit(read(fds[0], &c, 1) != 0);
    }
    while (task_of(pid).state != SYSINFO_WAITING)
        sleep_ms(1);
    struct sysinfo_task t = task_of(pid);
    check(t.parent == (uint32_t)getpid() && t.threads == 1 && t.user > 0);
    size_t n;
    char path[40];
    snprintf(path, sizeof(path), "system.tasks.%d.threads", pid);
    struct sysinfo_thread *th = sysinfo_read_thread(path, &n);
    check(th != NULL && n == 1 && th->id == (uint32_t)pid);
    check(th->task == (uint32_t)pid && th->state == SYSINFO_WAITING);
    check(strncmp(th->wait_on, "pipe", 4) == 0 && th->voluntary > 0);
    free(th);

    check(kill(pid, SIGSTOP) == 0);
    while (task_of(pid).state != SYSINFO_STOPPED)
        sleep_ms(1);
    check(kill(pid, SIGCONT) == 0);
    close(fds[0]);
    close(fds[1]);
    struct sysinfo_task dead = task_of(pid);
    for (; dead.threads > 0; dead = task_of(pid))
        sleep_ms(1); // also while its last thread leaves its stack
    check(dead.state == SYSINFO_ZOMBIE);
    check(dead.virtual == 0 && dead.resident == 0);
    check(dead.user >= t.user && dead.kernel > t.kernel);
    struct sysinfo_task me = task_of(getpid());
    check(waitpid(pid, NULL, 0) == pid);
    check(!task_exists(pid));
    struct sysinfo_task then = task_of(getpid());
    check(then.child_user == me.child_user + dead.user);
    check(then.child_kernel == me.child_kernel + dead.kernel);
    ok("a child: waits, stops, ends; its cycles go to its parent");
}

static pthread_barrier_t barrier;

static void *meet_twice(void *arg)
{
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return arg;
}

static void threads(void)
{
    pthread_t t[10];
    size_t n;
    char path[40];

    snprintf(path, sizeof(path), "system.tasks.%d.threads", getpid());
    pthread_barrier_init(&barrier, NULL, 11);
    for (int i = 0; i < 10; i++)
        check(pthread_create(&t[i], NULL, meet_twice, NULL) == 0);
    pthread_barrier_wait(&barrier);
    struct sysinfo_thread *th = sysinfo_read_thread(path, &n);
    check(th != NULL && n == 11);
    for (size_t i = 0; i < n; i++) {
        check(th[i].task == (uint32_t)getpid());
        for (size_t j = 0; j < i; j++)
            check(th[i].id != th[j].id);
    }
    check(th[0].state == SYSINFO_RUNNING);
    free(th);
    check(task_of(getpid()).threads == 11);
    struct sysinfo_task before = task_of(getpid());
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 10; i++)
        check(pthread_join(t[i], NULL) == 0);
    while (task_of(getpid()).threads != 1)
        sleep_ms(1);
    struct sysinfo_task after = task_of(getpid());
    check(after.user >= before.user && after.kernel > before.kernel);
    ok("threads");
}

// ---- storms

#define CHAINS 3
#define STORM_NS 1000000000ull // at least
#define LISTS 5                // at least
#define LINKS 20               // at least

static volatile bool *over; // shared by all links

// Each process forks its successor and ends. The chains end with the test.
static void chain(pid_t test)
{
    for (;;) {
        pid_t pid = fork();
        if (pid > 0 || *over || kill(test, 0) != 0)
            _exit(0);
        if (pid < 0)
            sleep_ms(1); // no memory or ids at the moment
    }
}

static int compare_ids(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

    return left < right ? -1 : left > right;
}

static void no_id_twice(const struct sysinfo_task *t, size_t n)
{
    uint32_t *ids = calloc(n, sizeof(*ids));

    check(ids != NULL);
    for (size_t i = 0; i < n; i++)
        ids[i] = t[i].id;
    qsort(ids, n, sizeof(*ids), compare_ids);
    for (size_t i = 1; i < n; i++)
        check(ids[i] != ids[i - 1]);
    free(ids);
}

// Each chain is a process group. It has a member at every instant, so each list
// must contain one, although each lives for microseconds only.
static void look(const pid_t *groups)
{
    int found[CHAINS] = { 0 }, init = 0, self = 0;
    size_t n;
    struct sysinfo_task *t = sysinfo_read_task("system.tasks", &n);

    check(t != NULL);
    for (size_t i = 0; i < n; i++) {
        init += t[i].id == 1;
        self += t[i].id == (uint32_t)getpid();
        for (int c = 0; c < CHAINS; c++)
            found[c] += t[i].group == (uint32_t)groups[c];
    }
    check(init == 1 && self == 1);
    for (int c = 0; c < CHAINS; c++)
        check(found[c] >= 1);
    no_id_twice(t, n);
    free(t);
}

static void storm(void)
{
    pid_t groups[CHAINS], test = getpid();
    uint64_t end = now_ns() + STORM_NS;
    int lists = 0;
    struct sysinfo_totals before, after = { 0 };

    over = mmap(NULL, sizeof(*over), PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(over != MAP_FAILED);

    check(sysinfo_get_totals("system.totals", &before) == 0);
    for (int c = 0; c < CHAINS; c++) {
        groups[c] = fork();
        check(groups[c] >= 0);
        if (groups[c] == 0) {
            setpgid(0, 0);
            chain(test);
        }
        setpgid(groups[c], groups[c]);
    }
    while (now_ns() < end || lists < LISTS ||
           after.tasks_created <= before.tasks_created + LINKS) {
        look(groups);
        lists++;
        check(sysinfo_get_totals("system.totals", &after) == 0);
    }
    *over = true;
    for (int c = 0; c < CHAINS; c++)
        check(waitpid(groups[c], NULL, 0) == groups[c]);
    for (int c = 0; c < CHAINS; c++) {
        while (kill(-groups[c], 0) == 0) // until its last link has ended
            sleep_ms(1);
    }
    dprintf(1, "# %d lists while %llu tasks came and went\n", lists,
            (unsigned long long)(after.tasks_created - before.tasks_created));
    ok("lists are exact in a storm of forks");
}

int main(int argc, char **argv)
{
    check(argc == 1);
    alarm(TEST_SECONDS);
    if (sysinfo_get_type("") < 0 && errno == ENOSYS) {
        ok("system.tasks: skipped, it is Strobe's");
        return 0;
    }
    own_task(argv[0]);
    times();
    child_states();
    threads();
    storm();
    return 0;
}
