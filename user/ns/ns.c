// ns: the naming service, where servers register names and clients find them
//
// A server calls IPC_M_CONNECT_TO_ME with a name, and ns gets a phone to it. A
// client calls IPC_M_CONNECT_ME_TO with the name and gets a phone to the same
// box. A name is removed when the phone it was registered over is hung up,
// which also happens when the server ends. Programs start ns on first use
// (ns_phone).
#include "user/libstrobe/ipc.h"
#include "user/libstrobe/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAMES_MAX 256   // services
#define WAITING_MAX 128 // waiting clients; below the limit of the box

static const struct tool tool = {
    .usage = "ns",
    .notes = "Serves names until it is killed; programs start it on "
             "demand\n",
    .options = (const struct tool_option[]){ { 0 } },
    .no_operands = "ns takes no names; programs register theirs",
};

struct service {
    char name[IPC_NAME_MAX + 1]; // "": unused
    uint32_t over;               // the phone that it was registered over
    int phone;                   // phone to the service
};

struct client {
    char name[IPC_NAME_MAX + 1];
    uint32_t call, over; // call id (0: unused), and the client's phone
};

static struct service services[NAMES_MAX];
static struct client clients[WAITING_MAX];
static int box;

static struct service *find(const char *name)
{
    for (int i = 0; i < NAMES_MAX; i++) {
        if (strcmp(services[i].name, name) == 0)
            return &services[i];
    }
    return NULL;
}

// Answers the client with a connection. If the client has ended, the answer is
// discarded.
static int connect_client(uint32_t call, const struct service *s)
{
    struct ipc_call answer = { .id = call, .arg = { (uint32_t)s->phone } };

    return ipc_answer_call(box, &answer);
}

static void connect_waiting(const struct service *s)
{
    for (int i = 0; i < WAITING_MAX; i++) {
        if (clients[i].call == 0 || strcmp(clients[i].name, s->name) != 0)
            continue;
        connect_client(clients[i].call, s);
        clients[i].call = 0;
    }
}

static void enter(const struct ipc_call *call)
{
    struct service *s = find("");
    char name[IPC_NAME_MAX + 1];
    int phone;

    ns_unpack(call, name);
    if (name[0] == '\0' || !s || find(name)) {
        ipc_answer(box, call->id,
                   name[0] == '\0' ? -EINVAL
                   : !s            ? -ENOSPC
                                   : -EEXIST);
        return;
    }
    phone = ipc_answer(box, call->id, 0);
    if (phone < 0)
        return;
    memcpy(s->name, name, sizeof(name));
    s->phone = phone;
    s->over = call->phone;
    connect_waiting(s);
}

static void keep_waiting(const struct ipc_call *call, const char *name)
{
    for (int i = 0; i < WAITING_MAX; i++) {
        if (clients[i].call != 0)
            continue;
        memcpy(clients[i].name, name, sizeof(clients[i].name));
        clients[i].call = call->id;
        clients[i].over = call->phone;
        return;
    }
    ipc_answer(box, call->id, -EAGAIN);
}

static void look_up(const struct ipc_call *call)
{
    char name[IPC_NAME_MAX + 1];
    const struct service *s;

    ns_unpack(call, name);
    s = name[0] != '\0' ? find(name) : NULL;
    if (s)
        connect_client(call->id, s);
    else if (call->arg[0] & IPC_NS_WAIT)
        keep_waiting(call, name);
    else
        ipc_answer(box, call->id, -ENOENT);
}

static void forget(uint32_t over)
{
    for (int i = 0; i < NAMES_MAX; i++) {
        if (services[i].name[0] == '\0' || services[i].over != over)
            continue;
        close(services[i].phone);
        services[i].name[0] = '\0';
    }
    for (int i = 0; i < WAITING_MAX; i++) {
        if (clients[i].call == 0 || clients[i].over != over)
            continue;
        ipc_answer(box, clients[i].call, -ENOENT); // the client has hung up
        clients[i].call = 0;
    }
}

static void serve(const struct ipc_call *call)
{
    switch (call->method) {
    case IPC_M_CONNECT_TO_ME:
        enter(call);
        break;
    case IPC_M_CONNECT_ME_TO:
        look_up(call);
        break;
    case IPC_M_PHONE_HANGUP:
        forget(call->phone);
        break;
    default:
        ipc_answer(box, call->id, -EINVAL);
    }
}

int main(int argc, char **argv)
{
    struct ipc_call call;

    options_parse(&tool, argc, argv);
    box = syscall(SYS_ipc_box, IPC_BOX_NAMING);
    if (box < 0 && errno == EBUSY)
        fail(1, "a naming service is already running");
    if (box < 0)
        fail(1, "no answerbox: %s", strerror(errno));
    for (;;) {
        if (ipc_wait(box, &call, -1) == 0)
            serve(&call);
        else if (errno != EINTR)
            fail(1, "%s", strerror(errno));
    }
}
