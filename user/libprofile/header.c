#include "header.h"

#include "check.h"
#include "lib/types.h"
#include "shares.h"
#include "sources.h"
#include "user/libstrobe/core_clock.h"
#include "user/libstrobe/strobe.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define INTERRUPT_NS 100000 // a PC takes no sample for as long

double percent(double part, double whole)
{
    return whole > 0 ? 100.0 * part / whole : 0.0;
}

bool header_expects(const struct sprofile_info *info)
{
    bool follows = info->event[0] != '\0' && info->period == 0;

    return info->rate_hz != 0 && !follows;
}

// Ticks of the target that the header accounts for. (`lost` is part of
// `taken`.)
static uint64_t came(const struct sprofile_info *info)
{
    return info->taken + info->missed + info->throttled + info->in_sampling;
}

// Ticks that are in no column. Those of a timer come due on every CPU, so that
// their sum is known: one that was expected for the target may have come
// outside of it.
static uint64_t absent(const struct sprofile_info *info)
{
    bool timer = info->event[0] == '\0';
    double due = timer ? info->elapsed_ns / 1e9 * info->rate_hz * info->cpus
                       : info->expected;
    uint64_t outside = timer ? info->others : 0;
    uint64_t all = MAX((uint64_t)due, info->expected);

    all -= MIN(all, came(info) + outside);
    return MIN(all, info->expected - MIN(info->expected, came(info)));
}

bool header_starved(const struct sprofile_info *info)
{
    return header_expects(info) && info->expected >= STARVED_LEAST &&
           came(info) < info->expected / STARVED_PART &&
           absent(info) > info->expected / 2;
}

static void print_starved(FILE *out, const struct sprofile_info *info)
{
    fprintf(out,
            "Wrong:   %" PRIu64 " of %" PRIu64 " samples came, so this report "
            "is not to be believed: the\n         interrupts of %s do not "
            "arrive as they should. Choose another source by\n         -s "
            "NAME or the kernel argument sampler=NAME; profile --list shows "
            "them.\n",
            came(info), info->expected, info->source);
}

// Every event of a trace point is a sample. (Counters skip events if asked for
// each one.)
static bool takes_all(const struct sprofile_info *info)
{
    return info->period == 1 &&
           strcmp(info->source, SPROFILE_POINT_SOURCE) == 0;
}

bool header_exact(const struct sprofile_info *info)
{
    return takes_all(info) && info->lost + info->throttled == 0;
}

static void print_source(FILE *out, const struct sprofile_info *info,
                         const struct sprofile_options *o)
{
    if (takes_all(info))
        fprintf(out, "Source:  %s, every %s", info->source, info->event);
    else if (info->event[0] != '\0' && info->rate_hz == 0)
        fprintf(out, "Source:  %s, every %" PRIu64 " %s", info->source,
                info->period, info->event);
    else
        fprintf(out, "Source:  %s at %u Hz", info->source, info->rate_hz);
    fprintf(out, " on %u CPU%s", info->cpus, info->cpus == 1 ? "" : "s");
    if (!takes_all(info))
        fputs(info->random ? ", at random" : ", at fixed distances", out);
    if (o->source[0] != '\0' && strcmp(o->source, info->source) != 0)
        fprintf(out, "; instead of %s, as asked", o->source);
    if (o->event[0] != '\0' && info->event[0] == '\0')
        fprintf(out, "; it counts no %s", o->event);
    if (o->rate_hz != 0 && info->rate_hz != 0 && o->rate_hz != info->rate_hz)
        fprintf(out, "; %u Hz was asked", o->rate_hz);
    if (o->period != 0 && o->period != info->period)
        fprintf(out, "; every %" PRIu64 " was asked", o->period);
    fputc('\n', out);
    if (info->instead_of[0] == '\0')
        return;
    char why[SOURCE_PROBLEM_SIZE];
    source_problem(why, sizeof(why), info->instead_of);
    fprintf(out, "         instead of sampler=%s\n", why);
}

// Prints the share of samples of code with interrupts off, or that the source
// does not see such code.
static void print_irqs_off(FILE *out, const struct sprofile_info *info)
{
    enum source_masked masked = source_masked(info->source);

    if (masked == MASKED_UNKNOWN)
        fputs("; interrupts off: not known\n", out);
    else if (masked == MASKED_EVERYWHERE)
        fprintf(out, "; interrupts off: not seen by %s\n", info->source);
    else
        fprintf(out, "; %.1f%% with interrupts off%s\n",
                percent(info->irqs_off, info->taken),
                masked == MASKED_BOOT_CPU ? " (not seen on CPU 0)" : "");
}

static void print_samples(FILE *out, const struct sprofile_info *info,
                          uint64_t unknown)
{
    fputs("Samples: ", out);
    if (header_expects(info))
        fprintf(out, "%" PRIu64 " expected, ", info->expected);
    fprintf(out,
            "%" PRIu64 " taken, %" PRIu64 " lost, %" PRIu64 " unknown; %" PRIu64
            " user, %" PRIu64 " kernel",
            info->taken, info->lost, unknown, info->user, info->kernel);
    if (info->irq + info->idle > 0)
        fprintf(out, ", %" PRIu64 " irq, %" PRIu64 " idle", info->irq,
                info->idle);
    print_irqs_off(out, info);
}

static void print_hidden(FILE *out, const struct sprofile_info *info)
{
    if (info->hides_kernel && info->kernel > 0)
        fputs(
            "Kernel:  its addresses are hidden: root sees them, and the users "
            "that the kernel\n         argument profile_users= names\n",
            out);
}

static void print_ticks(FILE *out, const struct sprofile_info *info)
{
    fprintf(out,
            "Ticks:   %" PRIu64 " missed (came late); %" PRIu64
            " outside the target",
            info->missed, info->others);
    if (info->in_sampling > 0)
        fprintf(out, "; %" PRIu64 " due in sampling", info->in_sampling);
    if (info->throttled > 0)
        fprintf(out, "; %" PRIu64 " throttled (sampling took too much)",
                info->throttled);
    fputc('\n', out);
}

bool header_late(const struct sprofile_info *info)
{
    return info->event[0] == '\0' && info->missed > came(info) / LATE_PART;
}

// What the other CPUs do under QEMU's --icount while one runs.
static const char *or_turns(const struct sprofile_info *info)
{
    return info->cpus > 1 ? ", or (QEMU --icount) the other CPUs' turns," : "";
}

// Prints for how much of the time no tick was taken, and why. (Within the
// machine an NMI waits for the handler of another NMI only.)
static void print_late(FILE *out, const struct sprofile_info *info)
{
    bool nmi = source_masked(info->source) == MASKED_NOWHERE;

    if (!header_late(info))
        return;
    fprintf(out,
            "Late:    %sthe host%s kept the %s for %.0f of %.0f ms:\n"
            "         the ticks of that time came late, several in one sample. "
            "%s\n",
            nmi ? "" : "interrupts were off, or ", or_turns(info),
            info->cpus > 1 ? "CPUs" : "machine",
            info->missed * (info->period / 1e6),
            came(info) * (info->period / 1e6),
            nmi ? "Another source\n         does not help"
                : "A source by\n         NMI sees code with interrupts off");
}

// Sum of the cycles of all sampled CPUs while the session ran.
static double cpu_cycles(const struct sprofile_info *info)
{
    return (double)info->elapsed_ns / 1e9 * info->tsc_hz * info->cpus;
}

static void print_trouble(FILE *out, const struct sprofile_info *info,
                          const struct samples *s)
{
    uint64_t bad = s->reader.malformed + s->uncounted;

    if (s->chains.cut > 0)
        fprintf(out, "Chains:  %" PRIu64 " parts did not fit into memory\n",
                s->chains.cut);
    if (info->tasks_lost + s->programs.forgotten > 0)
        fprintf(out, "Tasks:   of %" PRIu64 " changes was not heard\n",
                info->tasks_lost + s->programs.forgotten);
    if (info->times_lost > 0)
        fprintf(out,
                "Tasks:   %" PRIu64 " exact times did not fit into memory: "
                "Check is not by task\n",
                info->times_lost);
    if (bad > 0)
        fprintf(out,
                "Corrupt: %" PRIu64 " records were not understood or counted\n",
                bad);
}

static void print_cut(FILE *out, const char *what, uint64_t n,
                      const struct samples *s)
{
    if (n > 0)
        fprintf(out, "; %.1f%% %s", percent(n, s->total), what);
}

// Prints how many chains are incomplete, and why.
static void print_chains(FILE *out, const struct samples *s,
                         const struct sprofile_options *asked)
{
    bool deep = asked->flags & (SPROFILE_O_DEEP | SPROFILE_O_LBR);
    struct samples_cut cut = samples_cut(s);
    char beyond[80];

    fprintf(out, "Chains:  %.1f%% of %" PRIu64 " not whole",
            percent(cut.any, s->total), s->total);
    print_cut(out,
              deep ? "lack callers"
                   : "lack callers (no frame pointers? -g=dwarf)",
              cut.broken, s);
    print_cut(out, "deeper than 127 frames", cut.deep, s);
    print_cut(out, "in unmapped memory", cut.unreadable, s);
    snprintf(beyond, sizeof(beyond),
             "beyond the %u bytes of the stack's copy (-g=dwarf,SIZE)",
             sprofile_stack_bytes(asked));
    print_cut(out, beyond, cut.beyond_copy, s);
    fputc('\n', out);
}

// Prints the sampling overhead. Recordings of older versions lack the number of
// interrupts and the tool's own CPU time.
static void print_cost(FILE *out, const struct sprofile_info *info)
{
    uint64_t interrupts = info->interrupts;

    if (interrupts == 0)
        interrupts = info->taken + info->others;
    fprintf(out, "Cost:    %.0f cycles a sample, %.3f %% of the CPU%s %s",
            interrupts > 0 ? (double)info->cycles / interrupts : 0.0,
            percent(info->cycles, cpu_cycles(info)), info->cpus == 1 ? "" : "s",
            strcmp(info->source, SPROFILE_POINT_SOURCE) == 0 ? "at the points"
                                                             : "in interrupts");
    if (info->tool_cycles > 0)
        fprintf(out, "; %.3f %% the tool itself",
                percent(info->tool_cycles, cpu_cycles(info)));
    fputc('\n', out);
    if (info->tsc_hz > 0 &&
        info->cycles / 1e-9 / info->tsc_hz > (double)interrupts * INTERRUPT_NS)
        fprintf(
            out,
            "         That is much for sampling alone: this CPU is slow, or "
            "the host%s\n         kept CPUs in the middle of interrupts\n",
            or_turns(info));
}

double header_lean(const struct sprofile_info *info)
{
    double cost = info->cycles / cpu_cycles(info);
    bool leans = !info->random && info->event[0] == '\0' && cost > LEAN_LEAST;

    return leans ? 100 * cost : 0;
}

// At fixed distances, as time passes in sampling, too. (At random ones ticks
// that are due in it are not sampled.)
static void print_lean(FILE *out, const struct sprofile_info *info)
{
    if (header_lean(info) > 0)
        fprintf(out,
                "Lean:    at fixed distances a row that is dear to sample may "
                "have up to %.1f %%\n         too much (-R: none)\n",
                header_lean(info));
}

// Prints what percentages refer to, and their confidence interval.
static void print_shares(FILE *out, const struct sprofile_info *info,
                         const struct samples *s, uint32_t event)
{
    struct shares h = shares_of(s, event);

    if (h.samples == 0)
        return;
    if (header_exact(info)) {
        fprintf(out, "Shares:  of %s, all %" PRIu64 " of them: exact\n",
                info->event, h.samples);
        return;
    }
    fprintf(out, "Shares:  of %s, by %" PRIu64 " samples",
            info->event[0] != '\0' ? info->event : "time", h.samples);
    if (!info->random) {
        fprintf(out, "%s: no error can be stated\n",
                takes_all(info) ? ", not all" : " at fixed distances");
        return;
    }
    if (h.effective < 0.95 * h.samples)
        fprintf(out, " (as precise as %.0f of equal weight)", h.effective);
    fprintf(out, ": 50 %% +- %.1f, 10 %% +- %.1f, 1 %% +- %.1f (95 %% sure)\n",
            shares_points(&h, 50), shares_points(&h, 10), shares_points(&h, 1));
    uint32_t cpus = shares_together(s, event, info);
    if (cpus > 1)
        fprintf(out,
                "         %u CPUs are sampled at the same moments: up to +- "
                "%.1f at 50 %% where they do the\n         same\n",
                cpus, shares_points(&h, 50) * sqrt(cpus));
}

void header_print(FILE *out, const struct sprofile_info *info,
                  const struct sprofile_options *asked, const struct samples *s,
                  uint32_t event, uint64_t unknown)
{
    if (header_starved(info))
        print_starved(out, info);
    print_source(out, info, asked);
    print_samples(out, info, unknown);
    print_hidden(out, info);
    print_ticks(out, info);
    print_late(out, info);
    print_cost(out, info);
    core_clock_print(out, &info->clock, info->tsc_hz);
    print_lean(out, info);
    print_shares(out, info, s, event);
    check_print(out, info, s, event, info->cycles / cpu_cycles(info));
    if (unknown > 0)
        fprintf(out,
                "Names:   %" PRIu64 " samples lie in no function that their "
                "files name\n",
                unknown);
    if (asked->flags & SPROFILE_O_STACKS)
        print_chains(out, s, asked);
    print_trouble(out, info, s);
}

void header_print_remote(FILE *out, const struct perf_remote *r, uint32_t cpus)
{
    fprintf(out, "Remote:  %" PRIu64 " datagrams, %" PRIu64 " of them lost",
            r->datagrams, r->lost);
    if (r->lost > 0)
        fprintf(out,
                " with %" PRIu64 " samples, %" PRIu64 " other records, %" PRIu64
                " bytes",
                r->lost_samples, r->lost_records, r->lost_bytes);
    if (!r->ended) {
        fputs("; the connection was lost before the end\n", out);
        return;
    }
    double time = (double)r->elapsed_ns * cpus;
    fprintf(out,
            "; %" PRIu64 " bytes as %" PRIu64 ", %" PRIu64 " sent again\n"
            "         sending cost %.3f %% of the CPU%s: %.3f ms the program, "
            "%.3f ms the network's thread\n",
            r->raw_bytes, r->sent_bytes, r->resent,
            percent((double)(r->program_ns + r->net_ns), time),
            cpus == 1 ? "" : "s", r->program_ns / 1e6, r->net_ns / 1e6);
}

void header_print_event(FILE *out, const char *name, uint32_t event,
                        uint32_t count)
{
    if (count > 1)
        fprintf(out, "Event:   %s, %u of %u\n", name, event + 1, count);
}

void header_complain(FILE *out, const char *prefix, const struct samples *s)
{
    for (uint32_t i = 0; i < s->images.count; i++) {
        const struct image *m = &s->images.list[i];
        if (i == IMAGE_UNKNOWN || !m->loaded || !m->problem)
            continue;
        fprintf(out, "%s: ", prefix);
        put_printable(out, m->path);
        fprintf(out, ": %s; addresses are shown instead%s\n", m->problem,
                m->stripped ? ". Link it without -s, or put the output of nm "
                              "beside it as PROGRAM.sym"
                            : "");
    }
}
