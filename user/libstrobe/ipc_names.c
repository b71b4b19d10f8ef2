// The client's side of the naming service (user/ns).
#include "ipc.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/wait.h>

#define NS_PROGRAM "/bin/ns"
#define START_TRIES 100
#define START_PAUSE_NS 20000000 // at most 2 s in all

// Starts the service as a daemon, which init adopts. If two are started
// concurrently, one of them exits.
static void start(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        if (fork() == 0) {
            setsid();
            (void)!chdir("/");
            for (int fd = 0; fd < 1024; fd++)
                close(fd);
            execl(NS_PROGRAM, NS_PROGRAM, (char *)NULL);
        }
        _exit(0);
    }
    if (pid > 0)
        waitpid(pid, NULL, 0);
}

int ns_phone(void)
{
    struct timespec pause = { .tv_nsec = START_PAUSE_NS };
    int phone = ipc_connect(0);

    for (int i = 0; phone < 0 && errno == ENOENT && i < START_TRIES; i++) {
        if (i == 0)
            start();
        nanosleep(&pause, NULL);
        phone = ipc_connect(0);
    }
    return phone;
}

bool ns_pack(struct ipc_call *call, const char *name)
{
    char words[IPC_NAME_MAX] = { 0 };
    size_t size = strlen(name);

    if (size == 0 || size > IPC_NAME_MAX) {
        errno = EINVAL;
        return false;
    }
    memcpy(words, name, size);
    memcpy(call->arg + 2, words, sizeof(words));
    return true;
}

void ns_unpack(const struct ipc_call *call, char name[IPC_NAME_MAX + 1])
{
    memcpy(name, call->arg + 2, IPC_NAME_MAX);
    name[IPC_NAME_MAX] = '\0';
}

int ns_register(int ns, const char *name)
{
    struct ipc_call call = { .method = IPC_M_CONNECT_TO_ME };

    return ns_pack(&call, name) ? ipc_request(ns, &call) : -1;
}

int ns_connect(int ns, const char *name, bool wait)
{
    struct ipc_call call = { .method = IPC_M_CONNECT_ME_TO,
                             .arg = { wait ? IPC_NS_WAIT : 0 } };

    return ns_pack(&call, name) ? ipc_request(ns, &call) : -1;
}
