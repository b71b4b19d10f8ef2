// Counts the samples with an incomplete call chain.
#include "samples.h"

struct samples_cut samples_cut(const struct samples *s)
{
    struct samples_cut cut = { 0 };
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t marks = s->chains.nodes[s->counts[i].chain].marks;
        uint64_t n = s->counts[i].samples;
        cut.any += marks != 0 ? n : 0;
        cut.deep += marks >> CHAIN_DEEP & 1 ? n : 0;
        cut.unreadable += marks >> CHAIN_UNREADABLE & 1 ? n : 0;
        cut.broken += marks >> CHAIN_BROKEN & 1 ? n : 0;
        cut.beyond_copy += marks >> CHAIN_SHORT & 1 ? n : 0;
    }
    return cut;
}
