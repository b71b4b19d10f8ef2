// Metadata of a Firefox profile (firefox_tables.h): how it was recorded, the
// categories of frames, and how markers are displayed.
#include "firefox_tables.h"
#include "header_lines.h"

#include <string.h>

#define VERSION 57
#define GECKO_VERSION 31 // the browser's own format at that VERSION
#define NS_PER_MS 1e6
#define MS_PER_SECOND 1000.0

static void put_string(FILE *out, const char *key, const char *text)
{
    fprintf(out, "\"%s\":", key);
    json_string(out, text, strlen(text));
}

static void put_time(FILE *out, uint64_t ns)
{
    fprintf(out, "%.6f", ns / NS_PER_MS);
}

static void put_categories(FILE *out)
{
    static const char *const names[CATEGORIES][2] = {
        [CATEGORY_USER] = { "User", "yellow" },
        [CATEGORY_KERNEL] = { "Kernel", "orange" },
        [CATEGORY_IDLE] = { "Idle", "transparent" },
        [CATEGORY_OTHER] = { "Other", "grey" }, // the default
    };

    fputs(",\n\"categories\":[", out);
    for (unsigned i = 0; i < CATEGORIES; i++)
        fprintf(out,
                "%s{\"name\":\"%s\",\"color\":\"%s\",\"subcategories\":["
                "\"Other\"]}",
                i > 0 ? "," : "", names[i][0], names[i][1]);
    fputc(']', out);
}

static void put_schema(FILE *out, const char *name, const char *label,
                       const char *fields)
{
    fprintf(out,
            "{\"name\":\"%s\",\"tableLabel\":\"%s\",\"chartLabel\":\"%s\","
            "\"tooltipLabel\":\"%s\",\"display\":[\"marker-chart\","
            "\"marker-table\",\"timeline-overview\"],\"fields\":[%s]}",
            name, label, label, label, fields);
}

static void put_schemas(FILE *out)
{
    fputs(",\n\"markerSchema\":[", out);
    put_schema(out, "fork", "fork of task {marker.data.child}",
               "{\"key\":\"child\",\"label\":\"Child\",\"format\":\"pid\"}");
    fputc(',', out);
    put_schema(out, "exec", "exec of {marker.data.program}",
               "{\"key\":\"program\",\"label\":\"Program\","
               "\"format\":\"string\"}");
    fputc(',', out);
    put_schema(out, "exit", "exit", "");
    fputc(']', out);
}

struct entries {
    FILE *out;
    const char *comma;
};

static void put_entry(void *arg, const char *name, size_t size,
                      const char *value)
{
    struct entries *e = arg;

    fprintf(e->out, "%s{\"label\":", e->comma);
    json_string(e->out, name, size);
    fputs(",\"format\":\"string\",", e->out);
    put_string(e->out, "value", value);
    fputc('}', e->out);
    e->comma = ",";
}

// The header of all reports, displayed in "more info".
static void put_header(const struct export *e)
{
    struct entries entries = { e->out, "" };

    fputs(",\n\"extra\":[{\"label\":\"Strobe\",\"entries\":[", e->out);
    header_lines(e->profile, e->profile->files, e->view, put_entry, &entries);
    fputs("]}]", e->out);
}

// The date of the time 0, when the machine was started; 1970: unknown.
static uint64_t start_date(const struct perf_date *c)
{
    return c->date_ns > c->time_ns ? c->date_ns - c->time_ns : 0;
}

void firefox_meta_write(const struct export *e)
{
    const struct perf_file *file = e->profile->files;
    FILE *out = e->out;
    bool timed = frame_is_timed(e, 0);
    uint32_t rate = file->info.rate_hz;

    fprintf(out, "{\"meta\":{\"preprocessedProfileVersion\":%d,\"version\":%d,",
            VERSION, GECKO_VERSION);
    fprintf(out, "\"interval\":%.6f,",
            timed && rate > 0 ? MS_PER_SECOND / rate : 1.0);
    put_string(out, "product", profile_title(e->profile));
    fputs(",\"importedFrom\":\"Strobe\",\"startTime\":", out);
    put_time(out, start_date(&file->date));
    fputs(",\"profilingStartTime\":", out);
    put_time(out, file->first);
    fputs(",\"profilingEndTime\":", out);
    put_time(out, file->last);
    fprintf(out,
            ",\"processType\":0,\"stackwalk\":%d,\"debug\":false,"
            "\"platform\":\"Strobe\",\"oscpu\":\"Strobe i386\","
            "\"symbolicated\":true,\"symbolicationNotSupported\":true,"
            "\"usesOnlyOneStackType\":true,\"sourceCodeIsNotOnSearchfox\":true,"
            "\"keepProfileThreadOrder\":true,",
            file->chains);
    put_string(out, "arguments", file->command);
    if (timed)
        fputs(",\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\","
              "\"threadCPUDelta\":\"ns\"}",
              out);
    put_categories(out);
    put_schemas(out);
    put_header(e);
    fputs("}", out);
}
