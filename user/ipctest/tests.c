// The tests of ipctest. The servers run on other CPUs than the clients, if
// there are several CPUs.
#define _GNU_SOURCE
#include "ipctest.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#define ROUNDS 500
#define CLIENTS 4
#define TIMER_VECTOR 0xe0
#define RELAYS 3

static void ok(const char *what)
{
    printf("ok %s\n", what);
}

static void add(int phone, uint32_t a, uint32_t b)
{
    struct ipc_call call = { .method = M_ADD, .arg = { 0, a, b } };

    check(ipc_request(phone, &call) == (int)(a + b));
}

static void calls_to(int server_cpu, int client_cpu)
{
    int phone;
    pid_t server = start_server(server_cpu, serve_plainly, 0, &phone);

    run_on(client_cpu);
    for (int i = 0; i < ROUNDS; i++)
        add(phone, i, client_cpu);
    stop(server);
    close(phone);
}

// Each answer arrives once, in whatever order the answers are waited for.
static void many_at_once(void)
{
    bool seen[IPC_PHONE_CALLS] = { false };
    uint32_t first = 0;
    int phone;
    pid_t server = start_server(cpus - 1, serve_plainly, 0, &phone);

    for (uint32_t i = 0; i < IPC_PHONE_CALLS; i++) {
        struct ipc_call call = { .method = M_ADD, .arg = { 0, i, 1000 } };
        check(ipc_call(phone, &call) == 0);
        if (i == 0)
            first = call.id;
        check(call.id == first + i);
    }
    for (uint32_t i = 0; i < IPC_PHONE_CALLS; i++) {
        struct ipc_call answer;
        check(ipc_wait(phone, &answer, 5000) == 0);
        uint32_t which = answer.id - first;
        check(which < IPC_PHONE_CALLS && !seen[which]);
        check(answer.retval == (int)(which + 1000));
        seen[which] = true;
    }
    stop(server);
    close(phone);
}

// Clients on all CPUs call one server, each over its own phone.
static void many_clients(void)
{
    int phone, status;
    pid_t server = start_server(0, serve_plainly, 0, &phone);

    for (int i = 0; i < CLIENTS; i++) {
        if (fork() == 0) {
            int own = ipc_connect(server);
            check(own >= 0);
            run_on(i % cpus);
            for (int n = 0; n < ROUNDS; n++)
                add(n % 2 ? own : phone, i, n);
            exit(0);
        }
    }
    for (int i = 0; i < CLIENTS; i++)
        check(wait(&status) > 0 && status == 0);
    stop(server);
    close(phone);
}

void test_calls(void)
{
    for (int cpu = 0; cpu < cpus; cpu++)
        calls_to(cpu, 0);
    calls_to(0, cpus - 1);
    ok("calls and answers between all CPUs");
    many_at_once();
    ok("many calls under way");
    many_clients();
    ok("many clients, own phones and a shared one");
}

void test_forwards(void)
{
    pid_t server[RELAYS];
    int phone[RELAYS];

    for (int i = 0; i < RELAYS; i++)
        server[i] = start_server(i % cpus, serve_relay, i ? phone[i - 1] : -1,
                                 &phone[i]);
    run_on(cpus - 1);
    for (uint32_t n = 0; n < ROUNDS; n++) {
        struct ipc_call call = { .method = M_RELAY,
                                 .arg = { n % RELAYS, n, 7 } };
        check(ipc_request(phone[RELAYS - 1], &call) == (int)n + 7);
    }
    for (int i = 0; i < RELAYS; i++) {
        stop(server[i]);
        close(phone[i]);
    }
    ok("forwarded calls are answered to the first caller");
}

// Writes `size` bytes and reads them back.
static void echo(int phone, unsigned char *out, unsigned char *in, size_t size)
{
    for (size_t i = 0; i < size; i++)
        out[i] = (unsigned char)((i + size) * 31 >> 3);
    memset(in, 0, size);
    check(ipc_write(phone, out, size, NULL) == (int)size);
    check(ipc_read(phone, in, size, NULL) == (int)size);
    check(memcmp(in, out, size) == 0);
}

void test_data(void)
{
    static const size_t sizes[] = { 0,     1,       127,         128,
                                    129,   4095,    4096,        4097,
                                    65536, 1000000, IPC_DATA_MAX };
    unsigned char *out = malloc(IPC_DATA_MAX + 4096);
    unsigned char *in = malloc(IPC_DATA_MAX + 4096);
    int phone;
    pid_t server = start_server(cpus - 1, serve_plainly, 0, &phone);

    check(out && in);
    run_on(0);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        echo(phone, out + i, in + 3 * i, sizes[i]);
    // A transfer that exceeds the limit is truncated to the limit.
    check(ipc_read(phone, in, IPC_DATA_MAX + 1, NULL) == IPC_DATA_MAX);
    check(ipc_read(phone, (void *)16, 64, NULL) == -1 && errno == EFAULT);
    add(phone, 1, 2);
    stop(server);
    close(phone);
    free(out);
    free(in);
    ok("data both ways, from 0 bytes to 1 MiB");
}

// Uses the timer's interrupts, which occur in any case.
void test_notifications(void)
{
    struct ipc_call call;
    int box = ipc_box();
    struct pollfd wait = { .fd = box, .events = POLLIN };
    uint64_t total = 0;

    check(box >= 0);
    check(ipc_irq(box, 31, true) == -1 && errno == EINVAL);
    check(ipc_irq(box, 0xdf, true) == -1 && errno == ENXIO);
    check(ipc_irq(box, TIMER_VECTOR, true) == 0);
    check(ipc_irq(box, TIMER_VECTOR, true) == -1 && errno == EBUSY);
    for (int i = 0; i < 10; i++) {
        run_on(i % cpus);
        usleep(3000); // ends with a timer interrupt
        check(poll(&wait, 1, 5000) == 1 && wait.revents == POLLIN);
        check(ipc_wait(box, &call, 0) == 0);
        check(call.method == IPC_M_IRQ && call.id == 0);
        check(call.arg[0] == TIMER_VECTOR && call.arg[1] == TIMER_VECTOR);
        check(call.arg[2] > 0 && call.arg[3] < (uint32_t)cpus);
        total += call.arg[2];
    }
    check(total >= 10);
    check(ipc_answer(box, call.id, 0) == -1 && errno == ENOENT);
    check(ipc_irq(box, TIMER_VECTOR, false) == 0);
    check(ipc_irq(box, TIMER_VECTOR, false) == -1 && errno == ENOENT);
    close(box);
    ok("interrupts become calls");
}

static void serve_name(int number)
{
    char name[IPC_NAME_MAX];
    int ns = ns_phone();

    check(ns >= 0);
    snprintf(name, sizeof(name), "ipctest.%d", number);
    check(ns_register(ns, name) == 0);
    check(ns_register(ns, name) == -1 && errno == EEXIST);
    serve_plainly(0);
}

void test_names(void)
{
    int ns = ns_phone(), direct[2], named[2];
    pid_t server[2];

    check(ns >= 0);
    check(ns_connect(ns, "ipctest.none", false) == -1 && errno == ENOENT);
    for (int i = 0; i < 2; i++)
        server[i] = start_server(i % cpus, serve_name, i, &direct[i]);
    named[0] = ns_connect(ns, "ipctest.0", true);
    named[1] = ns_connect(ns, "ipctest.1", true);
    for (int i = 0; i < 2; i++) {
        check(named[i] >= 0);
        add(named[i], 20, i);
    }
    stop(server[0]);
    check(ipc_request(named[0], &(struct ipc_call){ .method = M_ADD }) == -1);
    check(errno == ECONNRESET);
    // ns is notified asynchronously.
    while ((errno = 0, close(ns_connect(ns, "ipctest.0", false))) == 0)
        usleep(1000);
    add(named[1], 1, 1);
    stop(server[1]);
    for (int i = 0; i < 2; i++) {
        close(named[i]);
        close(direct[i]);
    }
    close(ns);
    ok("servers by name");
}
