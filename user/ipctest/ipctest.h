// Declarations shared by the parts of ipctest.
#pragma once

#include "user/libstrobe/ipc.h"

#include <sys/types.h>

#define M_ADD IPC_M_USER         // returns arg[1] + arg[2]
#define M_RELAY (IPC_M_USER + 1) // forwarded arg[0] times, then as M_ADD

extern int cpus; // number of CPUs that this program may use

// Reports a failed check with its place, and ends the program with status 1.
_Noreturn void broken(const char *file, int line, const char *what);
#define check(condition)                            \
    do {                                            \
        if (!(condition))                           \
            broken(__FILE__, __LINE__, #condition); \
    } while (0)

void run_on(int cpu);
// Forks a child that runs serve(argument) on a CPU. `phone` is set to a phone
// to it.
pid_t start_server(int cpu, void (*serve)(int argument), int argument,
                   int *phone);
void stop(pid_t pid);

// Answers M_ADD and the data methods until killed.
void serve_plainly(int unused);
// Forwards M_RELAY to the phone `next`.
void serve_relay(int next);

void test_calls(void);
void test_forwards(void);
void test_data(void);
void test_notifications(void);
void test_names(void);
void benchmark(void);
