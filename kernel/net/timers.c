// lwIP's periodic timers (lwip/timeouts.h), under net_lock. lwIP's own allocate
// memory for each period, and take it for a broken invariant that there is
// none.
#include "lib/assert.h"

#include <lwip/timeouts.h>

#define TIMERS_MAX 8 // lwIP has 3 with these options

static u32 due[TIMERS_MAX]; // sys_now()

void sys_timeouts_init(void)
{
    assert(lwip_num_cyclic_timers <= TIMERS_MAX);
    for (int i = 0; i < lwip_num_cyclic_timers; i++)
        due[i] = sys_now() + lwip_cyclic_timers[i].interval_ms;
}

// Periods that have passed by are left out.
void sys_check_timeouts(void)
{
    u32 now = sys_now();
    for (int i = 0; i < lwip_num_cyclic_timers; i++) {
        const struct lwip_cyclic_timer *timer = &lwip_cyclic_timers[i];
        if ((s32)(now - due[i]) < 0)
            continue;
        due[i] += timer->interval_ms;
        if ((s32)(now - due[i]) >= 0)
            due[i] = now + timer->interval_ms;
        timer->handler();
    }
}

u32 sys_timeouts_sleeptime(void)
{
    u32 now = sys_now(), least = ~0u;
    for (int i = 0; i < lwip_num_cyclic_timers; i++) {
        u32 left = (s32)(due[i] - now) > 0 ? due[i] - now : 0;
        least = MIN(least, left);
    }
    return least;
}
