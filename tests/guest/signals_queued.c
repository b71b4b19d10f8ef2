// Queued signals: real-time signals arrive one by one, in order, with their
// values. A blocked signal stays pending even if it is ignored.
#include "test.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>

#define LIMIT 8

static int values[100];
static volatile unsigned got;

static void note(int signal, siginfo_t *info, void *unused)
{
    (void)signal;
    (void)unused;
    values[got++] = info->si_value.sival_int;
}

static sigset_t block(int signal)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    check(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    return set;
}

static int queue(int signal, int value)
{
    return sigqueue(getpid(), signal, (union sigval){ .sival_int = value });
}

static void handle(int signal)
{
    struct sigaction action = { .sa_sigaction = note, .sa_flags = SA_SIGINFO };
    check(sigaction(signal, &action, NULL) == 0);
    got = 0;
}

static void each_arrives(void)
{
    sigset_t set = block(SIGRTMIN + 1), pending;
    handle(SIGRTMIN + 1);
    for (int i = 0; i < 50; i++)
        check(queue(SIGRTMIN + 1, 100 + i) == 0);
    check(got == 0 && sigpending(&pending) == 0 &&
          sigismember(&pending, SIGRTMIN + 1));
    check(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
    check(got == 50);
    for (int i = 0; i < 50; i++)
        check(values[i] == 100 + i);
    check(sigpending(&pending) == 0 && sigisemptyset(&pending));
    ok("three signals sent are three that come");

    set = block(SIGUSR1);
    handle(SIGUSR1);
    for (int i = 0; i < 3; i++)
        check(queue(SIGUSR1, i + 1) == 0);
    check(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
    check(got == 1 && values[0] == 1);
    ok("of a standard signal the first");
}

static void waited_for(void)
{
    siginfo_t info;
    struct timespec none = { 0, 0 };
    sigset_t set = block(SIGRTMIN + 2);
    for (int i = 0; i < 3; i++)
        check(queue(SIGRTMIN + 2, i) == 0);
    for (int i = 0; i < 3; i++) {
        check(sigtimedwait(&set, &info, &none) == SIGRTMIN + 2);
        check(info.si_value.sival_int == i && info.si_code == SI_QUEUE);
    }
    check_error(sigtimedwait(&set, &info, &none), EAGAIN);
    ok("sigwaitinfo takes one after the other");
}

static void as_many_as_allowed(void)
{
    struct rlimit limit, few;
    sigset_t set = block(SIGRTMIN + 3);
    check(getrlimit(RLIMIT_SIGPENDING, &limit) == 0 && limit.rlim_cur > LIMIT);
    few = limit;
    few.rlim_cur = LIMIT;
    check(setrlimit(RLIMIT_SIGPENDING, &few) == 0);
    handle(SIGRTMIN + 3);
    int sent = 0;
    while (sent < 2 * LIMIT && queue(SIGRTMIN + 3, sent) == 0)
        sent++;
    check(sent == LIMIT && errno == EAGAIN);
    check_error(queue(SIGRTMIN + 4, 0), EAGAIN);
    check(kill(getpid(), SIGRTMIN + 3) == 0); // without a value
    check(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
    check(got == LIMIT && values[LIMIT - 1] == LIMIT - 1);
    check(setrlimit(RLIMIT_SIGPENDING, &limit) == 0);
    ok("no more than RLIMIT_SIGPENDING, and the error says so");
}

// A signal that is ignored, by default or on request.
static void wait_for_ignored(int signal)
{
    siginfo_t info;
    struct timespec long_enough = { 60, 0 };
    sigset_t set = block(signal);
    check(kill(getpid(), signal) == 0);
    check(sigtimedwait(&set, &info, &long_enough) == signal);
    check(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
    check(kill(getpid(), signal) == 0); // not blocked: discarded
    set = block(signal);
    check_error(sigtimedwait(&set, &info, &(struct timespec){ 0, 0 }), EAGAIN);
    check(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
}

static void ignored_and_blocked(void)
{
    on_signal(SIGUSR2, SIG_IGN, 0);
    wait_for_ignored(SIGUSR2);
    wait_for_ignored(SIGURG);
    // It is delivered once there is a handler.
    sigset_t set = block(SIGUSR2);
    check(kill(getpid(), SIGUSR2) == 0);
    handle(SIGUSR2);
    check(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0 && got == 1);
    // Ignoring a signal discards what is pending.
    set = block(SIGRTMIN + 5);
    handle(SIGRTMIN + 5);
    for (int i = 0; i < 3; i++)
        check(queue(SIGRTMIN + 5, i) == 0);
    on_signal(SIGRTMIN + 5, SIG_IGN, 0);
    handle(SIGRTMIN + 5);
    check(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0 && got == 0);
    ok("an ignored signal waits while it is blocked");
}

static pid_t other;
static volatile bool done;

static void *thread(void *unused)
{
    __atomic_store_n(&other, syscall(SYS_gettid), __ATOMIC_RELEASE);
    while (!done)
        sleep_ms(1);
    return unused;
}

static void kill_by_thread(void)
{
    pthread_t t;
    sigset_t set = block(SIGRTMIN + 6);
    check(pthread_create(&t, NULL, thread, NULL) == 0);
    while (__atomic_load_n(&other, __ATOMIC_ACQUIRE) == 0)
        sleep_ms(1);
    check(other != getpid());
    check(kill(other, 0) == 0);
    check(kill(other, SIGRTMIN + 6) == 0); // to the task, not to the thread
    check(sigtimedwait(&set, NULL, &(struct timespec){ 60, 0 }) ==
          SIGRTMIN + 6);
    done = true;
    check(pthread_join(t, NULL) == 0);
    ok("kill knows a task by each of its threads");
}

// Queued signals are freed with their task and its threads.
static void nothing_left(void)
{
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();
        check(pid >= 0);
        if (pid == 0) {
            block(SIGRTMIN + 7);
            for (int n = 0; n < 100; n++) {
                check(queue(SIGRTMIN + 7, n) == 0);
                check(syscall(SYS_tkill, getpid(), SIGRTMIN + 7) == 0);
            }
            _exit(0);
        }
        int status;
        check(waitpid(pid, &status, 0) == pid && exited_with(status, 0));
    }
    ok("signals that no thread takes");
}

int main(void)
{
    alarm(TEST_SECONDS);
    each_arrives();
    waited_for();
    as_many_as_allowed();
    ignored_and_blocked();
    kill_by_thread();
    nothing_left();
    return 0;
}
