// Threads: pthreads on clone and futex.
#include "test.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define THREADS 32
#define ROUNDS 2000
#define ROUNDS_OF_TURNS 20 // each turn wakes all

static pthread_t threads[THREADS];

static void start_all(void *(*fn)(void *))
{
    for (intptr_t i = 0; i < THREADS; i++)
        check(pthread_create(&threads[i], NULL, fn, (void *)i) == 0);
}

static intptr_t join_all(void)
{
    intptr_t sum = 0;
    for (int i = 0; i < THREADS; i++) {
        void *result;
        check(pthread_join(threads[i], &result) == 0);
        sum += (intptr_t)result;
    }
    return sum;
}

// --- pthreads ---------------------------------------------------------------

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static volatile int counter;
static __thread int own = 7;

static void *add(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        check(pthread_mutex_lock(&mutex) == 0);
        counter = counter + 1; // not atomic by itself
        if (i % 64 == 0)
            sched_yield();
        check(pthread_mutex_unlock(&mutex) == 0);
    }
    check(own == 7);
    own = (intptr_t)argument;
    sched_yield();
    check(own == (intptr_t)argument);
    return argument;
}

static void mutexes(void)
{
    counter = 0;
    start_all(add);
    check(join_all() == THREADS * (THREADS - 1) / 2);
    check(counter == THREADS * ROUNDS);
    check(own == 7);
    ok("32 threads, a mutex, thread-local storage, join");
}

static volatile int turn;

static void *take_turns(void *argument)
{
    int me = (intptr_t)argument;
    for (int round = 0; round < ROUNDS_OF_TURNS; round++) {
        pthread_mutex_lock(&mutex);
        while (turn % THREADS != me)
            pthread_cond_wait(&condition, &mutex);
        turn++;
        pthread_cond_broadcast(&condition);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void conditions(void)
{
    turn = 0;
    start_all(take_turns);
    join_all();
    check(turn == THREADS * ROUNDS_OF_TURNS);

    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += 20000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    pthread_mutex_lock(&mutex);
    check(pthread_cond_timedwait(&condition, &mutex, &t) == ETIMEDOUT);
    pthread_mutex_unlock(&mutex);
    ok("condition variables");
}

static pthread_barrier_t barrier;

static void *meet(void *argument)
{
    intptr_t serial = 0;
    (void)argument;
    for (int i = 0; i < 20; i++) {
        __sync_fetch_and_add(&counter, 1);
        int r = pthread_barrier_wait(&barrier);
        check(counter >= (i + 1) * THREADS);
        serial += r == PTHREAD_BARRIER_SERIAL_THREAD;
        pthread_barrier_wait(&barrier);
    }
    return (void *)serial;
}

static void barriers(void)
{
    counter = 0;
    check(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
    start_all(meet);
    check(join_all() == 20);
    ok("barriers");
}

static void *sleep_for_ever(void *argument)
{
    (void)argument;
    for (;;)
        pause();
    return NULL;
}

static void cancelling(void)
{
    void *result;
    pthread_t t;
    check(pthread_create(&t, NULL, sleep_for_ever, NULL) == 0);
    sleep_ms(10);
    check(pthread_cancel(t) == 0);
    check(pthread_join(t, &result) == 0 && result == PTHREAD_CANCELED);
    ok("cancelling");
}

// --- threads and the process ------------------------------------------------

static volatile pid_t handled_by;

static void handle(int signal)
{
    (void)signal;
    handled_by = syscall(SYS_gettid);
}

static volatile pid_t sleeper_id;

static void *sleeper(void *argument)
{
    (void)argument;
    sleeper_id = syscall(SYS_gettid);
    while (handled_by == 0)
        sleep_ms(1);
    return NULL;
}

static void directed_signals(void)
{
    pthread_t t;
    on_signal(SIGUSR1, handle, 0);
    sleeper_id = handled_by = 0;
    check(pthread_create(&t, NULL, sleeper, NULL) == 0);
    while (sleeper_id == 0)
        sleep_ms(1);
    check(pthread_kill(t, SIGUSR1) == 0);
    pthread_join(t, NULL);
    check(handled_by == sleeper_id && sleeper_id != getpid());

    // Sent to the process: a thread that does not block it takes it.
    sigset_t set, old;
    sleeper_id = handled_by = 0;
    check(pthread_create(&t, NULL, sleeper, NULL) == 0);
    while (sleeper_id == 0)
        sleep_ms(1);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, &old);
    check(kill(getpid(), SIGUSR1) == 0);
    pthread_join(t, NULL);
    check(handled_by == sleeper_id);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    ok("signals to one thread, and to any");
}

static void *exit_everything(void *argument)
{
    (void)argument;
    sleep_ms(10);
    exit(33);
}

static void exit_from_thread(void)
{
    start_all(sleep_for_ever);
    pthread_t t;
    check(pthread_create(&t, NULL, exit_everything, NULL) == 0);
    for (;;)
        pause();
}

static void *spin(void *argument)
{
    (void)argument;
    for (;;)
        ;
    return NULL;
}

static void exit_while_spinning(void)
{
    for (int i = 0; i < 4; i++)
        check(pthread_create(&threads[i], NULL, spin, NULL) == 0);
    sleep_ms(10);
    exit(34);
}

static void *exec_program(void *argument)
{
    char id[16];
    (void)argument;
    snprintf(id, sizeof(id), "%d", getpid());
    execl("/proc/self/exe", "threads", "child", id, NULL);
    _exit(99);
}

static void exec_from_thread(void)
{
    pthread_t t;
    start_all(sleep_for_ever);
    check(pthread_create(&t, NULL, exec_program, NULL) == 0);
    for (;;)
        pause();
}

static void *fault(void *argument)
{
    *((volatile int *)argument + 1) = 1;
    return NULL;
}

static void die_in_thread(void)
{
    pthread_t t;
    start_all(sleep_for_ever);
    check(pthread_create(&t, NULL, fault, NULL) == 0);
    for (;;)
        pause();
}

static void *outlive(void *argument)
{
    (void)argument;
    sleep_ms(20);
    exit(35);
}

static void main_thread_leaves(void)
{
    pthread_t t;
    check(pthread_create(&t, NULL, outlive, NULL) == 0);
    pthread_exit(NULL);
}

static void *fork_once(void *argument)
{
    int status;
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0)
        _exit((intptr_t)argument);
    check(waitpid(pid, &status, 0) == pid);
    check(exited_with(status, (intptr_t)argument));
    return NULL;
}

static void whole_process(void)
{
    check(exited_with(in_child(exit_from_thread), 33));
    check(exited_with(in_child(exit_while_spinning), 34));
    check(exited_with(in_child(exec_from_thread), 44));
    check(killed_by(in_child(die_in_thread), SIGSEGV));
    check(exited_with(in_child(main_thread_leaves), 35));
    ok("exit, exec and death of a process with many threads");
    start_all(fork_once);
    join_all();
    ok("fork from many threads");
}

static void many_in_a_row(void)
{
    for (int i = 0; i < 100; i++) {
        void *result;
        pthread_t t;
        check(pthread_create(&t, NULL, add, NULL) == 0);
        check(pthread_join(t, &result) == 0 && result == NULL);
    }
    ok("100 threads, one after the other");
}

// --- futex itself -----------------------------------------------------------

#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#define FUTEX_REQUEUE 3
#define FUTEX_CMP_REQUEUE 4
#define PRIVATE 128

static int futex(volatile int *word, int operation, int value, void *timeout,
                 volatile int *other, int third)
{
    return syscall(SYS_futex, word, operation, value, timeout, other, third);
}

static volatile int word, other_word, awake;

static void *wait_on_word(void *argument)
{
    (void)argument;
    while (futex(&word, FUTEX_WAIT | PRIVATE, 0, NULL, NULL, 0) < 0 &&
           errno == EINTR)
        ;
    __sync_fetch_and_add(&awake, 1);
    return NULL;
}

// Wakes until `total` waiters have been woken: they may not all wait yet.
static void wake_all(volatile int *which, int total)
{
    for (int woken = 0; woken < total;) {
        int n = futex(which, FUTEX_WAKE | PRIVATE, INT_MAX, NULL, NULL, 0);
        check(n >= 0);
        woken += n;
        sched_yield();
    }
}

static void futexes(void)
{
    struct {
        int32_t sec, nsec; // the kernel's timespec, not musl's
    } t = { 0, 20000000 };
    uint64_t start = now_ns();

    word = 5;
    check_error(futex(&word, FUTEX_WAIT, 4, NULL, NULL, 0), EAGAIN);
    check_error(futex(&word, FUTEX_WAIT, 5, &t, NULL, 0), ETIMEDOUT);
    check(now_ns() - start >= 20000000);
    t.nsec = 1000000000;
    check_error(futex(&word, FUTEX_WAIT, 5, &t, NULL, 0), EINVAL);
    check_error(futex((int *)2, FUTEX_WAIT, 5, NULL, NULL, 0), EINVAL);
    check_error(futex((int *)16, FUTEX_WAIT, 5, NULL, NULL, 0), EFAULT);
    check_error(futex(&word, 99, 5, NULL, NULL, 0), ENOSYS);
    check(futex(&word, FUTEX_WAKE, 10, NULL, NULL, 0) == 0);

    word = awake = 0;
    start_all(wait_on_word);
    wake_all(&word, THREADS);
    join_all();
    check(awake == THREADS);
    ok("futex wait and wake");

    awake = 0;
    start_all(wait_on_word);
    sleep_ms(30);
    int moved = futex(&word, FUTEX_REQUEUE | PRIVATE, 1, (void *)INT_MAX,
                      &other_word, 0);
    check(moved >= 0);
    check_error(futex(&word, FUTEX_CMP_REQUEUE | PRIVATE, 1, (void *)INT_MAX,
                      &other_word, 77),
                EAGAIN);
    // A late thread waits on the first word.
    while (awake < THREADS) {
        futex(&word, FUTEX_WAKE | PRIVATE, INT_MAX, NULL, NULL, 0);
        futex(&other_word, FUTEX_WAKE | PRIVATE, INT_MAX, NULL, NULL, 0);
        sched_yield();
    }
    join_all();
    ok("futex requeue");
}

static void shared_futex(void)
{
    volatile int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(shared != MAP_FAILED);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        while (*shared == 0)
            futex(shared, FUTEX_WAIT, 0, NULL, NULL, 0);
        _exit(*shared);
    }
    sleep_ms(20);
    *shared = 9;
    int status;
    check(futex(shared, FUTEX_WAKE, 1, NULL, NULL, 0) >= 0);
    check(waitpid(pid, &status, 0) == pid && exited_with(status, 9));
    ok("futex between processes");
}

static void affinity(void)
{
    cpu_set_t all, one;
    check(sched_getaffinity(0, sizeof(all), &all) == 0 && CPU_COUNT(&all) > 0);
    for (int cpu = 0; cpu < 32; cpu++) {
        if (!CPU_ISSET(cpu, &all))
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        check(sched_setaffinity(0, sizeof(one), &one) == 0);
        check(sched_getaffinity(0, sizeof(one), &one) == 0);
        check(CPU_COUNT(&one) == 1 && CPU_ISSET(cpu, &one));
        sched_yield();
    }
    CPU_ZERO(&one);
    check_error(sched_setaffinity(0, sizeof(one), &one), EINVAL);
    check(sched_setaffinity(0, sizeof(all), &all) == 0);
    ok("affinity");
}

int main(int argc, char *argv[])
{
    if (argc > 2 && strcmp(argv[1], "child") == 0)
        return getpid() == atoi(argv[2]) && syscall(SYS_gettid) == getpid() ? 44
                                                                            : 1;
    alarm(TEST_SECONDS);
    mutexes();
    conditions();
    barriers();
    cancelling();
    directed_signals();
    whole_process();
    many_in_a_row();
    futexes();
    shared_futex();
    affinity();
    return 0;
}
