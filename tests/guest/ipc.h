// Shared by the ipc tests: a server. Only Strobe has these system calls.
#pragma once

#include "test.h"

#include "user/libstrobe/ipc.h"

#define M_ECHO IPC_M_USER       // retval is arg[0]; returns the arguments
#define M_HOLD (IPC_M_USER + 1) // answered by the next M_RELEASE, with 7
#define M_RELEASE (IPC_M_USER + 2)
#define M_HANGUPS (IPC_M_USER + 3) // how many phones have hung up

static inline void skip_elsewhere(void)
{
    int box = ipc_box();
    if (box < 0 && errno == ENOSYS) {
        ok("(nothing: this is not Strobe)");
        exit(0);
    }
    check(close(box) == 0);
}

// Serves until it is killed.
static inline void serve(int box)
{
    struct ipc_call call = { 0 };
    uint32_t held[64];
    int holds = 0, hangups = 0;

    for (;;) {
        check(ipc_answer_next(box, &call) == 0);
        call.retval = 0;
        if (call.method == M_ECHO) {
            call.retval = (int32_t)call.arg[0];
        } else if (call.method == M_HOLD) {
            held[holds++ % 64] = call.id;
            call.id = 0;
        } else if (call.method == M_RELEASE) {
            for (int i = 0; i < holds; i++)
                ipc_answer(box, held[i % 64], 7);
            holds = 0;
        } else if (call.method == M_HANGUPS) {
            call.retval = hangups;
        } else if (call.method == IPC_M_PHONE_HANGUP) {
            check(call.id == 0);
            hangups++;
        } else {
            call.retval = -EINVAL;
        }
    }
}

static inline pid_t start_server(void)
{
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        int box = ipc_box();
        check(box >= 0);
        serve(box);
    }
    return pid;
}

static inline void end_server(pid_t pid)
{
    int status;
    check(kill(pid, SIGKILL) == 0);
    check(waitpid(pid, &status, 0) == pid && killed_by(status, SIGKILL));
}

static inline int echo(int phone, int32_t value)
{
    struct ipc_call call = { .method = M_ECHO, .arg = { (uint32_t)value } };
    return ipc_request(phone, &call);
}

static inline int ask(int phone, uint32_t method)
{
    struct ipc_call call = { .method = method };
    return ipc_request(phone, &call);
}
