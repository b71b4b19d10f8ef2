// Calls between tasks: answers, limits, time-outs, signals, poll, forwarding,
// and errors.
#include "ipc.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

static int server;

static void basics(void)
{
    int phone = ipc_connect(server);
    struct ipc_call call = { .method = M_ECHO, .arg = { 5, 6, 7, 8, 9, 10 } };

    check(phone >= 0);
    check(ipc_request(phone, &call) == 5);
    for (uint32_t i = 0; i < 6; i++)
        check(call.arg[i] == 5 + i);
    check(echo(phone, -EXDEV) == -1 && errno == EXDEV);
    check_error(ipc_wait(phone, &call, -1), ENOENT);
    call = (struct ipc_call){ .method = M_ECHO, .arg = { 3 } };
    check(ipc_call(phone, &call) == 0 && call.id != 0);
    uint32_t id = call.id;
    check(ipc_wait(phone, &call, 5000) == 0);
    check(call.id == id && call.retval == 3 && call.method == M_ECHO);
    check(close(phone) == 0);
    ok("calls and answers");
}

static void wrong(void)
{
    int phone = ipc_connect(server), box = ipc_box(), fds[2];
    struct ipc_call call = { .method = M_ECHO };

    check(phone >= 0 && box >= 0 && pipe(fds) == 0);
    check_error(ipc_connect(4000000), ESRCH);
    call.flags = 64;
    check_error(ipc_call(phone, &call), EINVAL);
    call.flags = 0;
    check_error(ipc_call(box, &call), EINVAL);
    check_error(ipc_call(fds[0], &call), EINVAL);
    check_error(ipc_call(999, &call), EBADF);
    check_error(ipc_wait(fds[0], &call, 0), EINVAL);
    check_error(ipc_answer(phone, 1, 0), EINVAL);
    check_error(ipc_answer(box, 12345, 0), ENOENT);
    check_error(ipc_answer(box, 0, 0), ENOENT);
    check_error(ipc_forward(box, 1, fds[0], NULL), EINVAL);
    check_error(ipc_forward(box, 1, phone, NULL), ENOENT);
    check_error(ipc_hangup(box), EINVAL);
    check_error(ipc_irq(phone, 0, true), EINVAL);
    check_error(ipc_irq(box, 400, true), EINVAL);
    check_error(ipc_wait(box, &call, 20), ETIMEDOUT);
    check_error(ipc_wait(box, (void *)8, 20), ETIMEDOUT);
    // Methods reserved for the kernel are refused.
    static const uint32_t reserved[] = { 0, IPC_M_SPROFILE_ALL,
                                         IPC_M_PHONE_HANGUP, IPC_M_IRQ,
                                         IPC_M_USER - 1 };
    for (size_t i = 0; i < sizeof(reserved) / sizeof(*reserved); i++) {
        call.method = reserved[i];
        check_error(ipc_call(phone, &call), EINVAL);
    }
    // Only its task may use a box.
    pid_t child = fork();
    if (child == 0) {
        struct pollfd p = { .fd = box, .events = POLLIN };
        check_error(ipc_wait(box, &call, 0), EPERM);
        check_error(ipc_answer(box, 1, 0), EPERM);
        check(poll(&p, 1, 0) == 1 && p.revents == POLLERR);
        check(echo(phone, 4) == 4); // a phone is inherited
        _exit(0);
    }
    int status;
    check(waitpid(child, &status, 0) == child && status == 0);
    close(phone);
    close(box);
    close(fds[0]);
    close(fds[1]);
    ok("what must fail");
}

// Calls up to the phone's limit, then -EAGAIN; answers make room again.
static void limits(void)
{
    int phone = ipc_connect(server), other = ipc_connect(server);
    struct pollfd p = { .fd = phone, .events = POLLIN | POLLOUT };
    struct ipc_call call = { .method = M_HOLD };

    for (uint32_t i = 0; i < IPC_PHONE_CALLS; i++) {
        check(poll(&p, 1, 0) == 1 && p.revents == POLLOUT);
        check(ipc_call(phone, &call) == 0);
    }
    check(poll(&p, 1, 0) == 0);
    check_error(ipc_call(phone, &call), EAGAIN);
    check_error(ipc_wait(phone, &call, 10), ETIMEDOUT);
    check(ask(other, M_RELEASE) == 0);
    check(poll(&p, 1, 5000) == 1 && p.revents == POLLIN);
    check(ipc_wait(phone, &call, 5000) == 0 && call.retval == 7);
    check(poll(&p, 1, 0) == 1 && p.revents == (POLLIN | POLLOUT));
    for (uint32_t i = 1; i < IPC_PHONE_CALLS; i++)
        check(ipc_wait(phone, &call, 5000) == 0 && call.retval == 7);
    check_error(ipc_wait(phone, &call, 0), ENOENT);
    close(phone);
    close(other);
    ok("limits of a phone");
}

// A box that is not read takes IPC_BOX_CALLS calls and no more.
static void full_box(void)
{
    enum { PHONES = IPC_BOX_CALLS / IPC_PHONE_CALLS + 1 };
    int phone[PHONES], sent = 0, status;
    struct ipc_call call = { .method = M_ECHO };
    pid_t sleeper = fork();

    if (sleeper == 0) {
        for (;;)
            pause();
    }
    for (int i = 0; i < PHONES; i++) {
        phone[i] = ipc_connect(sleeper);
        check(phone[i] >= 0);
        while (ipc_call(phone[i], &call) == 0)
            sent++;
        check(errno == EAGAIN);
    }
    check(sent == IPC_BOX_CALLS);
    // A caller that waits for room gets it when another phone hangs up.
    pid_t waiter = fork();
    if (waiter == 0) {
        close(phone[0]);
        call.flags = IPC_F_BLOCK;
        check(ipc_call(phone[PHONES - 1], &call) == 0);
        _exit(0);
    }
    sleep_ms(50);
    check(waitpid(waiter, &status, WNOHANG) == 0);
    close(phone[0]);
    check(waitpid(waiter, &status, 0) == waiter && status == 0);
    end_server(sleeper);
    for (int i = 1; i < PHONES; i++) {
        for (uint32_t n = 0; n < IPC_PHONE_CALLS && i < PHONES - 1; n++)
            check(ipc_wait(phone[i], &call, 5000) == 0 &&
                  call.retval == -ECONNRESET);
        close(phone[i]);
    }
    ok("a full box");
}

static void on_usr1(int signal)
{
    (void)signal;
}

// A signal interrupts the wait for an answer; the call stays pending.
static void interrupted(void)
{
    int phone = ipc_connect(server), other = ipc_connect(server), status;
    int report[2];
    char byte;
    check(pipe2(report, O_NONBLOCK) == 0);
    pid_t child = fork();

    if (child == 0) {
        struct ipc_call call = { .method = M_HOLD, .flags = IPC_F_WAIT };
        on_signal(SIGUSR1, on_usr1, SA_RESTART);
        check(write(report[1], "", 1) == 1);
        check_error(ipc_call(phone, &call), EINTR);
        uint32_t id = call.id;
        check_error(ipc_wait(phone, &call, -1), EINTR);
        check(write(report[1], "", 1) == 1);
        while (ipc_wait(phone, &call, -1) != 0)
            check(errno == EINTR);
        check(call.id == id && call.retval == 7);
        _exit(0);
    }
    while (read(report[0], &byte, 1) != 1)
        sleep_ms(1);
    do { // it may not wait yet
        check(kill(child, SIGUSR1) == 0);
        sleep_ms(5);
    } while (read(report[0], &byte, 1) != 1);
    check(ask(other, M_RELEASE) == 0);
    check(waitpid(child, &status, 0) == child && status == 0);
    close(report[0]);
    close(report[1]);
    close(phone);
    close(other);
    ok("signals");
}

#define THREADS 4
#define ROUNDS 300

static int shared;

static void *calls_of_one(void *argument)
{
    int base = (int)(intptr_t)argument * ROUNDS;
    for (int i = 0; i < ROUNDS; i++)
        check(echo(shared, base + i) == base + i);
    return NULL;
}

static void *serve_one(void *argument)
{
    serve((int)(intptr_t)argument);
    return NULL;
}

// Threads that share a phone, and threads that share a box.
static void threads(void)
{
    pthread_t thread[THREADS];
    pid_t pid = fork();

    if (pid == 0) {
        int box = ipc_box();
        for (int i = 0; i < THREADS; i++)
            check(pthread_create(&thread[i], NULL, serve_one,
                                 (void *)(intptr_t)box) == 0);
        for (;;)
            pause();
    }
    shared = ipc_connect(pid);
    check(shared >= 0);
    for (int i = 0; i < THREADS; i++)
        check(pthread_create(&thread[i], NULL, calls_of_one,
                             (void *)(intptr_t)i) == 0);
    for (int i = 0; i < THREADS; i++)
        check(pthread_join(thread[i], NULL) == 0);
    end_server(pid);
    close(shared);
    ok("threads at both ends");
}

// Forwards between two boxes and back to the caller, with other arguments or
// not.
static void forwarding(void)
{
    int box = ipc_box(), to = ipc_connect(server), me, status;
    struct ipc_call call, changed;
    pid_t parent = getpid(), child = fork();

    if (child == 0) {
        me = ipc_connect(parent);
        check(me >= 0);
        check(echo(me, 11) == 11);
        check(echo(me, 12) == 99);
        check(echo(me, 13) == 42);
        _exit(0);
    }
    check(ipc_wait(box, &call, 5000) == 0 && call.task == (uint32_t)child);
    uint32_t over = call.phone;
    check(ipc_forward(box, call.id, to, NULL) == 0);
    check_error(ipc_forward(box, call.id, to, NULL), ENOENT);
    check_error(ipc_answer(box, call.id, 1), ENOENT);
    check(ipc_wait(box, &call, 5000) == 0 && call.phone == over);
    changed = (struct ipc_call){ .method = IPC_M_DATA_READ };
    check_error(ipc_forward(box, call.id, to, &changed), EINVAL);
    changed = (struct ipc_call){ .method = M_ECHO, .arg = { 99 } };
    check(ipc_forward(box, call.id, to, &changed) == 0);
    // Forwarding to a phone that is hung up fails; the call stays.
    check(ipc_wait(box, &call, 5000) == 0 && call.arg[0] == 13);
    check(ipc_hangup(to) == 0);
    check_error(ipc_forward(box, call.id, to, NULL), ECONNRESET);
    check(ipc_answer(box, call.id, 42) == 0);
    check(waitpid(child, &status, 0) == child && status == 0);
    check(ipc_wait(box, &call, 5000) == 0);
    check(call.method == IPC_M_PHONE_HANGUP && call.phone == over);
    check(call.task == (uint32_t)child && call.id == 0);
    close(to);
    close(box);
    ok("forwarding");
}

int main(void)
{
    alarm(TEST_SECONDS);
    skip_elsewhere();
    server = start_server();
    basics();
    wrong();
    limits();
    full_box();
    interrupted();
    threads();
    forwarding();
    end_server(server);
    return 0;
}
