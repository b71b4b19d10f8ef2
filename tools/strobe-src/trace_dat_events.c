// Events of a trace.dat file: their formats, which the file has as texts like
// those of Linux's events/SYSTEM/EVENT/format, and the data in the pages.
//
// Some points are events of Linux, with its names of fields, so that trace-cmd
// and KernelShark know what they are. Priorities, which their plugins demand,
// are 0; other fields that the trace has no values for are left out. A page
// fault is one of two events. All others are in the system "strobe", with the
// fields of points.def. What sensors had is there as `strobe:sensor`, a text.
//
// Each event begins with Linux's common fields: Documentation/trace/events.rst,
// "Event formats".
#include "trace_dat.h"

#include "user/libtrace/graph.h"
#include "user/libtrace/points.h"
#include "user/libtrace/sensed.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define NO_PRIORITY 0  // it is not in the trace
#define COMM_BYTES 16u // TASK_COMM_LEN, with the NUL

// Numbers of events: of a type, and of faults in the kernel, whose type has two
// events. Linux's own, fixed numbers are lower.
#define EVENT_ID(type) (100u + (type))
#define KERNEL_FAULT EVENT_ID(1u << TRACE_TYPE_BITS)
#define SENSED (KERNEL_FAULT + 1)
#define FAULT_BY_PROGRAM 4u // in its error code: Intel SDM vol. 3, 4.7

struct common {
    uint16_t type;
    uint8_t flags, preempt_count;
    int32_t pid;
};
struct sched_switch {
    struct common c;
    char prev_comm[COMM_BYTES];
    int32_t prev_pid, prev_prio, prev_state;
    char next_comm[COMM_BYTES];
    int32_t next_pid, next_prio;
};
struct sched_wakeup {
    struct common c;
    char comm[COMM_BYTES];
    int32_t pid, prio, target_cpu;
};
struct sys_enter {
    struct common c;
    int32_t id;
};
struct sys_exit {
    struct common c;
    int32_t id, ret;
};
struct irq_handler {
    struct common c;
    int32_t irq;
};
struct ftrace_function {
    struct common c;
    uint32_t ip, parent_ip;
};
struct page_fault {
    struct common c;
    uint32_t address, error_code;
};

_Static_assert(sizeof(struct common) + TRACE_FIELDS_MAX <= DAT_EVENT_MOST,
               "room for the longest record");
_Static_assert(sizeof(struct sched_switch) <= DAT_EVENT_MOST, "room");

// --- the events that Linux has, too -----------------------------------------

struct dat_field {
    const char *declaration; // NULL ends a list
    size_t offset, size;
    bool is_signed;
};
#define FIELD(structure, declaration, member, is_signed)       \
    {                                                          \
        declaration, offsetof(struct structure, member),       \
            sizeof(((struct structure *)0)->member), is_signed \
    }

static const struct dat_field switch_fields[] = {
    FIELD(sched_switch, "char prev_comm[16]", prev_comm, true),
    FIELD(sched_switch, "pid_t prev_pid", prev_pid, true),
    FIELD(sched_switch, "int prev_prio", prev_prio, true),
    FIELD(sched_switch, "long prev_state", prev_state, true),
    FIELD(sched_switch, "char next_comm[16]", next_comm, true),
    FIELD(sched_switch, "pid_t next_pid", next_pid, true),
    FIELD(sched_switch, "int next_prio", next_prio, true),
    { 0 },
};
static const struct dat_field wakeup_fields[] = {
    FIELD(sched_wakeup, "char comm[16]", comm, true),
    FIELD(sched_wakeup, "pid_t pid", pid, true),
    FIELD(sched_wakeup, "int prio", prio, true),
    FIELD(sched_wakeup, "int target_cpu", target_cpu, true),
    { 0 },
};
static const struct dat_field enter_fields[] = {
    FIELD(sys_enter, "long id", id, true),
    { 0 },
};
static const struct dat_field exit_fields[] = {
    FIELD(sys_exit, "long id", id, true),
    FIELD(sys_exit, "long ret", ret, true),
    { 0 },
};
static const struct dat_field irq_fields[] = {
    FIELD(irq_handler, "int irq", irq, true),
    { 0 },
};
static const struct dat_field fault_fields[] = {
    FIELD(page_fault, "unsigned long address", address, false),
    FIELD(page_fault, "unsigned long error_code", error_code, false),
    { 0 },
};

static const struct dat_field function_fields[] = {
    FIELD(ftrace_function, "unsigned long ip", ip, false),
    FIELD(ftrace_function, "unsigned long parent_ip", parent_ip, false),
    { 0 },
};

static const char fault_print[] =
    "\"address=0x%lx error_code=0x%lx\", REC->address, REC->error_code";

// In the order of systems.
static const struct linux_event {
    uint32_t id;
    const char *system, *name;
    const struct dat_field *fields;
    const char *print;
    bool names_call; // the last one printed: the name of the call `id`
} linux_events[] = {
    { EVENT_ID(TRACE_sched_switch), "sched", "sched_switch", switch_fields,
      "\"prev_comm=%s prev_pid=%d prev_state=%s ==> next_comm=%s "
      "next_pid=%d\", REC->prev_comm, REC->prev_pid, "
      "__print_symbolic(REC->prev_state, { 0, \"R\" }, { 1, \"S\" }, "
      "{ 2, \"D\" }, { 4, \"T\" }, { 16, \"X\" }), REC->next_comm, "
      "REC->next_pid",
      false },
    { EVENT_ID(TRACE_sched_wake), "sched", "sched_wakeup", wakeup_fields,
      "\"comm=%s pid=%d target_cpu=%03d\", REC->comm, REC->pid, "
      "REC->target_cpu",
      false },
    { EVENT_ID(TRACE_syscall_enter), "raw_syscalls", "sys_enter", enter_fields,
      "\"NR %ld (%s)\", REC->id", true },
    { EVENT_ID(TRACE_syscall_exit), "raw_syscalls", "sys_exit", exit_fields,
      "\"NR %ld = %ld (%s)\", REC->id, REC->ret", true },
    { EVENT_ID(TRACE_irq_enter), "irq", "irq_handler_entry", irq_fields,
      "\"irq=%d\", REC->irq", false },
    { EVENT_ID(TRACE_irq_exit), "irq", "irq_handler_exit", irq_fields,
      "\"irq=%d\", REC->irq", false },
    { EVENT_ID(TRACE_page_fault), "exceptions", "page_fault_user", fault_fields,
      fault_print, false },
    { KERNEL_FAULT, "exceptions", "page_fault_kernel", fault_fields,
      fault_print, false },
    // Names are those of the file's section of functions.
    { EVENT_ID(TRACE_R_CALL), "ftrace", "function", function_fields,
      "\" %ps <-- %ps\", (void *)REC->ip, (void *)REC->parent_ip", false },
};
#define LINUX_EVENTS (sizeof(linux_events) / sizeof(linux_events[0]))

static bool is_linux(uint32_t type)
{
    for (size_t i = 0; i < LINUX_EVENTS; i++) {
        if (linux_events[i].id == EVENT_ID(type))
            return true;
    }
    return false;
}

// --- data -------------------------------------------------------------------

static uint32_t word(const struct trace_event *e, uint32_t n)
{
    uint32_t w;

    memcpy(&w, e->fields + n * 4, sizeof(w));
    return w;
}

static void put_comm(char out[COMM_BYTES], const struct trace_file *f,
                     uint32_t thread, uint32_t cpu)
{
    uint32_t task;
    const char *known = trace_file_name(f, thread, &task);
    char name[32];

    if (thread)
        snprintf(name, sizeof(name), "%s", known ? known : "?");
    else
        snprintf(name, sizeof(name), "swapper/%" PRIu32, cpu);
    memcpy(out, name, strnlen(name, COMM_BYTES - 1));
}

// Linux's bits of a thread's state, for those of the kernel. (TASK_REPORT in
// its include/linux/sched.h.) One that could go on is runnable.
static int32_t linux_state(uint8_t state)
{
    static const uint8_t bits[] = { 0, 0, 2, 1, 4, 16 };

    return state < sizeof(bits) ? bits[state] : 0;
}

static uint32_t put_switch(uint8_t *out, struct common c,
                           const struct trace_file *f,
                           const struct trace_event *e)
{
    struct trace_sched_switch s;
    struct sched_switch d = { .c = c,
                              .prev_prio = NO_PRIORITY,
                              .next_prio = NO_PRIORITY };

    memcpy(&s, e->fields, sizeof(s));
    put_comm(d.prev_comm, f, s.prev, e->cpu);
    d.prev_pid = (int32_t)s.prev;
    d.prev_state = linux_state(s.state);
    put_comm(d.next_comm, f, s.next, e->cpu);
    d.next_pid = (int32_t)s.next;
    memcpy(out, &d, sizeof(d));
    return sizeof(d);
}

static uint32_t put_wakeup(uint8_t *out, struct common c,
                           const struct trace_file *f,
                           const struct trace_event *e)
{
    struct sched_wakeup d = { .c = c,
                              .pid = (int32_t)word(e, 0),
                              .prio = NO_PRIORITY,
                              .target_cpu = (int32_t)word(e, 1) };

    put_comm(d.comm, f, word(e, 0), word(e, 1));
    memcpy(out, &d, sizeof(d));
    return sizeof(d);
}

// All others have the record's fields, or the first of them.
static uint32_t put_fields(uint8_t *out, struct common c,
                           const struct trace_event *e)
{
    uint32_t bytes = e->type == TRACE_irq_enter
                         ? sizeof(struct irq_handler) - sizeof(c)
                         : trace_fields_bytes(trace_type_fields(e->type));

    memset(out, 0, DAT_EVENT_MOST);
    memcpy(out, &c, sizeof(c));
    memcpy(out + sizeof(c), e->fields, bytes);
    return (uint32_t)(sizeof(c) + bytes + 3) / 4 * 4;
}

uint32_t dat_event(uint8_t out[DAT_EVENT_MOST], const struct trace_file *f,
                   const struct trace_event *e)
{
    struct common c = { .type = (uint16_t)EVENT_ID(e->type),
                        .pid = (int32_t)e->thread };

    if (!trace_type_fields(e->type))
        return 0;
    if (e->type == TRACE_page_fault && !(word(e, 1) & FAULT_BY_PROGRAM))
        c.type = (uint16_t)KERNEL_FAULT;
    return e->type == TRACE_sched_switch ? put_switch(out, c, f, e)
           : e->type == TRACE_sched_wake ? put_wakeup(out, c, f, e)
                                         : put_fields(out, c, e);
}

// The text is where `text` says: Documentation/trace/events.rst has nothing of
// this; include/trace/stages/ of Linux, __data_loc: the offset, and above it
// the bytes with the NUL.
struct sensed {
    struct common c;
    uint32_t text;
};

uint32_t dat_sensed(uint8_t out[DAT_SENSED_MOST], const struct trace_file *f,
                    const struct recorded *one)
{
    struct sensed d = { .c = { .type = SENSED } };
    char *text = (char *)out + sizeof(d), name[SENSED_NAME_BYTES];
    size_t room = DAT_SENSED_MOST - sizeof(d);
    uint32_t thread = 0, cpu;

    memset(out, 0, DAT_SENSED_MOST);
    sensed_thread(one, &thread, &cpu);
    d.c.pid = (int32_t)thread;
    sensed_name(sensed_sensor(f, one), name);
    char *made = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&made, &bytes);
    if (to) {
        fputs(name, to);
        sensed_text(to, f, one);
        fclose(to);
        if (bytes < room)
            strcpy(text, made);
        else
            snprintf(text, room, "%.*s...", (int)room - 4, made);
    }
    free(made);
    bytes = strlen(text) + 1;
    d.text = (uint32_t)(bytes << 16 | sizeof(d));
    memcpy(out, &d, sizeof(d));
    return (uint32_t)(sizeof(d) + bytes + 3) / 4 * 4;
}

// --- formats ----------------------------------------------------------------

static const struct dat_field common_fields[] = {
    FIELD(common, "unsigned short common_type", type, false),
    FIELD(common, "unsigned char common_flags", flags, false),
    FIELD(common, "unsigned char common_preempt_count", preempt_count, false),
    FIELD(common, "int common_pid", pid, true),
    { 0 },
};

static void put_field(FILE *out, const char *declaration, size_t offset,
                      size_t size, bool is_signed)
{
    fprintf(out, "\tfield:%s;\toffset:%zu;\tsize:%zu;\tsigned:%d;\n",
            declaration, offset, size, is_signed);
}

static void put_list(FILE *out, const struct dat_field *f)
{
    for (; f->declaration; f++)
        put_field(out, f->declaration, f->offset, f->size, f->is_signed);
}

static void begin_format(FILE *out, const char *name, uint32_t id)
{
    fprintf(out, "name: %s\nID: %" PRIu32 "\nformat:\n", name, id);
    put_list(out, common_fields);
    fputc('\n', out);
}

static void put_calls(FILE *out)
{
    const char *name;
    uint32_t number;

    fputs(", __print_symbolic(REC->id", out);
    for (uint32_t n = 0; (name = trace_nth_call(n, &number)); n++)
        fprintf(out, ", { %" PRIu32 ", \"%s\" }", number, name);
    fputc(')', out);
}

static void put_linux(FILE *out, const void *arg)
{
    const struct linux_event *l = arg;

    begin_format(out, l->name, l->id);
    put_list(out, l->fields);
    fprintf(out, "\nprint fmt: %s", l->print);
    if (l->names_call)
        put_calls(out);
    fputc('\n', out);
}

// Its name has no '/': that is between a system and an event.
static void put_type(FILE *out, const void *arg)
{
    uint32_t type = *(const uint32_t *)arg;
    const char *name = trace_point_name(type), *fields, *next;
    struct trace_field f;
    size_t offset = sizeof(struct common);
    char text[64];

    snprintf(text, sizeof(text), "%.*s_%s", (int)strcspn(name, "/"), name,
             strchr(name, '/') + 1);
    begin_format(out, text, EVENT_ID(type));
    fields = next = trace_type_fields(type);
    for (; trace_point_field(&next, &f); offset += f.bits / 8) {
        snprintf(text, sizeof(text), "u%" PRIu32 " %.*s", f.bits, (int)f.length,
                 f.name);
        put_field(out, text, offset, f.bits / 8, false);
    }
    fputs("\nprint fmt: \"", out);
    for (next = fields; trace_point_field(&next, &f);)
        fprintf(out, "%s%.*s=%s", f.name == fields + 1 ? "" : " ",
                (int)f.length, f.name,
                trace_field_is_address(&f) ? "0x%x"
                : f.bits == 64             ? "%llu"
                                           : "%u");
    fputc('"', out);
    for (next = fields; trace_point_field(&next, &f);)
        fprintf(out, ", REC->%.*s", (int)f.length, f.name);
    fputc('\n', out);
}

static void put_sensed(FILE *out, const void *arg)
{
    (void)arg;
    begin_format(out, "sensor", SENSED);
    put_field(out, "__data_loc char[] text", offsetof(struct sensed, text), 4,
              true);
    fputs("\nprint fmt: \"%s\", __get_str(text)\n", out);
}

// --- the section ------------------------------------------------------------

void dat_put_number(FILE *out, uint64_t n, uint32_t bytes)
{
    fwrite(&n, 1, bytes, out);
}

size_t dat_put_made(FILE *out, uint32_t size_bytes,
                    void (*put)(FILE *made, const void *arg), const void *arg)
{
    char *bytes = NULL;
    size_t size = 0;
    FILE *made = open_memstream(&bytes, &size);

    if (made) {
        put(made, arg);
        if (fclose(made) != 0)
            size = 0;
    }
    dat_put_number(out, size, size_bytes);
    fwrite(bytes, 1, size, out);
    free(bytes);
    return size;
}

static void begin_system(FILE *out, const char *name, uint32_t events)
{
    fwrite(name, 1, strlen(name) + 1, out);
    dat_put_number(out, events, 4);
}

// The events of the system whose first one is `first`.
static size_t events_of(size_t first)
{
    const char *system = linux_events[first].system;
    size_t end = first + 1;

    while (end < LINUX_EVENTS && strcmp(linux_events[end].system, system) == 0)
        end++;
    return end - first;
}

static uint32_t linux_systems(void)
{
    uint32_t n = 0;

    for (size_t i = 0; i < LINUX_EVENTS; i += events_of(i))
        n++;
    return n;
}

static void put_linux_system(FILE *out, size_t first)
{
    size_t events = events_of(first);

    begin_system(out, linux_events[first].system, (uint32_t)events);
    for (size_t i = first; i < first + events; i++)
        dat_put_made(out, 8, put_linux, &linux_events[i]);
}

static void put_own_system(FILE *out)
{
    uint32_t own = 0;

    for (uint32_t i = 0; i < 1u << TRACE_TYPE_BITS; i++)
        own += trace_type_fields(i) && !is_linux(i);
    begin_system(out, "strobe", own + 1);
    dat_put_made(out, 8, put_sensed, NULL);
    for (uint32_t i = 0; i < 1u << TRACE_TYPE_BITS; i++) {
        if (trace_type_fields(i) && !is_linux(i))
            dat_put_made(out, 8, put_type, &i);
    }
}

void dat_put_formats(FILE *out)
{
    dat_put_number(out, linux_systems() + 1, 4);
    for (size_t i = 0; i < LINUX_EVENTS; i += events_of(i))
        put_linux_system(out, i);
    put_own_system(out);
}
