// The report header as JSON, in the same form for every tool.
#include "header.h"

#include "check.h"
#include "shares.h"
#include "user/libstrobe/core_clock.h"
#include "user/libstrobe/strobe.h"

#include <inttypes.h>
#include <string.h>

static void print_number(FILE *out, const char *name, uint64_t value)
{
    fprintf(out, "  \"%s\": %" PRIu64 ",\n", name, value);
}

static void print_text(FILE *out, const char *name, const char *text)
{
    fprintf(out, "  \"%s\": ", name);
    json_string(out, text, strlen(text));
    fputs(",\n", out);
}

static void print_samples(FILE *out, const struct sprofile_info *i,
                          uint64_t unknown)
{
    if (header_expects(i))
        print_number(out, "expected", i->expected);
    else
        fputs("  \"expected\": null,\n", out);
    print_number(out, "taken", i->taken);
    print_number(out, "lost", i->lost);
    print_number(out, "unknown", unknown);
    print_number(out, "user", i->user);
    print_number(out, "kernel", i->kernel);
    print_number(out, "irq", i->irq);
    print_number(out, "idle", i->idle);
    enum source_masked masked = source_masked(i->source);
    if (masked == MASKED_EVERYWHERE || masked == MASKED_UNKNOWN)
        fputs("  \"irqs_off\": null,\n", out);
    else
        print_number(out, "irqs_off", i->irqs_off);
    print_number(out, "others", i->others);
    print_number(out, "missed", i->missed);
    print_number(out, "throttled", i->throttled);
    print_number(out, "in_sampling", i->in_sampling);
    fprintf(out, "  \"starved\": %s,\n", header_starved(i) ? "true" : "false");
    fprintf(out, "  \"late\": %s,\n", header_late(i) ? "true" : "false");
    fprintf(out, "  \"lean\": %.3f,\n", header_lean(i));
}

// Half the width of the 95 % interval of a share of 50 %, in percentage points.
static void print_error(FILE *out, const struct sprofile_info *i,
                        const struct samples *s)
{
    struct shares h = shares_of(s, 0);

    if (h.samples > 0 && (i->random || header_exact(i)))
        fprintf(out, "  \"error_of_half\": %.3f,\n",
                header_exact(i) ? 0 : shares_points(&h, 50));
    else
        fputs("  \"error_of_half\": null,\n", out);
}

void header_print_json(FILE *out, const struct sprofile_info *info,
                       const struct sprofile_options *asked,
                       const struct samples *s, uint64_t unknown)
{
    print_text(out, "source", info->source);
    print_text(out, "source_asked", asked->source);
    print_text(out, "source_instead_of", info->instead_of);
    print_text(out, "event", info->event);
    print_number(out, "rate_hz", info->rate_hz);
    print_number(out, "rate_hz_asked", asked->rate_hz);
    print_number(out, "period", info->period);
    print_number(out, "period_asked", asked->period);
    print_number(out, "random", info->random);
    print_number(out, "cpus", info->cpus);
    print_samples(out, info, unknown);
    check_print_json(out, info, s);
    print_error(out, info, s);
    print_number(out, "unreadable", info->unreadable);
    print_number(out, "tasks_lost", info->tasks_lost + s->programs.forgotten);
    print_number(out, "times_lost", info->times_lost);
    print_number(out, "malformed", s->reader.malformed);
    print_number(out, "uncounted", s->uncounted);
    struct samples_cut cut = samples_cut(s);
    print_number(out, "cut", cut.any);
    print_number(out, "cut_broken", cut.broken);
    print_number(out, "cut_deep", cut.deep);
    print_number(out, "cut_unreadable", cut.unreadable);
    print_number(out, "cut_beyond_copy", cut.beyond_copy);
    print_number(out, "chains_forgotten", s->chains.cut);
    print_number(out, "cycles", info->cycles);
    print_number(out, "interrupts", info->interrupts);
    print_number(out, "tool_cycles", info->tool_cycles);
    print_number(out, "tsc_hz", info->tsc_hz);
    core_clock_print_json(out, &info->clock);
    print_number(out, "elapsed_ns", info->elapsed_ns);
}
