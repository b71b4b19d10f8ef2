// Arcs: pairs of caller and function that are not in their first place of the
// table. Linear probing; one place always stays free.
//
// On their own CPU, with interrupts off.
#include "arch/cpu.h"
#include "kernel/trace/calls.h"

// As in stubs.S: in bytes from the table's begin.
static u32 arc_place(const struct call_cpu *c, u32 to, u32 from)
{
    return (to + 4 * from) << 2 & c->arc_mask;
}

void call_trace_slow_arc(u32 to, u32 from)
{
    struct call_cpu *c = &this_cpu()->calls;
    u32 place = arc_place(c, to, from);
    for (;;) {
        struct call_arc *a = (struct call_arc *)((char *)c->arcs + place);
        if (!a->from) {
            if (c->arcs_used == c->most) {
                c->overflow++;
                return;
            }
            c->arcs_used++;
            *a = (struct call_arc){ .from = from, .to = to };
        }
        if (a->from == from && a->to == to) {
            a->count++;
            return;
        }
        place = (place + sizeof(*a)) & c->arc_mask;
    }
}
