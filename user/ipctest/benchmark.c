// Measures the cost of messages. The TSC counts two for each instruction (see
// bench).
#include "ipctest.h"

#include <string.h>
#include <unistd.h>

#define WARM_UP 50
#define ROUNDS 500

static uint64_t rdtsc(void)
{
    uint64_t t;
    __asm__ volatile("rdtsc" : "=A"(t));
    return t;
}

static void measure(const char *name, void (*once)(int phone), int phone)
{
    uint64_t began = 0;

    for (int i = -WARM_UP; i < ROUNDS; i++) {
        if (i == 0)
            began = rdtsc();
        once(phone);
    }
    printf("%s %llu\n", name,
           (unsigned long long)(rdtsc() - began) / 2 / ROUNDS);
}

// Without the C library, in the same way as bench measures the pipe.
static void round_trip(int phone)
{
    static struct ipc_call call = { .method = M_ADD, .arg = { 0, 1, 2 } };
    int result;

    call.flags = IPC_F_WAIT;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "0"(SYS_ipc_call), "b"(phone), "c"(&call)
                     : "memory");
    check(result == 0);
}

static void async_trip(int phone)
{
    struct ipc_call call = { .method = M_ADD, .arg = { 0, 1, 2 } };
    check(ipc_call(phone, &call) == 0 && ipc_wait(phone, &call, -1) == 0);
}

static void batch(int phone)
{
    struct ipc_call call;

    for (uint32_t i = 0; i < 16; i++) {
        call = (struct ipc_call){ .method = M_ADD, .arg = { 0, i } };
        check(ipc_call(phone, &call) == 0);
    }
    for (uint32_t i = 0; i < 16; i++)
        check(ipc_wait(phone, &call, -1) == 0);
}

static void read_page(int phone)
{
    static char page[4096];
    check(ipc_read(phone, page, sizeof(page), NULL) == sizeof(page));
}

static void relay(int phone)
{
    struct ipc_call call = { .method = M_RELAY, .arg = { 1, 2, 3 } };
    check(ipc_request(phone, &call) == 5);
}

void benchmark(void)
{
    int phone, next, relayed;
    pid_t server = start_server(cpus - 1, serve_plainly, 0, &phone);
    pid_t last = start_server(cpus - 1, serve_relay, -1, &next);
    pid_t first = start_server(cpus - 1, serve_relay, next, &relayed);

    measure("ipc-round-trip", round_trip, phone);
    measure("ipc-call-wait", async_trip, phone);
    measure("ipc-sixteen-calls", batch, phone);
    measure("ipc-read-page", read_page, phone);
    measure("ipc-forwarded", relay, relayed);
    stop(first);
    stop(last);
    stop(server);
}
