// Stack canaries (kernel/debug/canary.c).
#pragma once

// Sets the guard to a random number, once, at start-up, from a function that
// does not return.
void canary_init(void);

// Read by compiled code, in any context. Written once, before there is a second
// CPU or thread.
extern unsigned long __stack_chk_guard;
#define CANARY_AT_START 0x5aa5c300u
// A string ends in this byte of the guard, so one that is copied without a
// bound does not match it (a terminator canary).
#define CANARY_TERMINATOR 0xffu
