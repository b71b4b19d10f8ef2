// One request through all layers, for a trace (docs/trace.md, "A request"): a
// client finds a service by its name, the service forwards the client's call,
// and who gets it answers after the next interrupt.
//
//     ipc_flow [VECTOR]      (0xe0, of the timer)
#include "ipc.h"

#define M_NEXT (IPC_M_USER + 10) // retval: the next interrupt's vector
#define SERVICE "next-irq"
#define DEVICE "device"

static void become(const char *name)
{
    check(ns_register(ns_phone(), name) == 0);
}

// Holds one call at a time, until the interrupt comes.
static void serve_device(uint32_t vector)
{
    struct ipc_call call;
    uint32_t held = 0;
    int box = ipc_box();

    become(DEVICE);
    for (;;) {
        check(ipc_wait(box, &call, -1) == 0);
        if (call.method == M_NEXT) {
            held = call.id;
            check(ipc_irq(box, vector, true) == 0);
        } else if (call.method == IPC_M_IRQ && held) {
            check(ipc_irq(box, vector, false) == 0);
            check(ipc_answer(box, held, (int32_t)call.arg[1]) == 0);
            held = 0;
        } else if (call.id) {
            ipc_answer(box, call.id, -EINVAL);
        }
    }
}

static void serve_name(uint32_t unused)
{
    struct ipc_call call;
    int box = ipc_box(), device = ns_connect(ns_phone(), DEVICE, true);

    (void)unused;
    check(device >= 0);
    become(SERVICE);
    for (;;) {
        check(ipc_wait(box, &call, -1) == 0);
        if (call.method == M_NEXT)
            check(ipc_forward(box, call.id, device, NULL) == 0);
        else if (call.id)
            ipc_answer(box, call.id, -EINVAL);
    }
}

static pid_t start(void (*serve)(uint32_t), uint32_t vector)
{
    pid_t pid = fork();

    check(pid >= 0);
    if (pid == 0)
        serve(vector);
    return pid;
}

int main(int argc, char **argv)
{
    uint32_t vector = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 0xe0;

    skip_elsewhere();
    pid_t device = start(serve_device, vector), name = start(serve_name, 0);
    int phone = ns_connect(ns_phone(), SERVICE, true);
    check(phone >= 0);
    for (int i = 0; i < 3; i++)
        check(ask(phone, M_NEXT) == (int)vector);
    end_server(name);
    end_server(device);
    ok("a client, two servers and an interrupt");
    return 0;
}
