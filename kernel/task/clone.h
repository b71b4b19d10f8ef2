// The flags of clone, as Linux/i386 defines them.
#pragma once

#include "lib/types.h"

#define CSIGNAL 0xffu
#define CLONE_VM 0x100u
#define CLONE_FS 0x200u
#define CLONE_FILES 0x400u
#define CLONE_SIGHAND 0x800u
#define CLONE_PTRACE 0x2000u
#define CLONE_VFORK 0x4000u
#define CLONE_PARENT 0x8000u
#define CLONE_THREAD 0x10000u
#define CLONE_SYSVSEM 0x40000u
#define CLONE_SETTLS 0x80000u
#define CLONE_PARENT_SETTID 0x100000u
#define CLONE_CHILD_CLEARTID 0x200000u
#define CLONE_DETACHED 0x400000u
#define CLONE_UNTRACED 0x800000u
#define CLONE_CHILD_SETTID 0x1000000u
#define CLONE_IO 0x80000000u
