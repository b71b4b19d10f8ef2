// A trace for Perfetto (ui.perfetto.dev, trace_processor): protocol buffers.
//
//     scheduling  switches and wakes as Linux's ftrace has them: from these
//                 Perfetto makes which thread ran on each CPU, the threads'
//                 states, and who woke them
//     a thread    its system calls, in them its page faults; its other events
//                 as instants
//     a CPU       the handlers of interrupts; events while it was idle; where
//                 events are lost, an instant
//     a counter   of lost events
//     sensors     a counter for each scalar and histogram (of these the sum of
//                 the values); a track for each list and ring. The events of a
//                 list are instants of the threads that posted them; records of
//                 a ring, and where some are missing, are instants of its track
//
// In a trace of one task there is nothing of scheduling but a track below each
// thread with when it ran: who else did is not known (trace_tracks.h).
//
// Times are ns since the first event, in Perfetto's default clock. A slice's
// packets are written when it has ended, so packets are not in the order of
// time: Perfetto sorts them. Names are interned. A wake or switch whose `at`
// precedes the first event is at 0.
//
// A flow leads from a call's ipc/call by ipc/take and ipc/forward to its
// ipc/answer (trace_flows.h).
//
// Field numbers and their meaning: github.com/google/perfetto, in
// protos/perfetto/trace: trace_packet.proto (perfetto_packet.h),
// track_event/{track_event,track_descriptor,process_descriptor,
// thread_descriptor,counter_descriptor,debug_annotation}.proto,
// interned_data/interned_data.proto, and
// ftrace/{ftrace_event_bundle,ftrace_event,sched}.proto.
#include "perfetto_packet.h"
#include "trace_export.h"
#include "trace_flows.h"
#include "trace_tracks.h"

#include "user/libtrace/graph.h"
#include "user/libtrace/points.h"
#include "user/libtrace/sensed.h"

#include <inttypes.h>
#include <string.h>

enum { EVENT_ANNOTATION = 4, EVENT_TYPE = 9, EVENT_NAME_ID, EVENT_TRACK };
enum { EVENT_NAME = 23, EVENT_COUNTER = 30, EVENT_FLOW = 47, EVENT_FLOW_END };
enum { SLICE_BEGIN = 1, SLICE_END, INSTANT, COUNTER }; // of EVENT_TYPE
enum {
    TRACK_UUID = 1,
    TRACK_NAME,
    TRACK_PROCESS,
    TRACK_THREAD,
    TRACK_PARENT,
    TRACK_COUNTER = 8,
};
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID, THREAD_NAME = 5 };
enum { COUNTER_UNIT = 3 };
enum { UNIT_COUNT = 2 };
enum {
    ANNOTATION_NAME_ID = 1,
    ANNOTATION_UINT = 3,
    ANNOTATION_INT,
    ANNOTATION_STRING = 6,
    ANNOTATION_POINTER,
};
enum { INTERNED_EVENT_NAME = 2, INTERNED_ANNOTATION_NAME };
enum { INTERNED_ID = 1, INTERNED_TEXT };
enum { BUNDLE_CPU = 1, BUNDLE_EVENT };
enum {
    FTRACE_TIMESTAMP = 1,
    FTRACE_PID,
    FTRACE_SWITCH = 4,
    FTRACE_WAKING = 20
};
enum {
    SWITCH_PREV_COMM = 1,
    SWITCH_PREV_PID,
    SWITCH_PREV_STATE = 4,
    SWITCH_NEXT_COMM,
    SWITCH_NEXT_PID,
};
enum { WAKING_COMM = 1, WAKING_PID, WAKING_SUCCESS = 4, WAKING_CPU };

// Ids of interned names: of points, of page faults, of interrupts by vector,
// of system calls by number.
#define VECTORS 256u
#define CALLS 512u // calls with other numbers have their names in each event
enum {
    NAME_POINT = 1,
    NAME_FAULT = NAME_POINT + (1 << TRACE_TYPE_BITS),
    NAME_RUNNING,
    NAME_RECORDING,
    NAME_CUT,
    NAME_VECTOR,
    NAME_CALL = NAME_VECTOR + VECTORS,
    NAMES = NAME_CALL + CALLS,
};
// Of annotations.
static const char *const annotations[] = {
    "event", "cpu", "result", "number", "address", "end", "command", "tsc_hz",
};
enum { EVENT = 1, CPU, RESULT, NUMBER, ADDRESS, END, COMMAND, TSC_HZ };

// Kinds of tracks: the upper word of their uuids. The lower one is a thread, a
// process, a CPU, a sensor or 0.
enum {
    THREADS = 1,
    PROCESSES,
    CPUS,
    ALL_CPUS,
    LOSSES,
    RUNS,
    SENSORS,
    SENSOR,
    COUNTS
};

struct perfetto {
    FILE *out;
    struct tracks tracks;
    struct trace_flows flows;
    struct message packet, event, interned, part, inner;
    bool interned_name[NAMES];
};

static uint64_t uuid(uint32_t kind, uint32_t id)
{
    return (uint64_t)kind << 32 | id;
}

// --- one event --------------------------------------------------------------

static void begin_event(struct perfetto *p, uint32_t type, uint64_t track)
{
    message_number(&p->event, EVENT_TYPE, type);
    message_number(&p->event, EVENT_TRACK, track);
}

// `id` >= NAMES: the name is not interned.
static void set_name(struct perfetto *p, uint32_t id, const char *name)
{
    if (id >= NAMES) {
        message_text(&p->event, EVENT_NAME, name);
        return;
    }
    message_number(&p->event, EVENT_NAME_ID, id);
    if (p->interned_name[id])
        return;
    p->interned_name[id] = true;
    message_number(&p->inner, INTERNED_ID, id);
    message_text(&p->inner, INTERNED_TEXT, name);
    message_add(&p->interned, INTERNED_EVENT_NAME, &p->inner);
}

static void annotate(struct perfetto *p, uint32_t name, uint32_t kind,
                     uint64_t number)
{
    message_number(&p->part, ANNOTATION_NAME_ID, name);
    message_value(&p->part, kind, number);
    message_add(&p->event, EVENT_ANNOTATION, &p->part);
}

static void annotate_text(struct perfetto *p, uint32_t name, const char *text,
                          size_t size)
{
    message_number(&p->part, ANNOTATION_NAME_ID, name);
    message_bytes(&p->part, ANNOTATION_STRING, text, size);
    message_add(&p->event, EVENT_ANNOTATION, &p->part);
}

static void put_event(struct perfetto *p, uint64_t time)
{
    // A packet without its timestamp has the one before it.
    message_value(&p->packet, PACKET_TIMESTAMP, tracks_ns(&p->tracks, time));
    message_number(&p->packet, PACKET_FLAGS, FLAG_NEEDS_INTERNED);
    if (p->interned.size)
        message_add(&p->packet, PACKET_INTERNED, &p->interned);
    message_add(&p->packet, PACKET_TRACK_EVENT, &p->event);
    perfetto_put(p->out, &p->packet);
}

// Ends a slice that was begun with begin_event.
static void put_slice(struct perfetto *p, uint64_t track, uint64_t from,
                      uint64_t until)
{
    put_event(p, from);
    begin_event(p, SLICE_END, track);
    put_event(p, until);
}

// --- tracks -----------------------------------------------------------------

// All are there from the beginning.
static void put_track(struct perfetto *p)
{
    message_value(&p->packet, PACKET_TIMESTAMP, 0);
    message_add(&p->packet, PACKET_TRACK, &p->part);
    perfetto_put(p->out, &p->packet);
}

static void begin_track(struct perfetto *p, uint64_t track, uint64_t parent,
                        const char *name)
{
    message_number(&p->part, TRACK_UUID, track);
    message_number(&p->part, TRACK_PARENT, parent);
    if (name)
        message_text(&p->part, TRACK_NAME, name);
}

// A thread of an unknown task is a process of its own. What was said of the
// thread before is replaced, but not its process.
static void put_thread(struct perfetto *p, const struct track *t)
{
    const struct trace_file *f = p->tracks.file;
    uint32_t task, pid = t->task ? t->task : t->thread;
    const char *name = trace_file_name(f, pid, &task);

    begin_track(p, uuid(PROCESSES, pid), 0, NULL);
    message_number(&p->inner, PROCESS_PID, pid);
    if (name)
        message_text(&p->inner, PROCESS_NAME, name);
    message_add(&p->part, TRACK_PROCESS, &p->inner);
    put_track(p);

    name = trace_file_name(f, t->thread, &task);
    begin_track(p, uuid(THREADS, t->thread), 0, NULL);
    message_number(&p->inner, THREAD_PID, pid);
    message_number(&p->inner, THREAD_TID, t->thread);
    if (name)
        message_text(&p->inner, THREAD_NAME, name);
    message_add(&p->part, TRACK_THREAD, &p->inner);
    put_track(p);
}

static void on_thread(void *arg, const struct track *t)
{
    struct perfetto *p = arg;

    put_thread(p, t);
    if (!p->tracks.file->head.task)
        return;
    begin_track(p, uuid(RUNS, t->thread), uuid(THREADS, t->thread), "running");
    put_track(p);
}

static void put_counter(struct perfetto *p, uint64_t id, uint64_t parent,
                        const char *name)
{
    begin_track(p, id, parent, name);
    message_number(&p->inner, COUNTER_UNIT, UNIT_COUNT);
    message_add(&p->part, TRACK_COUNTER, &p->inner);
    put_track(p);
}

// What the thread that leaves has counted: a track of a CPU for each counter.
static uint64_t counter_uuid(uint32_t cpu, uint32_t i)
{
    return uuid(COUNTS, cpu * TRACE_COUNTERS + i);
}

static void put_cpu_counters(struct perfetto *p)
{
    const struct trace_file *f = p->tracks.file;

    for (uint32_t cpu = 0; cpu < f->head.cpus; cpu++) {
        for (uint32_t i = 0; i < TRACE_COUNTERS; i++)
            put_counter(p, counter_uuid(cpu, i), uuid(CPUS, cpu),
                        f->counters[i]);
    }
}

static void put_cpus(struct perfetto *p)
{
    char name[32];

    begin_track(p, uuid(ALL_CPUS, 0), 0, "CPUs");
    put_track(p);
    for (uint32_t i = 0; i < p->tracks.file->head.cpus; i++) {
        snprintf(name, sizeof(name), "CPU %" PRIu32, i);
        begin_track(p, uuid(CPUS, i), uuid(ALL_CPUS, 0), name);
        put_track(p);
    }
    put_counter(p, uuid(LOSSES, 0), uuid(ALL_CPUS, 0), "lost events");
    if (p->tracks.file->head.points & 1u << TRACE_sched_pmc)
        put_cpu_counters(p);
}

// --- scheduling -------------------------------------------------------------

static void put_comm(struct perfetto *p, uint32_t field, uint32_t thread)
{
    uint32_t task;
    const char *name = trace_file_name(p->tracks.file, thread, &task);

    if (name)
        message_text(&p->inner, field, name);
}

static void put_switch(struct perfetto *p, const struct trace_event *e)
{
    // Linux's, include/linux/sched.h: TASK_RUNNING 0, TASK_INTERRUPTIBLE 1,
    // TASK_UNINTERRUPTIBLE 2, __TASK_STOPPED 4, EXIT_DEAD 16. By the kernel's
    // enum thread_state.
    static const uint8_t states[] = { 0, 0, 2, 1, 4, 16 };
    struct trace_sched_switch s;

    trace_fields(e, &s, sizeof(s));
    put_comm(p, SWITCH_PREV_COMM, s.prev);
    message_value(&p->inner, SWITCH_PREV_PID, s.prev);
    message_value(&p->inner, SWITCH_PREV_STATE,
                  s.prev && s.state < sizeof(states) ? states[s.state] : 0);
    put_comm(p, SWITCH_NEXT_COMM, s.next);
    message_value(&p->inner, SWITCH_NEXT_PID, s.next);
    message_add(&p->part, FTRACE_SWITCH, &p->inner);
}

static void put_waking(struct perfetto *p, const struct trace_event *e)
{
    struct trace_sched_wake w;

    trace_fields(e, &w, sizeof(w));
    put_comm(p, WAKING_COMM, w.thread);
    message_value(&p->inner, WAKING_PID, w.thread);
    message_value(&p->inner, WAKING_SUCCESS, 1);
    message_value(&p->inner, WAKING_CPU, w.cpu);
    message_add(&p->part, FTRACE_WAKING, &p->inner);
}

static void on_sched(void *arg, const struct trace_event *e, uint64_t at)
{
    struct perfetto *p = arg;

    // Readers refuse a bundle without a CPU and an event without a time.
    message_value(&p->part, FTRACE_TIMESTAMP, tracks_ns(&p->tracks, at));
    message_value(&p->part, FTRACE_PID, e->thread);
    if (e->type == TRACE_sched_switch)
        put_switch(p, e);
    else
        put_waking(p, e);
    message_value(&p->event, BUNDLE_CPU, e->cpu);
    message_add(&p->event, BUNDLE_EVENT, &p->part);
    message_add(&p->packet, PACKET_FTRACE, &p->event);
    perfetto_put(p->out, &p->packet);
}

static void on_piece(void *arg, const struct life *t, uint64_t until)
{
    struct perfetto *p = arg;
    uint64_t track = uuid(RUNS, t->thread);

    if (!p->tracks.file->head.task)
        return; // Perfetto makes it of the switches
    begin_event(p, SLICE_BEGIN, track);
    set_name(p, NAME_RUNNING, "running");
    annotate(p, CPU, ANNOTATION_UINT, t->cpu);
    put_slice(p, track, t->since, until);
}

// --- slices -----------------------------------------------------------------

static void put_interrupt(struct perfetto *p, const struct span *s)
{
    uint64_t track = uuid(CPUS, s->cpu);
    char name[32];

    snprintf(name, sizeof(name), "interrupt %" PRIu32, s->what);
    begin_event(p, SLICE_BEGIN, track);
    set_name(p, s->what < VECTORS ? NAME_VECTOR + s->what : NAMES, name);
    put_slice(p, track, s->begin, s->end);
}

static void on_span(void *arg, const struct span *s)
{
    static const char end[] = "the thread's or the trace's";
    struct perfetto *p = arg;
    uint64_t track = uuid(THREADS, s->thread);

    if (s->kind == SPAN_INTERRUPT) {
        put_interrupt(p, s);
        return;
    }
    begin_event(p, SLICE_BEGIN, track);
    if (s->kind == SPAN_CALL) {
        set_name(p, s->what < CALLS ? NAME_CALL + s->what : NAMES,
                 trace_call_name(s->what));
        annotate(p, NUMBER, ANNOTATION_UINT, s->what);
    } else {
        set_name(p, NAME_FAULT, "page fault");
        annotate(p, ADDRESS, ANNOTATION_POINTER, s->what);
    }
    if (s->whole)
        annotate(p, RESULT, ANNOTATION_INT,
                 (uint64_t)(int64_t)(int32_t)s->result);
    else
        annotate_text(p, END, end, sizeof(end) - 1);
    put_slice(p, track, s->begin, s->end);
}

static void add_flow(struct perfetto *p, const struct trace_event *e)
{
    bool ends;
    uint64_t flow = trace_flow(&p->flows, e, &ends);

    if (flow)
        message_fixed(&p->event, ends ? EVENT_FLOW_END : EVENT_FLOW, flow);
}

static void put_instant(struct perfetto *p, const struct trace_event *e,
                        uint64_t track)
{
    size_t size;
    const char *text = tracks_text(&p->tracks, e, &size);

    begin_event(p, INSTANT, track);
    set_name(p, NAME_POINT + e->type, trace_point_name(e->type));
    annotate_text(p, EVENT, text, size);
    annotate(p, CPU, ANNOTATION_UINT, e->cpu);
    add_flow(p, e);
    put_event(p, e->time);
}

static void put_count(struct perfetto *p, const struct trace_event *e,
                      uint32_t i, uint64_t count)
{
    begin_event(p, COUNTER, counter_uuid(e->cpu, i));
    message_value(&p->event, EVENT_COUNTER, count);
    put_event(p, e->time);
}

static void put_counts(struct perfetto *p, const struct trace_event *e)
{
    struct trace_sched_pmc counts;

    if (e->cpu >= p->tracks.file->head.cpus ||
        !trace_fields(e, &counts, sizeof(counts)))
        return;
    put_count(p, e, 0, counts.first);
    put_count(p, e, 1, counts.second);
}

static void on_point(void *arg, const struct trace_event *e)
{
    if (e->type == TRACE_sched_pmc)
        put_counts(arg, e);
    put_instant(arg, e,
                e->thread ? uuid(THREADS, e->thread) : uuid(CPUS, e->cpu));
}

static void put_losses(struct perfetto *p, uint64_t time)
{
    begin_event(p, COUNTER, uuid(LOSSES, 0));
    message_value(&p->event, EVENT_COUNTER, p->tracks.lost);
    put_event(p, time);
}

static void on_lost(void *arg, const struct trace_event *e, uint64_t time)
{
    struct perfetto *p = arg;

    put_losses(p, time);
    if (e)
        put_instant(p, e, uuid(CPUS, e->cpu));
}

// --- sensors ----------------------------------------------------------------

static void put_sensors(struct perfetto *p)
{
    const struct recording *r = &p->tracks.file->sensors;
    char name[SENSED_NAME_BYTES], text[SENSED_NAME_BYTES + 8];

    if (!r->sensor_count)
        return;
    begin_track(p, uuid(SENSORS, 0), 0, "sensors");
    put_track(p);
    for (uint32_t i = 0; i < r->sensor_count; i++) {
        const struct sensor_layout *l = &r->sensors[i].layout;
        bool sums = l->type == SENSOR_HISTOGRAM;
        sensed_name(&r->sensors[i], name);
        snprintf(text, sizeof(text), "%s%s", name, sums ? " sum" : "");
        begin_track(p, uuid(SENSOR, i), uuid(SENSORS, 0), text);
        if (l->type == SENSOR_SCALAR && l->scalar.kind == SENSOR_COUNTER)
            message_number(&p->inner, COUNTER_UNIT, UNIT_COUNT);
        if (sums || l->type == SENSOR_SCALAR)
            message_add(&p->part, TRACK_COUNTER, &p->inner);
        put_track(p);
    }
}

static void on_sensed(void *arg, const struct recorded *one)
{
    struct perfetto *p = arg;
    uint64_t value, track = uuid(SENSOR, one->source);
    uint32_t thread, cpu;
    char name[SENSED_NAME_BYTES];
    size_t size;

    if (sensed_value(one, &value)) {
        begin_event(p, COUNTER, track);
        message_value(&p->event, EVENT_COUNTER, value);
        put_event(p, one->tsc);
        return;
    }
    bool known = sensed_thread(one, &thread, &cpu);
    const char *text = tracks_sensed_text(&p->tracks, one, &size);
    begin_event(p, INSTANT, known && thread ? uuid(THREADS, thread) : track);
    sensed_name(sensed_sensor(p->tracks.file, one), name);
    set_name(p, NAMES, name);
    annotate_text(p, EVENT, text, size);
    if (known)
        annotate(p, CPU, ANNOTATION_UINT, cpu);
    put_event(p, one->tsc);
}

// --- the file ---------------------------------------------------------------

static void put_head(struct perfetto *p)
{
    const struct trace_file *f = p->tracks.file;

    for (uint32_t i = 0; i < sizeof(annotations) / sizeof(*annotations); i++) {
        message_number(&p->inner, INTERNED_ID, i + 1);
        message_text(&p->inner, INTERNED_TEXT, annotations[i]);
        message_add(&p->interned, INTERNED_ANNOTATION_NAME, &p->inner);
    }
    message_number(&p->packet, PACKET_FLAGS, FLAG_CLEARED);
    message_add(&p->packet, PACKET_INTERNED, &p->interned);
    message_number(&p->packet, PACKET_FIRST, 1);
    perfetto_put(p->out, &p->packet);
    put_cpus(p);
    put_sensors(p);
    put_losses(p, 0);
    begin_event(p, INSTANT, uuid(ALL_CPUS, 0));
    set_name(p, NAME_RECORDING, "recording");
    annotate_text(p, COMMAND, f->command, strlen(f->command));
    annotate(p, TSC_HZ, ANNOTATION_UINT, f->tsc_hz);
    put_event(p, 0);
}

static void put_end(struct perfetto *p)
{
    const struct tracks *t = &p->tracks;

    // Programs' last names.
    for (uint32_t i = 0; i < t->thread_count; i++)
        put_thread(p, &t->threads[i]);
    if (t->file->has_end)
        return;
    begin_event(p, INSTANT, uuid(ALL_CPUS, 0));
    set_name(p, NAME_CUT, "the file was cut off");
    put_event(p, t->last);
}

const char *trace_perfetto(FILE *out, struct trace_file *f)
{
    static const struct tracks_writer writer = { .piece = on_piece,
                                                 .span = on_span,
                                                 .sched = on_sched,
                                                 .point = on_point,
                                                 .lost = on_lost,
                                                 .sensed = on_sensed,
                                                 .thread = on_thread };
    struct perfetto p = { .out = out,
                          .tracks = { .file = f, .to = &writer, .arg = &p } };

    put_head(&p);
    const char *problem = tracks_tell(&p.tracks);
    put_end(&p);
    tracks_free(&p.tracks);
    trace_flows_free(&p.flows);
    message_free(&p.packet);
    message_free(&p.event);
    message_free(&p.interned);
    message_free(&p.part);
    message_free(&p.inner);
    return problem;
}
