// A plugin of KernelShark that writes what its window shows to the file that
// $KERNELSHARK_SHOWS names, for kernelshark.py. A line each, fields between
// tabs:
//
//     entry CPU PID NS TASK EVENT INFO    of the list: all of them, in its
//     order graph cpu|task CPU|PID BINS         a graph is about to be drawn
//
// The functions and what they do: libkshark.h, libkshark-plugin.h and
// libkshark-model.h of libkshark-dev. KernelShark calls the draw handler for
// each graph, each time that it draws them; it has loaded all entries by then.
#include <inttypes.h>
#include <libkshark-model.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *shows;

static void put_entry(const struct kshark_entry *e)
{
    char *task = kshark_get_task(e), *event = kshark_get_event_name(e);
    char *info = kshark_get_info(e);

    fprintf(shows, "entry\t%d\t%d\t%" PRId64 "\t%s\t%s\t%s\n", e->cpu, e->pid,
            e->ts, task, event, info);
    free(task);
    free(event);
    free(info);
}

static void put_entries(const struct kshark_trace_histo *histo)
{
    for (size_t i = 0; i < histo->data_size; i++) {
        if (histo->data[i]->visible & KS_TEXT_VIEW_FILTER_MASK)
            put_entry(histo->data[i]);
    }
}

static void on_draw(struct kshark_cpp_argv *argv, int stream, int cpu_or_pid,
                    int action)
{
    (void)stream;
    if (!shows) {
        const char *path = getenv("KERNELSHARK_SHOWS");
        shows = path ? fopen(path, "w") : NULL;
        if (!shows)
            abort();
        put_entries(argv->histo);
    }
    fprintf(shows, "graph\t%s\t%d\t%d\n",
            action == KSHARK_CPU_DRAW ? "cpu" : "task", cpu_or_pid,
            argv->histo->n_bins);
    fflush(shows);
}

int KSHARK_PLOT_PLUGIN_INITIALIZER(struct kshark_data_stream *stream)
{
    kshark_register_draw_handler(stream, on_draw);
    return 1;
}

int KSHARK_PLOT_PLUGIN_DEINITIALIZER(struct kshark_data_stream *stream)
{
    kshark_unregister_draw_handler(stream, on_draw);
    return 1;
}
