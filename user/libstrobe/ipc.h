// Messages between tasks, as C functions; see <strobe/ipc.h> and docs/ipc.md.
//
// Functions return -1 and set errno when the call itself fails. What the other
// side answers is in call->retval; the functions that only hand on an answer
// (ipc_request and below) turn an answer below 0 into -1 and errno.
//
// ipc_call and ipc_wait are declared in strobe.h.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "strobe.h"

#include <strobe/ipc.h>

// ---- clients

int ipc_connect(uint32_t task); // a phone: a descriptor
int ipc_hangup(int phone);      // for all who share it
// Sends a call and waits for its answer, through interruptions by signals.
// call->retval, call->arg are the answer; also the result.
int ipc_request(int phone, struct ipc_call *call);
// Ask the server for data, or give it some. Four words say which. Bytes.
int ipc_read(int phone, void *buf, size_t size, const uint32_t words[4]);
int ipc_write(int phone, const void *buf, size_t size, const uint32_t words[4]);

// ---- servers

int ipc_box(void); // the own answerbox: a descriptor
int ipc_answer(int box, uint32_t id, int32_t retval);
int ipc_answer_call(int box, struct ipc_call *answer);
// Answers (unless answer->id is 0) and waits for the next call, which takes the
// answer's place. Goes on after signals. -1 when there is no box any more; an
// answer that fails is not told.
int ipc_answer_next(int box, struct ipc_call *answer);
// `changed` NULL: as it is.
int ipc_forward(int box, uint32_t id, int phone, struct ipc_call *changed);
// Interrupts of an ISA line (below 16) or a vector become calls IPC_M_IRQ.
int ipc_irq(int box, uint32_t irq, bool on);

// ---- names (ipc_names.c)

// A phone to the naming service, which is started if there is none.
int ns_phone(void);
// Puts a service's name into the words of a call, and takes it out. false: it
// is empty or longer than IPC_NAME_MAX.
bool ns_pack(struct ipc_call *call, const char *name);
void ns_unpack(const struct ipc_call *call, char name[IPC_NAME_MAX + 1]);
// Registers the own task until the phone `ns` is closed. EEXIST.
int ns_register(int ns, const char *name);
// A phone to a service. ENOENT; with `wait`, waits until it is registered.
int ns_connect(int ns, const char *name, bool wait);
