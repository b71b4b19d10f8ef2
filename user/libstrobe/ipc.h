// Messages between tasks, as C functions; see <strobe/ipc.h> and docs/ipc.md.
//
// Functions return -1 and set errno when the call itself fails. The other
// side's result is in call->retval. Functions that return this result
// (ipc_request and those after it) convert a negative one into -1 and errno.
//
// ipc_call and ipc_wait are declared in strobe.h.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "strobe.h"

#include <strobe/ipc.h>

// ---- clients

int ipc_connect(uint32_t task); // returns a phone: a descriptor
int ipc_hangup(int phone);      // for all tasks that share the phone
// Sends a call and waits for its answer, restarting after signals. The answer
// is in call->retval and call->arg; call->retval is also the result.
int ipc_request(int phone, struct ipc_call *call);
// Read data from the server, or write data to it. Four words (or NULL) specify
// which data. Return the number of bytes.
int ipc_read(int phone, void *buf, size_t size, const uint32_t words[4]);
int ipc_write(int phone, const void *buf, size_t size, const uint32_t words[4]);

// ---- servers

int ipc_box(void); // the task's own answerbox: a descriptor
int ipc_answer(int box, uint32_t id, int32_t retval);
int ipc_answer_call(int box, struct ipc_call *answer);
// Answers a call (unless answer->id is 0), waits for the next call and stores
// it in *answer. Restarts after signals. Returns -1 when the box no longer
// exists. A failure to answer is not reported.
int ipc_answer_next(int box, struct ipc_call *answer);
// Forwards a call; `changed` NULL: with its arguments unchanged.
int ipc_forward(int box, uint32_t id, int phone, struct ipc_call *changed);
// Enables or disables delivery of the interrupts of an ISA line (below 16) or a
// vector as calls IPC_M_IRQ.
int ipc_irq(int box, uint32_t irq, bool on);

// ---- names (ipc_names.c)

// Returns a phone to the naming service, which is started if it is not running.
int ns_phone(void);
// Encode a service's name in the words of a call, and decode it. ns_pack
// returns false if the name is empty or longer than IPC_NAME_MAX.
bool ns_pack(struct ipc_call *call, const char *name);
void ns_unpack(const struct ipc_call *call, char name[IPC_NAME_MAX + 1]);
// Registers the calling task until the phone `ns` is closed. EEXIST.
int ns_register(int ns, const char *name);
// Returns a phone to a service. ENOENT if it is not registered; with `wait`,
// waits until it is.
int ns_connect(int ns, const char *name, bool wait);
