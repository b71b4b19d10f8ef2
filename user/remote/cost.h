// What sending costs this machine.
#pragma once

#include <stdint.h>

struct cost {
    uint64_t program_ns; // CPU time of this process
    uint64_t net_ns;     // of the network's thread
};

// The costs since the machine's start.
void cost_read(struct cost *c);
