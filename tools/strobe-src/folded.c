// Collapsed stacks (B. Gregg's stackcollapse format), for flamegraph.pl,
// inferno and speedscope. As in that format, kernel functions end in _[k],
// inlined functions in _[i]. The numbers are the time in ns, or events.
#include "export.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SIZE 512

// A semicolon would separate frames, a newline stacks.
static void put_name(FILE *out, const char *name)
{
    char safe[NAME_SIZE];

    snprintf(safe, sizeof(safe), "%s", name);
    for (char *c = printable(safe); *c != '\0'; c++)
        fputc(*c == ';' ? ':' : *c, out);
}

void folded_frame(const struct export *e, uint32_t chain)
{
    const struct chain_node *n = &e->profile->samples.chains.nodes[chain];
    const struct inlined *inlined =
        inlines_find(&e->profile->inlines, n->place);
    char name[NAME_SIZE];

    if (inlined) {
        put_name(e->out, inlined->name);
        fputs("_[i]", e->out);
        return;
    }
    frame_name(name, sizeof(name), e, e->view->row_of[chain]);
    put_name(e->out, name);
    if (n->place.image == IMAGE_KERNEL)
        fputs("_[k]", e->out);
}

void folded_stack(const struct export *e, uint32_t chain)
{
    if (chain == CHAIN_ROOT)
        return;
    // depth: chain length
    folded_stack(e, e->profile->samples.chains.nodes[chain].parent);
    fputc(';', e->out);
    folded_frame(e, chain);
}

void export_folded(struct export *e)
{
    const struct samples *s = &e->profile->samples;

    for (uint32_t i = 0; i < s->count; i++) {
        const struct sample_count *c = &s->counts[i];
        if (!view_passes(c, e->filter))
            continue;
        put_name(e->out,
                 c->mode == MODE_IDLE
                     ? IDLE_FRAME
                     : profile_program_name(e->profile, c->task, c->program));
        folded_stack(e, c->chain);
        fprintf(e->out, " %" PRIu64 "\n", c->period);
    }
}
