// What an ordinary user tries to slow root down by (attacks.c). Each attack is
// run by one task of the user, in a process group and a folder of its own, and
// goes on until the group is killed.
#pragma once

#include "memory.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "ipc.h"

#define TASKS 50
#define FEW 8      // tasks that each take much
#define FLOODS 300 // timers of a task

typedef void (*attack_fn)(void);

// Runs `step` for ever in each of n tasks, of which this is the last one.
static inline void many(int n, attack_fn step)
{
    while (--n > 0 && fork() > 0)
        ;
    for (;;)
        step();
}

static inline void *step_for_ever(void *step)
{
    for (;;)
        ((attack_fn)(uintptr_t)step)();
    return NULL;
}

static inline void threads_with(int n, attack_fn step)
{
    pthread_attr_t small;
    pthread_t id;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    while (--n > 0 && pthread_create(&id, &small, step_for_ever,
                                     (void *)(uintptr_t)step) == 0)
        ;
    step_for_ever((void *)(uintptr_t)step);
}

static inline void shell(const char *script)
{
    execl("/bin/sh", "sh", "-c", script, NULL);
}

// --- CPU time, wake-ups and threads -----------------------------------------

static void nothing(void)
{
}

static void busy(void)
{
    many(TASKS, nothing);
}

static void busy_threads(void)
{
    threads_with(200, nothing);
}

static void yield(void)
{
    sched_yield();
}

static void yields(void)
{
    many(TASKS, yield);
}

static void sleep_1us(void)
{
    nanosleep(&(struct timespec){ 0, 1000 }, NULL);
}

static void short_sleeps(void)
{
    many(TASKS, sleep_1us);
}

static void sleep_1ms(void)
{
    sleep_ms(1);
}

static void threads_4000(void)
{
    threads_with(4000, sleep_1ms);
}

static void ping_pong(void)
{
    int to[2], from[2];
    char c = 0;
    check(pipe(to) == 0 && pipe(from) == 0);
    pid_t pid = fork();
    while (pid == 0 && read(to[0], &c, 1) == 1)
        check(write(from[1], &c, 1) == 1);
    while (pid > 0 && write(to[1], &c, 1) == 1)
        check(read(from[0], &c, 1) == 1);
}

static void wake_ups(void)
{
    many(FEW, ping_pong);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void lock_mutex(void)
{
    pthread_mutex_lock(&mutex);
    sched_yield();
    pthread_mutex_unlock(&mutex);
}

static void futexes(void)
{
    threads_with(100, lock_mutex);
}

static void move(void)
{
    static unsigned to;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(to % sysconf(_SC_NPROCESSORS_ONLN), &one);
    to++;
    sched_setaffinity(0, sizeof(one), &one);
}

static void moves(void)
{
    many(TASKS, move);
}

static void renice(void)
{
    static int nice_now;
    if (nice_now < 19)
        setpriority(PRIO_PROCESS, 0, ++nice_now);
    else
        sched_yield();
}

static void nice_values(void)
{
    many(TASKS, renice);
}

// --- tasks ------------------------------------------------------------------

static void fork_once(void)
{
    fork();
}

static void fork_bomb(void)
{
    many(1, fork_once);
}

static void fork_and_wait(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
}

static void forks(void)
{
    many(FEW, fork_and_wait);
}

static void exec_and_wait(void)
{
    pid_t pid = fork();
    if (pid == 0)
        execl("/bin/true", "true", NULL);
    waitpid(pid, NULL, 0);
}

static void execs(void)
{
    many(FEW, exec_and_wait);
}

static void long_exec(void)
{
    static char word[100000], *words[] = { "true", word, NULL };
    memset(word, 'x', sizeof(word) - 1);
    pid_t pid = fork();
    if (pid == 0)
        execv("/bin/true", words);
    waitpid(pid, NULL, 0);
}

static void long_execs(void)
{
    many(FEW, long_exec);
}

static void *end_at_once(void *arg)
{
    return arg;
}

static void start_thread(void)
{
    pthread_t id;
    if (pthread_create(&id, NULL, end_at_once, NULL) == 0)
        pthread_join(id, NULL);
}

static void thread_starts(void)
{
    many(FEW, start_thread);
}

static void end_with_threads(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t id;
        for (int i = 0; i < 200; i++)
            pthread_create(&id, NULL, step_for_ever,
                           (void *)(uintptr_t)sleep_1ms);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

static void ends_of_threads(void)
{
    many(FEW, end_with_threads);
}

// Each task computes for 0.5 ms, and ends when its successor has started.
static void next_generation(void)
{
    uint64_t start = now_ns();
    while (now_ns() - start < 500000)
        continue;
    if (fork() > 0)
        _exit(0);
}

static void generations(void)
{
    if (fork() == 0)
        many(4, next_generation);
    wait_killed();
}

// --- signals, faults and timers ---------------------------------------------

static void ignore(int signal)
{
    (void)signal;
}

static void signal_group(void)
{
    kill(0, SIGUSR1);
}

static void signals(void)
{
    on_signal(SIGUSR1, ignore, 0);
    many(TASKS, signal_group);
}

static void queue_signals(void)
{
    sigset_t all, none;
    union sigval value = { 0 };
    sigfillset(&all);
    sigemptyset(&none);
    sigprocmask(SIG_BLOCK, &all, NULL);
    while (sigqueue(getpid(), SIGRTMIN, value) == 0)
        ;
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void queued_signals(void)
{
    on_signal(SIGRTMIN, ignore, 0);
    many(2, queue_signals);
}

static char *volatile nowhere;

static void fault(void)
{
    *nowhere = 1;
}

static void faults(void)
{
    on_signal(SIGSEGV, ignore, 0);
    many(FEW, fault);
}

static void start_floods(clockid_t clock)
{
    struct itimerspec often = { { 0, 100000 }, { 0, 100000 } };
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
                              .sigev_signo = SIGUSR1 };
    timer_t id;
    for (int i = 0; i < FLOODS; i++)
        if (timer_create(clock, &event, &id) == 0)
            timer_settime(id, 0, &often, NULL);
}

static void timers_ignored(void)
{
    on_signal(SIGUSR1, SIG_IGN, 0);
    start_floods(CLOCK_MONOTONIC);
    wait_killed();
}

static void timers_pending(void)
{
    sigset_t set;
    sigfillset(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    start_floods(CLOCK_MONOTONIC);
    wait_killed();
}

static void timers_handled(void)
{
    on_signal(SIGUSR1, ignore, 0);
    start_floods(CLOCK_MONOTONIC);
    wait_killed();
}

static void timers_of_cpu_time(void)
{
    on_signal(SIGUSR1, ignore, 0);
    on_signal(SIGPROF, ignore, 0);
    start_floods(CLOCK_PROCESS_CPUTIME_ID);
    setitimer(ITIMER_PROF, &(struct itimerval){ { 0, 1 }, { 0, 1 } }, NULL);
    many(1, nothing);
}

// --- memory -----------------------------------------------------------------

static void touch_until_killed(void)
{
    pid_t pid = fork();
    while (pid == 0)
        touch(PAGE);
    if (pid < 0)
        sleep_ms(1);
    waitpid(pid, NULL, 0);
}

static void memory(void)
{
    many(4, touch_until_killed);
}

static void end_large(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        touch(MIB(40));
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

static void large_ends(void)
{
    many(2, end_large);
}

static void map_and_unmap(void)
{
    size_t bytes = 64 * PAGE;
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return;
    for (size_t i = 0; i < bytes; i += PAGE)
        at[i] = 1;
    mprotect(at, bytes, PROT_READ);
    munmap(at, bytes);
}

static void mappings(void)
{
    threads_with(FEW, map_and_unmap);
}

static void make_areas(int n)
{
    char *at = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(at != MAP_FAILED);
    for (int i = 0; i < n; i++) {
        at[i * PAGE] = 1;
        if (i % 2)
            mprotect(at + i * PAGE, PAGE, PROT_READ);
    }
}

static void forks_of_areas(void)
{
    make_areas(5000);
    many(2, fork_and_wait);
}

static void read_much(void)
{
    static char bytes[MIB(16)];
    int fd = open("/dev/zero", O_RDONLY);
    check(read(fd, bytes, sizeof(bytes)) > 0);
    close(fd);
}

static void large_reads(void)
{
    many(2, read_much);
}

static void draw_much(void)
{
    static char bytes[MIB(8)];
    check(getrandom(bytes, sizeof(bytes), 0) > 0);
}

static void random_numbers(void)
{
    many(2, draw_much);
}

// --- files ------------------------------------------------------------------

static void fill_and_empty(void)
{
    static char part[1 << 16];
    int fd = open("data", O_CREAT | O_WRONLY | O_TRUNC, 0600);
    while (write(fd, part, sizeof(part)) > 0)
        ;
    close(fd);
}

static void files(void)
{
    many(2, fill_and_empty);
}

static void many_names(void)
{
    char path[32];
    for (int i = 0; i < 5000; i++) {
        snprintf(path, sizeof(path), "name-%d", i);
        int fd = open(path, O_CREAT | O_WRONLY, 0600);
        if (fd < 0)
            break;
        close(fd);
    }
}

static void all_files(void)
{
    many_names();
    many(2, fill_and_empty);
}

static void names_in_tmp(void) // the folder that root writes in
{
    char from[32], to[32];
    snprintf(from, sizeof(from), "/tmp/attack-%d", getpid());
    snprintf(to, sizeof(to), "/tmp/attack-%d.", getpid());
    close(open(from, O_CREAT | O_WRONLY, 0600));
    rename(from, to);
    unlink(to);
}

static void names(void)
{
    many(FEW, names_in_tmp);
}

static void folder(void)
{
    many_names();
    shell("while :; do ls -l >/dev/null; done");
}

static void long_path(void)
{
    static char path[4000];
    struct stat s;
    if (!path[0])
        for (size_t i = 0; i < sizeof(path) - 8; i += 7)
            memcpy(path + i, "/tmp/..", 7);
    stat(path, &s);
}

static void long_paths(void)
{
    many(FEW, long_path);
}

static int locked_file;
static unsigned locked_at;

static void lock_file(void)
{
    struct flock lock = { .l_type = F_WRLCK,
                          .l_start = 2 * locked_at++,
                          .l_len = 1 };
    if (fcntl(locked_file, F_SETLK, &lock) == 0)
        return;
    lock = (struct flock){ .l_type = F_UNLCK };
    fcntl(locked_file, F_SETLK, &lock);
    locked_at = 0;
}

static void file_locks(void)
{
    locked_file = open("locked", O_CREAT | O_RDWR, 0600);
    many(2, lock_file);
}

static void sparse(void)
{
    int fd = open("sparse", O_CREAT | O_RDWR, 0600);
    for (off_t at = 0; at < 1 << 30; at += MIB(4))
        pwrite(fd, "x", 1, at);
    ftruncate(fd, 0);
    close(fd);
}

static void sparse_files(void)
{
    many(FEW, sparse);
}

static void sync_once(void)
{
    sync();
}

static void syncs(void)
{
    many(FEW, sync_once);
}

static void fill_pipe(void)
{
    static char part[65536];
    int ends[2];
    check(pipe(ends) == 0);
    if (fork() == 0)
        while (read(ends[0], part, sizeof(part)) > 0)
            ;
    while (write(ends[1], part, sizeof(part)) > 0)
        ;
}

static void pipes(void)
{
    many(FEW, fill_pipe);
}

static void all_pipes(void)
{
    int ends[2];
    fcntl(1, F_SETFD, 0);
    for (;;) {
        if (pipe(ends) == 0)
            continue;
        if (errno != EMFILE || fork() < 0)
            sleep_ms(1);
        else
            for (int fd = 3; fd < 1024; fd++)
                close(fd);
    }
}

static void poll_all(void)
{
    static struct pollfd all[1000];
    static int ends[2];
    if (!ends[1]) {
        check(pipe(ends) == 0);
        for (int i = 0; i < 1000; i++)
            all[i] = (struct pollfd){ .fd = ends[0], .events = POLLIN };
    }
    poll(all, 1000, 1);
}

static void polls(void)
{
    many(FEW, poll_all);
}

// --- what the kernel tells, and messages ------------------------------------

static void proc(void)
{
    many(4, exec_and_wait); // so that there is something to see
}

static void proc_files(void)
{
    if (fork() == 0)
        proc();
    shell("while :; do cat /proc/*/* /proc/*; done >/dev/null 2>&1");
}

static void tools(void)
{
    shell("while :; do tasks -a; stats; sysinfo system.slabs; done"
          " >/dev/null 2>&1");
}

static void sensors(void)
{
    shell("while :; do : </sensors/sched/latency; : </sensors/mm/free; done");
}

static void sensors_read(void)
{
    shell("for i in 1 2 3 4; do while :; do sensors record -o rec.$i -i 0.001"
          " -d 1 /sensors/mm/free /sensors/sched/latency; done & done"
          " >/dev/null 2>&1; wait");
}

static void profiles(void)
{
    shell("for i in 1 2 3 4; do while :; do profile -g -F 20000 -o data.$i"
          " tester; done & done >/dev/null 2>&1; wait");
}

static void events(void)
{
    shell("for i in 1 2 3 4; do while :; do profile -e @syscall/enter -g"
          " -o data.$i ls -R /; done & done >/dev/null 2>&1; wait");
}

static void traces(void)
{
    shell("for i in 1 2; do while :; do trace record -1 -o data.$i"
          " ls -R /; done & done >/dev/null 2>&1; wait");
}

static int server_task;

static void request(void)
{
    int phone = ipc_connect(server_task);
    struct ipc_call call = { .method = M_ECHO };
    for (int i = 0; phone >= 0 && i < 20; i++)
        ipc_request(phone, &call);
    close(phone);
}

static void messages(void)
{
    server_task = getpid();
    if (fork() == 0)
        many(FEW, request);
    serve(ipc_box());
}

static void all_phones(void)
{
    for (;;) {
        if (ipc_connect(getpid()) >= 0)
            continue;
        if (errno != EMFILE || fork() < 0)
            sleep_ms(1);
        else
            for (int fd = 3; fd < 1024; fd++)
                close(fd);
    }
}

static const struct attack {
    const char *name;
    attack_fn fn;
} attacks[] = {
    { "nothing", wait_killed },
    { "50 tasks compute", busy },
    { "200 threads compute", busy_threads },
    { "50 tasks yield", yields },
    { "50 tasks sleep for 1 us", short_sleeps },
    { "4000 threads sleep for 1 ms", threads_4000 },
    { "16 tasks wake each other", wake_ups },
    { "100 threads, one mutex", futexes },
    { "50 tasks change CPUs", moves },
    { "50 tasks lower their nice value", nice_values },
    { "fork bomb", fork_bomb },
    { "fork and wait", forks },
    { "exec", execs },
    { "exec with long arguments", long_execs },
    { "threads start and end", thread_starts },
    { "tasks of 200 threads end", ends_of_threads },
    { "generations of tasks", generations },
    { "signals to 50 tasks", signals },
    { "all queued signals", queued_signals },
    { "SIGSEGV, handled", faults },
    { "300 timers, signal ignored", timers_ignored },
    { "300 timers, signal pending", timers_pending },
    { "300 timers, signal handled", timers_handled },
    { "300 timers of CPU time", timers_of_cpu_time },
    { "all memory", memory },
    { "tasks of 40 MiB end", large_ends },
    { "map, protect and unmap", mappings },
    { "fork of 5000 areas", forks_of_areas },
    { "reads of 16 MiB", large_reads },
    { "getrandom of 8 MiB", random_numbers },
    { "all room for files, again", files },
    { "all room for files by names", all_files },
    { "names come and go in /tmp", names },
    { "a folder of many names", folder },
    { "paths of 4000 bytes", long_paths },
    { "all file locks", file_locks },
    { "sparse files", sparse_files },
    { "sync", syncs },
    { "full pipes", pipes },
    { "all pipes", all_pipes },
    { "polls of 1000 descriptors", polls },
    { "all files of /proc", proc_files },
    { "tools", tools },
    { "sensors open and close", sensors },
    { "sensors, recorded", sensors_read },
    { "profiles at 20 kHz", profiles },
    { "profiles of system calls", events },
    { "traces", traces },
    { "messages", messages },
    { "all phones", all_phones },
};

#define ATTACKS (sizeof(attacks) / sizeof(attacks[0]))
