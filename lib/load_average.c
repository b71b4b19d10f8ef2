// Load averages: see load_average.h.
#include "load_average.h"

#include "lib/assert.h"

// C = e^(-5/60), e^(-5/300), e^(-5/900), each times LOAD_ONE.
static const u32 decay[LOAD_AVERAGES] = { 60296, 64453, 65173 };

u32 load_average(unsigned which, u32 old, u32 runnable)
{
    assert(which < LOAD_AVERAGES && runnable < 65536);
    u64 c = decay[which];
    u64 sum = old * c + (u64)runnable * LOAD_ONE * (LOAD_ONE - c);

    return (u32)((sum + LOAD_ONE / 2) / LOAD_ONE);
}
