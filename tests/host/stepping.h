// Does something after the n-th instruction of a function: it runs with the
// trap flag (Intel SDM 3, 17.3.1.4), as under a debugger. x86 only.
#pragma once

#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#include "lib/types.h"

#define TRAP_FLAG 0x100

static struct {
    u32 left; // instructions before `at`
    bool happened;
    void (*at)(void); // NULL: the function ends there, as if killed
    sigjmp_buf end;
} stepping;

static void stepped(int signal UNUSED, siginfo_t *info UNUSED, void *context)
{
    ucontext_t *c = context;
    if (stepping.left--)
        return;
    c->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    stepping.happened = true;
    if (!stepping.at)
        siglongjmp(stepping.end, 1);
    stepping.at();
}

// Sets the trap flag, with this frame's red zone left alone (System V ABI for
// x86-64, 3.2.2).
#ifdef __x86_64__
#define SET_TRAP_FLAG                                                   \
    __asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; orl %0, (%%rsp);" \
                     "popfq; lea 128(%%rsp), %%rsp" ::"i"(TRAP_FLAG)    \
                     : "cc", "memory")
#define CLEAR_TRAP_FLAG                                                  \
    __asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; andl %0, (%%rsp);" \
                     "popfq; lea 128(%%rsp), %%rsp" ::"i"(~TRAP_FLAG)    \
                     : "cc", "memory")
#else
#define SET_TRAP_FLAG                                                  \
    __asm__ volatile("pushfl; orl %0, (%%esp); popfl" ::"i"(TRAP_FLAG) \
                     : "cc", "memory")
#define CLEAR_TRAP_FLAG                                                  \
    __asm__ volatile("pushfl; andl %0, (%%esp); popfl" ::"i"(~TRAP_FLAG) \
                     : "cc", "memory")
#endif

// Calls fn, and `at` after its n-th instruction; or ends it there. False: it
// ended before.
static inline bool step_into(void (*fn)(void), u32 n, void (*at)(void))
{
    struct sigaction action = { .sa_sigaction = stepped,
                                .sa_flags = SA_SIGINFO | SA_NODEFER };
    sigaction(SIGTRAP, &action, NULL);
    stepping.left = n;
    stepping.at = at;
    stepping.happened = false;
    if (sigsetjmp(stepping.end, 1) == 0) {
        SET_TRAP_FLAG;
        fn();
        CLEAR_TRAP_FLAG;
    }
    return stepping.happened;
}
