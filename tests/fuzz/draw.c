// Reproducible numbers (SplitMix64).
#include "fuzz.h"

struct draw draw_of(uint64_t seed, uint64_t stream)
{
    struct draw d = { seed * 0x9e3779b97f4a7c15ull ^
                      (stream + 1) * 0xd1b54a32d192ed03ull };
    draw_word(&d);
    return d;
}

uint32_t draw_word(struct draw *d)
{
    uint64_t z = d->state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (uint32_t)(z >> 32 ^ z);
}

uint32_t draw_below(struct draw *d, uint32_t n)
{
    return (uint32_t)((uint64_t)draw_word(d) * n >> 32);
}
