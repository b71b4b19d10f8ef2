// Deadlock detection for record locks: the task that would close a cycle of
// waiters gets EDEADLK, and no other task.
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#define TASKS 4

static int to_child[TASKS][2], from_child[2];

static int set(int fd, int command, short type, off_t byte)
{
    struct flock l = { .l_type = type, .l_start = byte, .l_len = 1 };
    return fcntl(fd, command, &l);
}

static int set_wait(int fd, short type, off_t byte)
{
    return set(fd, F_SETLKW, type, byte);
}

// A task that obeys orders: waits for the lock of the byte it is sent and
// reports the result. 'x' ends it.
static void obey(int self)
{
    char order;
    int fd = open("locked", O_RDWR);
    while (read(to_child[self][0], &order, 1) == 1 && order != 'x') {
        char answer = set_wait(fd, F_WRLCK, order) == 0 ? 0 : (char)errno;
        check(write(from_child[1], &answer, 1) == 1);
    }
    _exit(0);
}

static void order(int child, char byte)
{
    check(write(to_child[child][1], &byte, 1) == 1);
}

static int answer(void)
{
    char c;
    check(read(from_child[0], &c, 1) == 1);
    return c;
}

// Starts tasks that each hold the byte of their number.
static void begin(pid_t *children, int n)
{
    check(pipe(from_child) == 0);
    for (int i = 0; i < n; i++) {
        check(pipe(to_child[i]) == 0);
        children[i] = fork();
        if (children[i] == 0)
            obey(i);
        order(i, (char)i);
        check(answer() == 0);
    }
}

static void end(pid_t *children, int n)
{
    for (int i = 0; i < n; i++) {
        order(i, 'x');
        check(waitpid(children[i], NULL, 0) == children[i]);
        close(to_child[i][0]);
        close(to_child[i][1]);
    }
    close(from_child[0]);
    close(from_child[1]);
}

// Each task holds its byte and requests the next one's: the last is refused.
static void circle(int n)
{
    pid_t children[TASKS];
    begin(children, n);
    for (int i = 0; i < n; i++)
        order(i, (char)((i + 1) % n));
    check(answer() == EDEADLK); // the others wait
    int fd = open("locked", O_RDWR);
    check_error(set(fd, F_SETLK, F_WRLCK, 0), EAGAIN); // and keep their locks
    for (int i = 0; i < n; i++)
        kill(children[i], SIGKILL);
    for (int i = 0; i < n; i++) {
        waitpid(children[i], NULL, 0);
        close(to_child[i][0]);
        close(to_child[i][1]);
    }
    close(from_child[0]);
    close(from_child[1]);
    check(set(fd, F_SETLK, F_WRLCK, 0) == 0);
    close(fd);
}

// A chain of waiting tasks is no cycle.
static void chain(void)
{
    pid_t children[4];
    begin(children, 4);
    order(0, 1);
    order(1, 2);
    order(2, 3);
    sleep_ms(50);
    order(3, 'x'); // its byte goes to task 2, and so on
    check(waitpid(children[3], NULL, 0) == children[3]);
    check(answer() == 0);
    order(2, 'x');
    check(waitpid(children[2], NULL, 0) == children[2]);
    check(answer() == 0);
    order(1, 'x');
    check(waitpid(children[1], NULL, 0) == children[1]);
    check(answer() == 0);
    end(children, 1);
    for (int i = 1; i < 4; i++) {
        close(to_child[i][0]);
        close(to_child[i][1]);
    }
}

// A waiter whose lock has been released no longer waits, even if it has not run
// yet: waiting for it is no deadlock.
static void wait_that_is_over(void)
{
    int status, fd = open("locked", O_RDWR), ready[2];
    char c = 0;
    check(pipe(ready) == 0 && set_wait(fd, F_WRLCK, 0) == 0);
    pid_t child = fork();
    if (child == 0) {
        check(set_wait(fd, F_WRLCK, 1) == 0);
        check(write(ready[1], &c, 1) == 1);
        check(set_wait(fd, F_WRLCK, 0) == 0);
        _exit(3);
    }
    check(read(ready[0], &c, 1) == 1);
    sleep_ms(50);
    check(set(fd, F_SETLK, F_UNLCK, 0) == 0);
    check(set_wait(fd, F_WRLCK, 1) == 0); // until the child ends
    check(waitpid(child, &status, 0) == child && exited_with(status, 3));
    close(fd);
    close(ready[0]);
    close(ready[1]);
}

int main(void)
{
    close(open("locked", O_CREAT | O_RDWR, 0644));
    circle(2);
    ok("two in opposite order");
    circle(3);
    ok("three in a circle");
    chain();
    ok("a chain is no circle");
    wait_that_is_over();
    ok("a wait that is over is none");
    return 0;
}
