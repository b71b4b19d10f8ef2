// Collapsed stacks (B. Gregg's stackcollapse format), for flamegraph.pl,
// inferno and speedscope. As in that format, kernel functions end in _[k],
// inlined functions in _[i].
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

static void put_stack(const struct export *e, uint32_t chain)
{
    const struct chain_node *n = &e->profile->samples.chains.nodes[chain];
    char name[NAME_SIZE];

    if (chain == CHAIN_ROOT)
        return;
    put_stack(e, n->parent); // depth: chain length
    fputc(';', e->out);
    const struct inlined *inlined =
        inlines_find(&e->profile->inlines, n->place);
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
        put_stack(e, c->chain);
        fprintf(e->out, " %" PRIu64 "\n", c->samples);
    }
}
