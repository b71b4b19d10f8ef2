// The network: one card, and lwIP above it.
#pragma once

#include "kernel/sync/mutex.h"

// Guards lwIP, whose functions are called with it held, and all sockets. User
// memory is not touched under it.
extern struct mutex net_lock;

// If net= asks for it, starts a thread that starts the card and serves it.
void net_start(void);
// net_lock: makes lwIP ready, once; then 127.0.0.1 can be used.
void net_stack_start(void);
// net_lock: delivers what was sent to this machine itself.
void net_deliver_own(void);
