// Models of interval timer chips, written from the data sheets (Intel 231164,
// the 8254, and 231306, the 8253) and, for v86's, from what it was seen to do.
// Each access to a port takes a tick of the counters' clock.
#pragma once

#include "lib/types.h"

enum pit_kind { PIT_8254, PIT_8253, PIT_V86, PIT_ABSENT, PIT_NOISE };

void pit_model_init(enum pit_kind kind);
u8 pit_model_read(u16 port);
void pit_model_write(u16 port, u8 value);
// Time in ticks; lets time pass; the time of the last latch.
u64 pit_model_time(void);
void pit_model_pass(u64 ticks);
u64 pit_model_latched_at(void);
