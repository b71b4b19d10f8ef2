// Sensors are read at an interval, and at the end, into chunks of the trace's
// file. Lists and rings must not be overwritten in between; what is, is
// counted.
//
// Of a flight the lists and rings are themselves what keeps the last events:
// they are held open, so that they stay when their owners end, and read once.
#include "sensors.h"

#include "user/libstrobe/strobe.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define CHUNK_BYTES (1024u * 1024) // of the file, about

// --- chunks -----------------------------------------------------------------

static void flush_chunks(struct trace_sensors *s)
{
    if (s->used && !s->no_memory && s->out)
        trace_out_sensors(s->out, s->bytes, s->used);
    s->used = 0;
}

static bool grow(struct trace_sensors *s, size_t size)
{
    size_t room = 2 * s->room + size;
    void *more = realloc(s->bytes, room);

    if (!more) {
        complain("not enough memory for what the sensors have: the rest of it "
                 "is missing");
        s->no_memory = true;
        return false;
    }
    s->bytes = more;
    s->room = room;
    return true;
}

// The file's chunks have whole ones of the recording.
static void take(void *arg, const void *bytes, size_t size)
{
    struct trace_sensors *s = arg;
    const struct recording_chunk *begins = bytes;

    if (s->no_memory || (s->room - s->used < size && !grow(s, size)))
        return;
    memcpy(s->bytes + s->used, bytes, size);
    s->used += size;
    s->rest = s->rest ? s->rest - size : begins->bytes;
    if (!s->rest && s->used >= CHUNK_BYTES)
        flush_chunks(s);
}

// --- samples ----------------------------------------------------------------

void sensors_sample(struct trace_sensors *s)
{
    if (!s->patterns || s->no_memory)
        return;
    if (recorder_find(&s->recorder, s->patterns) < 0)
        complain("not enough memory for more sensors");
    if (s->flight)
        s->used = 0; // that they are there is told when they are read
    else
        recorder_sample(&s->recorder);
    flush_chunks(s);
}

static void set_timer(uint64_t ns)
{
    struct itimerval t = { 0 };

    t.it_interval.tv_sec = (time_t)(ns / 1000000000);
    t.it_interval.tv_usec = (suseconds_t)(ns % 1000000000 / 1000);
    t.it_value = t.it_interval;
    setitimer(ITIMER_REAL, &t, NULL);
}

void sensors_begin(struct trace_sensors *s, const char *patterns,
                   uint64_t interval_ns, const struct trace_info *info,
                   bool flight, struct trace_out *out)
{
    struct sensor_wide now;

    *s = (struct trace_sensors){ .patterns = patterns,
                                 .flight = flight,
                                 .tsc_hz = info->tsc_hz,
                                 .out = out };
    if (!patterns)
        return;
    sensor_read_time(&now);
    s->recorder = (struct sensor_recorder){
        .write = take,
        .arg = s,
        .begun_ns = recorder_now_ns(),
        .since = sensor_wide_read(&now),
        .changes_only = true,
    };
    sensors_sample(s);
    set_timer(interval_ns);
}

void sensors_end(struct trace_sensors *s)
{
    if (!s->patterns)
        return;
    set_timer(0);
    sensors_sample(s);
}

void sensors_put_flight(struct trace_sensors *s, uint32_t ms,
                        struct trace_out *out)
{
    struct sensor_wide now;
    uint64_t cycles = s->tsc_hz / 1000 * ms, tsc;

    if (!s->patterns || s->no_memory)
        return;
    sensors_sample(s);
    sensor_read_time(&now);
    tsc = sensor_wide_read(&now);
    s->out = out;
    recorder_restart(&s->recorder, tsc > cycles ? tsc - cycles : 0);
    recorder_sample(&s->recorder);
    flush_chunks(s);
    s->out = NULL;
}

// --- the end ----------------------------------------------------------------

static void report_one(const struct sensor_source *s)
{
    if (s->problem)
        complain("%s: %s", s->path, s->problem);
    else if (s->broken)
        complain("%s: its owner has spoilt it; what was recorded before is in "
                 "the file",
                 s->path);
    else if (s->lost || s->spoilt)
        complain("%s: lost %" PRIu64 ", spoilt %" PRIu64
                 " events (-i: read it more often)",
                 s->path, s->lost, s->spoilt);
}

void sensors_report(const struct trace_sensors *s)
{
    if (s->patterns && !s->recorder.numbered)
        complain("-s %s: there was no such sensor that can be read (`sensors` "
                 "lists them)",
                 s->patterns);
    for (uint32_t i = 0; i < s->recorder.count; i++)
        report_one(s->recorder.sources[i]);
}
