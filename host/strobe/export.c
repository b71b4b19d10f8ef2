// strobe export: the profile in a format that another program reads.
#include "html.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct {
    struct common common;
    const char *output;
    bool html;
} settings;

struct format {
    const bool *chosen;
    void (*write)(struct profile *p, FILE *out);
};

static const struct format formats[] = {
    { &settings.html, export_html },
};

static const struct tool_option options[] = {
    { 'o', "output", "OUT", "Write this file (standard output)",
      .text = &settings.output },
    { 0, "html", NULL, "A page with a flame graph, for any browser",
      .flag = &settings.html },
    FILE_OPTIONS(settings.common),
    { 0 },
};
static const struct tool tool = {
    .usage = "strobe export --FORMAT [OPTIONS] FILE",
    .options = options,
};

static const struct format *chosen_format(void)
{
    const struct format *format = NULL;

    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (!*formats[i].chosen)
            continue;
        if (format != NULL) {
            complain("one format at a time");
            options_wrong(&tool);
        }
        format = &formats[i];
    }
    if (format == NULL) {
        complain("which format?");
        options_wrong(&tool);
    }
    return format;
}

int command_export(int argc, char *argv[])
{
    static struct profile profile;
    const char *file =
        one_file(&tool, argc, argv, options_parse(&tool, argc, argv));
    const struct format *format = chosen_format();
    FILE *out = stdout;

    profile_open(&profile, file, &settings.common);
    if (settings.output != NULL)
        out = fopen(settings.output, "w");
    if (out == NULL)
        fail(1, "%s: %s", settings.output, strerror(errno));
    format->write(&profile, out);
    profile_complain(&profile);
    if (out != stdout && (ferror(out) || fclose(out) != 0))
        fail(1, "%s: %s", settings.output, strerror(errno));
    profile_close(&profile);
    return EXIT_SUCCESS;
}
