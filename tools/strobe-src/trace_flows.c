#include "trace_flows.h"

#include "user/libstrobe/strobe.h"

#include <stdlib.h>
#include <string.h>

static struct trace_flow *flow_of(struct trace_flows *f, uint32_t address)
{
    for (size_t i = 0; i < f->count; i++) {
        if (f->all[i].address == address)
            return &f->all[i];
    }
    struct trace_flow *more = realloc(f->all, (f->count + 1) * sizeof(*f->all));
    if (!more)
        fail(1, "not enough memory for the export");
    f->all = more;
    more[f->count] = (struct trace_flow){ .address = address };
    return &more[f->count++];
}

uint64_t trace_flow(struct trace_flows *f, const struct trace_event *e,
                    bool *ends)
{
    uint32_t address;

    *ends = e->type == TRACE_ipc_answer;
    if (e->type != TRACE_ipc_call && e->type != TRACE_ipc_take &&
        e->type != TRACE_ipc_forward && !*ends)
        return 0;
    memcpy(&address, e->fields, sizeof(address)); // all begin with it
    struct trace_flow *flow = flow_of(f, address);
    if (e->type == TRACE_ipc_call)
        flow->number = ++f->calls;
    uint64_t number = flow->number;
    if (*ends)
        flow->number = 0;
    return number;
}

void trace_flows_free(struct trace_flows *f)
{
    free(f->all);
}
