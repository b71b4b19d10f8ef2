// Static branches: a test that costs a NOP while it is false.
//
//     static struct branch watched;
//     if (branch_on(&watched)) ...           in any number of places
//     branch_set(&watched, true);            patches all of them
//
// A branch counts its users: it is on while there are more calls of
// branch_set(true) than of branch_set(false).
#pragma once

#include "arch/text.h"
#include "lib/types.h"

struct branch {
    u32 users;
};

// `b` is the address of a static variable. Any context but NMI.
static ALWAYS_INLINE bool branch_on(const struct branch *b)
{
    TEXT_BRANCH(b, on);
    return false;
on:
    return true;
}

// Adds or removes a user. Returns when all CPUs see it. Thread context without
// spin locks, may sleep; or before the scheduler and the other CPUs run.
// (kernel/trace/patch.c)
UPCALL void branch_set(struct branch *b, bool on);
