// strobe export: writes a profile in the formats of other tools.
#include "export.h"
#include "html.h"
#include "traced.h"

#include <stdlib.h>

struct settings {
    struct common common;
    const char *out, *program;
    bool html, folded, speedscope, gmon, callgrind, pprof, perfetto, firefox;
};

static struct settings settings;

static const struct tool_option options[] = {
    { 0, "html", NULL, "A page with a flame graph, for any browser",
      .flag = &settings.html },
    { 0, "folded", NULL, "Stacks as lines, for flamegraph.pl or speedscope",
      .flag = &settings.folded },
    { 0, "speedscope", NULL, "JSON for speedscope, a profile each thread",
      .flag = &settings.speedscope },
    { 0, "gmon", NULL, "gmon.out of one program, for gprof",
      .flag = &settings.gmon },
    { 0, "callgrind", NULL, "For callgrind_annotate and kcachegrind",
      .flag = &settings.callgrind },
    { 0, "pprof", NULL, "For pprof, and other readers of profile.proto",
      .flag = &settings.pprof },
    { 0, "perfetto", NULL, "A trace for ui.perfetto.dev",
      .flag = &settings.perfetto },
    { 0, "firefox", NULL, "JSON for profiler.firefox.com, a track each thread",
      .flag = &settings.firefox },
    { 'o', "output", "OUT", "Output file (standard output)",
      .text = &settings.out },
    { 'p', "program", "PATH", "Which program's gmon.out; [kernel] the kernel's",
      .text = &settings.program },
    FILTER_OPTIONS(settings.common),
    INLINE_OPTION(settings.common),
    FILE_OPTIONS(settings.common),
    { 0 },
};
static const struct tool tool = {
    .usage = "strobe export --FORMAT [OPTIONS] FILE",
    .options = options,
    .notes = "Of several sampled events html, speedscope and callgrind have "
             "all,\nthe others the first. gmon cannot represent inlined "
             "functions.\n",
};

struct format {
    const bool *chosen;
    void (*write)(struct export *e);
    bool several; // can hold several events
    // Chains stay as recorded: the format cannot hold inlined functions, or
    // holds them in another way.
    bool recorded;
    void (*write_traced)(struct export *e); // a trace of calls; NULL: cannot
};

// Options that filter samples have no effect: the page has its own filters.
static void write_html(struct export *e)
{
    const struct common *c = &settings.common;

    if (c->task != 0 || c->cpu || c->busy)
        complain("--task, --cpu and --busy: not for the page: select there");
    export_html(e->profile, e->out);
}

static const struct format formats[] = {
    { &settings.html, write_html, true, false, write_html },
    { &settings.folded, export_folded, false, false, export_folded },
    { &settings.speedscope, export_speedscope, true, false, traced_speedscope },
    { &settings.gmon, export_gmon, false, true, NULL },
    { &settings.callgrind, export_callgrind, true, false, traced_callgrind },
    { &settings.pprof, export_pprof, false, true, export_pprof },
    { &settings.perfetto, export_perfetto, false, false, NULL },
    { &settings.firefox, export_firefox, false, false, NULL },
};

static const struct format *choose(void)
{
    const struct format *chosen = NULL;
    unsigned count = 0;

    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (*formats[i].chosen) {
            chosen = &formats[i];
            count++;
        }
    }
    if (count == 1)
        return chosen;
    complain(count == 0 ? "no format given" : "one format at a time");
    options_wrong(&tool);
}

// Whether a trace of calls can be written: see traced.h.
static void check_traced(const struct profile *p, const struct format *f)
{
    if (!p->traced)
        return;
    if (!f->write_traced)
        fail(USAGE_STATUS,
             "%s: a trace of calls has no samples in time: --html, --folded, "
             "--speedscope, --callgrind, --pprof; kgmon writes gmon.out",
             p->path);
    if (settings.common.task || settings.common.busy)
        fail(USAGE_STATUS, "%s: its calls are not by task: only --cpu",
             p->path);
    if (p->traced->arcs)
        fail(1,
             "%s: of cprofile --arcs, without times and paths: strobe "
             "report shows its arcs",
             p->path);
}

int command_export(int argc, char *argv[])
{
    struct profile p;
    struct view v;
    int at = options_parse(&tool, argc, argv);
    const struct format *format = choose();
    struct view_filter filter = common_filter(&tool, &settings.common);

    settings.common.traced = true;
    const char *path = one_file(&tool, argc, argv, at);
    bool inlined = !settings.common.no_inline;

    settings.common.no_inline = !inlined || format->recorded;
    if (format->several)
        profile_open_all(&p, path, &settings.common);
    else
        profile_open(&p, path, &settings.common);
    check_traced(&p, format);
    profile_view(&v, &p, BY_SYMBOL, &filter);
    profile_complain(&p);
    profile_complain_calls(&p);
    struct export e = {
        &p,
        &v,
        &filter,
        settings.program,
        result_open(settings.out),
        settings.out,
        inlined,
    };
    (p.traced ? format->write_traced : format->write)(&e);
    result_close(e.out, settings.out);
    view_free(&v);
    profile_close(&p);
    return 0;
}
