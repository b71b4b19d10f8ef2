// Which of the NMIs that a CPU takes were sent by another CPU, and how many
// ticks each accounts for.
//
// The sender counts a tick, then sends its NMI. An NMI that is handled late may
// find later ticks counted already. Their NMIs then account for none: one may
// be pending, and one not be sent yet; all others have merged into the pending
// one (Intel SDM 3, 6.7.1). Each NMI that finds a tick of another one leaves
// that other one's for later, so their number goes on from one to the next.
//
// Pure arithmetic on one CPU's state: no locks; NMI-safe.
#pragma once

#include "lib/types.h"

#define NMIS_AHEAD_MAX 2u // pending, and not sent yet

struct sent_nmis {
    u32 seen;  // of the sender's count
    u32 ahead; // NMIs that may come, although their ticks are accounted for
};

// The sender has counted `sent` ticks. False: the NMI is none of the sender's;
// then *ticks is 0, as for one whose ticks are accounted for.
static inline bool sent_nmis_take(struct sent_nmis *n, u32 sent, u32 *ticks)
{
    *ticks = sent - n->seen;
    u32 with_this = n->ahead + *ticks;
    n->seen = sent;
    n->ahead = with_this ? MIN(with_this - 1, NMIS_AHEAD_MAX) : 0;
    return with_this > 0;
}
