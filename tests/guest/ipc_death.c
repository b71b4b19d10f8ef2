// Either side may die or hang up at any moment: the other side is notified, and
// nothing leaks.
#include "ipc.h"

#include <fcntl.h>
#include <poll.h>

#include <sys/mman.h>

static void server_dies(void)
{
    pid_t server = start_server();
    int phone = ipc_connect(server), status;
    struct pollfd p = { .fd = phone, .events = POLLIN };
    struct ipc_call call = { .method = M_HOLD };

    for (int i = 0; i < 3; i++)
        check(ipc_call(phone, &call) == 0);
    pid_t waiter = fork();
    if (waiter == 0) {
        check(ask(phone, M_HOLD) == -1 && errno == ECONNRESET);
        _exit(0);
    }
    sleep_ms(50);
    check(poll(&p, 1, 0) == 0);
    end_server(server);
    check(poll(&p, 1, 5000) == 1 && (p.revents & POLLIN));
    check(p.revents & POLLHUP);
    for (int i = 0; i < 3; i++)
        check(ipc_wait(phone, &call, 5000) == 0 && call.retval == -ECONNRESET);
    check_error(ipc_wait(phone, &call, 0), ENOENT);
    check_error(ipc_call(phone, &call), ECONNRESET);
    check_error(ipc_connect(server), ESRCH);
    check(waitpid(waiter, &status, 0) == waiter && status == 0);
    close(phone);
    ok("a server dies");
}

static void box_is_closed(void)
{
    int box = ipc_box(), again = ipc_box(), phone = ipc_connect(getpid());
    struct ipc_call call = { .method = M_ECHO };

    check(ipc_call(phone, &call) == 0 && ipc_call(phone, &call) == 0);
    check(ipc_wait(box, &call, 0) == 0);
    check(close(box) == 0);
    check_error(ipc_wait(phone, &call, 0), ETIMEDOUT); // `again` is open
    check(close(again) == 0);
    for (int i = 0; i < 2; i++)
        check(ipc_wait(phone, &call, 0) == 0 && call.retval == -ECONNRESET);
    check_error(ipc_call(phone, &call), ECONNRESET);
    box = ipc_box(); // a new box; the old phone does not reach it
    check(box >= 0);
    check_error(ipc_call(phone, &call), ECONNRESET);
    close(phone);
    check_error(ipc_wait(box, &call, 10), ETIMEDOUT);
    close(box);
    ok("a box is closed");
}

// Hanging up also notifies other threads and tasks that share the phone.
static void hang_up(void)
{
    pid_t server = start_server();
    int phone = ipc_connect(server), other = ipc_connect(server), status;
    struct ipc_call call = { .method = M_HOLD };

    check(echo(phone, 1) == 1);
    pid_t waiter = fork();
    if (waiter == 0) {
        close(other); // shares only `phone`
        check(ask(phone, M_HOLD) == -1 && errno == ECONNRESET);
        _exit(0);
    }
    check(ipc_call(phone, &call) == 0);
    sleep_ms(50);
    check(ipc_hangup(phone) == 0 && ipc_hangup(phone) == 0);
    check(waitpid(waiter, &status, 0) == waiter && status == 0);
    check(ipc_wait(phone, &call, 0) == 0 && call.retval == -ECONNRESET);
    check_error(ipc_call(phone, &call), ECONNRESET);
    close(phone);
    check(ask(other, M_HANGUPS) == 1);
    check(ask(other, M_RELEASE) == 0); // held calls without a waiter
    check(echo(other, 2) == 2);
    // A phone that never called does not notify the server.
    close(ipc_connect(server));
    check(ask(other, M_HANGUPS) == 1);
    end_server(server);
    close(other);
    ok("hanging up");
}

// --- storms -----------------------------------------------------------------

static unsigned seed;

static unsigned chance(unsigned n)
{
    seed = seed * 1103515245 + 12345;
    return (seed >> 16) % n;
}

// Makes random calls until it is killed.
static void live(int box)
{
    static char memory[8192];
    int phone = -1;

    for (;;) {
        struct ipc_call call = { .method = M_ECHO };
        if (phone < 0)
            phone = ipc_connect(getppid() + 2 + chance(12));
        call.flags = chance(4) ? 0 : IPC_F_BLOCK;
        switch (chance(8)) {
        case 0:
            call.method = chance(2) ? IPC_M_DATA_READ : IPC_M_DATA_WRITE;
            call.arg[0] = (uint32_t)(uintptr_t)memory + chance(64);
            call.arg[1] = chance(sizeof(memory));
            ipc_call(phone, &call);
            break;
        case 1:
            call.method = chance(2) ? IPC_M_CONNECT_ME_TO : IPC_M_CONNECT_TO_ME;
            ipc_call(phone, &call);
            break;
        case 2:
            ipc_wait(phone, &call, chance(3));
            break;
        case 3:
            if (chance(4) == 0) {
                close(phone);
                phone = -1;
            }
            break;
        case 4:
            ipc_call(phone, &call);
            break;
        default:
            if (ipc_wait(box, &call, chance(3)) < 0 || call.id == 0)
                break;
            if (chance(4) == 0 && ipc_forward(box, call.id, phone, NULL) == 0)
                break;
            call.retval = chance(8) ? 0 : -EXDEV;
            call.arg[0] = call.method == IPC_M_CONNECT_ME_TO
                              ? (uint32_t)phone
                              : (uint32_t)(uintptr_t)memory;
            call.arg[1] = sizeof(memory);
            call.flags = 0;
            int fd = syscall(SYS_ipc_answer, box, &call);
            if (call.method == IPC_M_CONNECT_TO_ME && fd > 2)
                close(fd);
        }
    }
}

static pid_t start_one(unsigned number)
{
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        int box = ipc_box();
        seed = number;
        check(box >= 0);
        live(box);
    }
    return pid;
}

#define LIVES 8
#define KILLS 150

static void storm(unsigned number)
{
    pid_t pid[LIVES];

    for (unsigned i = 0; i < LIVES; i++)
        pid[i] = start_one(number + i);
    for (unsigned i = 0; i < KILLS; i++) {
        unsigned which = chance(LIVES);
        sleep_ms(chance(4));
        end_server(pid[which]);
        pid[which] = start_one(number + LIVES + i);
    }
    for (unsigned i = 0; i < LIVES; i++)
        end_server(pid[i]);
}

static long free_kib(void)
{
    char text[1024];
    int fd = open("/proc/meminfo", O_RDONLY);
    ssize_t n = read(fd, text, sizeof(text) - 1);
    check(n > 0);
    close(fd);
    text[n] = '\0';
    return strtol(strstr(text, "MemFree:") + 8, NULL, 10);
}

#define SLACK_KIB 256 // magazines and partial slabs; 150 leaks are more
#define TRIES 5       // a leak repeats, cache growth does not

static bool storms_lose_memory(void)
{
    long before = free_kib(), after;

    storm(1000);
    storm(2000);
    for (int i = 0; i < 50 && free_kib() + SLACK_KIB < before; i++)
        sleep_ms(20);
    after = free_kib();
    dprintf(1, "# free %ld KiB before, %ld after\n", before, after);
    return after + SLACK_KIB < before;
}

static void storms(void)
{
    seed = (unsigned)getpid();
    dprintf(1, "# seed %u\n", seed);
    storm(1); // fills the caches
    for (int tries = 1; storms_lose_memory(); tries++)
        check(tries < TRIES);
    ok("death at any moment");
}

// Tasks that have nothing in common but the kernel's list of connections.
static void connect_at_once(void)
{
    pid_t tasks[4];
    for (int i = 0; i < 4; i++) {
        tasks[i] = fork();
        check(tasks[i] >= 0);
        if (tasks[i])
            continue;
        int box = ipc_box();
        for (int n = 0; n < 300; n++) {
            int phone = ipc_connect(getpid());
            check(phone >= 0 && close(phone) == 0);
        }
        close(box);
        _exit(0);
    }
    for (int i = 0, status; i < 4; i++)
        check(waitpid(tasks[i], &status, 0) == tasks[i] && status == 0);
    ok("connecting at once");
}

int main(void)
{
    alarm(TEST_SECONDS);
    skip_elsewhere();
    server_dies();
    box_is_closed();
    hang_up();
    connect_at_once();
    storms();
    return 0;
}
