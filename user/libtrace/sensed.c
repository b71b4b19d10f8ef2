#include "sensed.h"

#include "user/libstrobe/sensor_print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static uint64_t wide(struct sensor_wide w)
{
    return (uint64_t)w.high << 32 | w.low;
}

const struct recorded_sensor *sensed_sensor(const struct trace_file *f,
                                            const struct recorded *one)
{
    return &f->sensors.sensors[one->source];
}

void sensed_name(const struct recorded_sensor *s, char out[SENSED_NAME_BYTES])
{
    static const char root[] = "/sensors/";
    const char *path = s->path;

    if (strncmp(path, root, sizeof(root) - 1) == 0)
        path += sizeof(root) - 1;
    snprintf(out, SENSED_NAME_BYTES, "%s", path);
    for (char *p = out; *p; p++)
        *p = *p > ' ' && *p <= '~' ? *p : '?';
}

// --- one --------------------------------------------------------------------

uint32_t sensed_type(const struct recorded *one)
{
    return one->kind == RECORDING_EVENT ? recorded_event(one)->type
                                        : recorded_record(one)->type;
}

const void *sensed_payload(const struct recorded *one, uint32_t *bytes)
{
    if (one->kind == RECORDING_EVENT) {
        *bytes = recorded_event(one)->bytes;
        return recorded_event(one)->payload;
    }
    if (one->kind != RECORDING_RECORD)
        return NULL;
    *bytes =
        recorded_record(one)->size - (uint32_t)sizeof(struct sensor_record);
    return recorded_record(one)->payload;
}

bool sensed_thread(const struct recorded *one, uint32_t *thread, uint32_t *cpu)
{
    if (one->kind != RECORDING_EVENT)
        return false;
    *thread = recorded_event(one)->thread;
    *cpu = recorded_event(one)->cpu;
    return true;
}

bool sensed_value(const struct recorded *one, uint64_t *value)
{
    const struct recording_scalar *s = one->body;
    const struct recording_histogram *h = one->body;

    if (one->kind == RECORDING_SCALAR)
        *value = wide(s->value);
    else if (one->kind == RECORDING_HISTOGRAM)
        *value = wide(h->sum);
    return one->kind == RECORDING_SCALAR || one->kind == RECORDING_HISTOGRAM;
}

bool sensed_loss(const struct recorded *one, uint64_t *lost, uint64_t *spoilt)
{
    const struct recording_loss *l = one->body;

    if (one->kind != RECORDING_LOSS)
        return false;
    *lost = wide(l->lost);
    *spoilt = wide(l->spoilt);
    return true;
}

static void put_loss(FILE *out, uint64_t lost, uint64_t spoilt)
{
    if (lost)
        fprintf(out, " %" PRIu64 " events are missing here", lost);
    if (spoilt)
        fprintf(out, "%s %" PRIu64 " spoilt ones", lost ? "," : "", spoilt);
}

void sensed_text(FILE *out, const struct trace_file *f,
                 const struct recorded *one)
{
    const struct recording_histogram *h = one->body;
    uint64_t a = 0, b = 0;
    uint32_t bytes;
    const void *payload = sensed_payload(one, &bytes);

    if (payload)
        sensor_print_fields(out, sensed_sensor(f, one)->text, sensed_type(one),
                            payload, bytes, false);
    else if (sensed_loss(one, &a, &b))
        put_loss(out, a, b);
    else if (one->kind == RECORDING_HISTOGRAM)
        fprintf(out,
                " sum=%" PRIu64 " least=%" PRIu32 " most=%" PRIu32
                " changed_bins=%" PRIu32,
                wide(h->sum), h->least, h->most, h->cells);
    else if (sensed_value(one, &a))
        fprintf(out, " value=%" PRIu64, a);
}

// --- all --------------------------------------------------------------------

struct counts {
    uint64_t taken, lost, spoilt;
};

// Of each sensor. NULL: no memory.
static struct counts *count_all(const struct recording *r)
{
    struct counts *all = calloc(r->sensor_count, sizeof(*all));
    uint64_t lost, spoilt;

    for (size_t i = 0; all && i < r->count; i++) {
        struct counts *c = &all[r->all[i].source];
        if (!sensed_loss(&r->all[i], &lost, &spoilt)) {
            c->taken++;
            continue;
        }
        c->lost += lost;
        c->spoilt += spoilt;
    }
    return all;
}

void sensed_header(FILE *out, const struct trace_file *f)
{
    const struct recording *r = &f->sensors;
    char name[SENSED_NAME_BYTES];
    uint64_t taken = 0;

    if (!r->sensor_count)
        return;
    struct counts *all = count_all(r);
    for (uint32_t i = 0; all && i < r->sensor_count; i++)
        taken += all[i].taken;
    fprintf(out, "# sensors: %" PRIu32 ", with %" PRIu64 " events and values\n",
            r->sensor_count, taken);
    for (uint32_t i = 0; all && i < r->sensor_count; i++) {
        sensed_name(&r->sensors[i], name);
        if (all[i].lost || all[i].spoilt)
            fprintf(out,
                    "MISSING: %" PRIu64 " events of %s, which were overwritten "
                    "before they were read (-i); %" PRIu64 " were spoilt\n",
                    all[i].lost, name, all[i].spoilt);
    }
    free(all);
}

void sensed_summary(FILE *out, const struct trace_file *f, uint64_t ns)
{
    const struct recording *r = &f->sensors;
    struct counts *all = r->sensor_count ? count_all(r) : NULL;
    char name[SENSED_NAME_BYTES];

    if (!all)
        return;
    fprintf(out, "\n%-24s %9s %12s %9s %9s  %s\n", "Sensor", "Count",
            "Per second", "Lost", "Spoilt", "Type");
    for (uint32_t i = 0; i < r->sensor_count; i++) {
        double rate = ns ? (double)all[i].taken * 1e9 / (double)ns : 0;
        sensed_name(&r->sensors[i], name);
        fprintf(out,
                "%-24s %9" PRIu64 " %12" PRIu64 " %9" PRIu64 " %9" PRIu64
                "  %s\n",
                name, all[i].taken, (uint64_t)rate, all[i].lost, all[i].spoilt,
                sensor_type_text(r->sensors[i].layout.type));
    }
    free(all);
}
