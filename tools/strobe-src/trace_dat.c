// A trace as a trace.dat file of version 6, for trace-cmd and KernelShark.
//
// The file: trace-cmd.dat.v6(5) of trace-cmd. A head of texts and tables, each
// behind its size; then, from a page's begin on, the pages of each CPU.
//
// A page: Linux's kernel/trace/ring_buffer.c, struct buffer_data_page, and
// include/linux/ring_buffer.h, enum ring_buffer_type. u64 time, a long with the
// bytes of events and the flags of losses, then events: a word with 5 bits of
// type or length and 27 bits of time since the event before; its data. A
// TIME_EXTEND precedes an event that is further from the one before. As of a
// 32-bit kernel a long has 4 bytes.
//
// Events that are missing are told at a page's begin (RB_MISSED_EVENTS), and
// how many behind its events (RB_MISSED_STORED). So a loss begins a new page,
// and readers tell it before that page's first event.
//
// The pages of a CPU are together in the file, but its events are mixed with
// those of the others: each CPU has a temporary file.
#include "trace_dat.h"

#include "trace_export.h"

#include "user/libtrace/sensed.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES 4096u
#define LONG_BYTES 4u
#define DELTA_BITS 27
#define EXTEND_BITS 59 // DELTA_BITS, and a word
#define TIME_EXTEND 30u
#define MISSED_EVENTS (1u << 31)
#define MISSED_STORED (1u << 30)

// Options of the head.
enum { OPTION_END, OPTION_CPUSTAT = 2, OPTION_TRACECLOCK = 4 };

struct page_head {
    uint64_t time;
    uint32_t commit;
} __attribute__((packed));

// What precedes an event with a TIME_EXTEND, and the number of those that are
// missing.
#define EVENT_EXTRA (8 + 8 + LONG_BYTES)
#define SMALL_MOST \
    112u // bytes: of longer ones a word has the length, its own
         // 4 bytes included

struct dat_stream {
    FILE *pages;    // NULL: none yet
    uint64_t bytes; // of it
    uint8_t page[PAGE_BYTES];
    uint32_t used; // of `page`; 0: none is begun
    uint64_t time; // of the last event
    uint64_t events, lost;
    uint64_t lost_before; // the page's first event
    uint64_t lost_last;   // since the last event
};

struct dat {
    struct trace_file *file;
    struct dat_stream *streams[TRACE_CPUS_MAX];
    uint32_t cpus;
    uint64_t unknown; // events of no known type
    const char *problem;
};

static const char no_memory[] = "not enough memory";
static const char no_space[] =
    "its pages cannot be written to a temporary file: is /tmp full?";

// --- pages ------------------------------------------------------------------

static void put_word(struct dat_stream *s, uint32_t word)
{
    memcpy(s->page + s->used, &word, sizeof(word));
    s->used += (uint32_t)sizeof(word);
}

static void begin_page(struct dat_stream *s, uint64_t time)
{
    memset(s->page, 0, sizeof(s->page));
    memcpy(s->page, &time, sizeof(time));
    s->used = sizeof(struct page_head);
    s->lost_before = s->lost_last;
    s->lost_last = 0;
}

static void end_page(struct dat *d, struct dat_stream *s)
{
    uint32_t commit = s->used - (uint32_t)sizeof(struct page_head);

    if (!s->used)
        return;
    if (s->lost_before) {
        put_word(s, s->lost_before < UINT32_MAX ? (uint32_t)s->lost_before
                                                : UINT32_MAX);
        commit |= MISSED_EVENTS | MISSED_STORED;
    }
    memcpy(s->page + offsetof(struct page_head, commit), &commit,
           sizeof(commit));
    if (fwrite(s->page, 1, PAGE_BYTES, s->pages) != PAGE_BYTES)
        d->problem = no_space;
    s->bytes += PAGE_BYTES;
    s->used = 0;
}

static void put_event(struct dat *d, struct dat_stream *s, uint64_t time,
                      const uint8_t *event, uint32_t bytes)
{
    // In a damaged file it may be earlier.
    uint64_t delta = time > s->time ? time - s->time : 0;

    s->time += delta;
    if (s->used > PAGE_BYTES - EVENT_EXTRA - bytes || delta >> EXTEND_BITS)
        end_page(d, s);
    if (!s->used) {
        begin_page(s, s->time);
        delta = 0;
    }
    if (delta >> DELTA_BITS) {
        put_word(s, (uint32_t)delta << 5 | TIME_EXTEND);
        put_word(s, (uint32_t)(delta >> DELTA_BITS));
        delta = 0;
    }
    put_word(s, (uint32_t)delta << 5 | (bytes <= SMALL_MOST ? bytes / 4 : 0));
    if (bytes > SMALL_MOST)
        put_word(s, bytes + 4);
    memcpy(s->page + s->used, event, bytes);
    s->used += bytes;
    s->events++;
}

static struct dat_stream *stream_of(struct dat *d, uint32_t cpu)
{
    struct dat_stream **s = &d->streams[cpu];

    if (*s || d->problem)
        return *s;
    *s = calloc(1, sizeof(**s));
    if (!*s) {
        d->problem = no_memory;
        return NULL;
    }
    (*s)->pages = tmpfile();
    if (!(*s)->pages)
        d->problem = no_space;
    if (cpu >= d->cpus)
        d->cpus = cpu + 1;
    return *s;
}

static void on_event(void *arg, const struct trace_event *e)
{
    struct dat *d = arg;
    struct dat_stream *s = stream_of(d, e->cpu);
    uint8_t event[DAT_EVENT_MOST];
    uint32_t n;

    if (d->problem)
        return;
    if (e->type == TRACE_R_LOST) {
        memcpy(&n, e->fields, sizeof(n));
        end_page(d, s);
        s->lost += n;
        s->lost_last += n;
        return;
    }
    n = dat_event(event, d->file, e);
    if (n)
        put_event(d, s, trace_file_ns(d->file, e->time), event, n);
    else
        d->unknown++;
}

// Events of lists are on the CPU that they say; all others on CPU 0.
static void on_sensed(void *arg, const struct recorded *one)
{
    struct dat *d = arg;
    uint8_t event[DAT_SENSED_MOST];
    uint32_t thread, cpu;

    if (!sensed_thread(one, &thread, &cpu) || cpu >= d->file->head.cpus)
        cpu = 0;
    struct dat_stream *s = stream_of(d, cpu);
    if (d->problem)
        return;
    uint32_t n = dat_sensed(event, d->file, one);
    put_event(d, s, trace_file_ns(d->file, one->tsc), event, n);
}

// --- the head ---------------------------------------------------------------

// Texts like those of Linux's events/header_page and header_event. Readers take
// the size of a long from the first one.
static const char page_text[] =
    "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
    "\tfield: local_t commit;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
    "\tfield: char data;\toffset:12;\tsize:4084;\tsigned:1;\n";
static const char event_text[] = "# compressed entry header\n"
                                 "\ttype_len    :    5 bits\n"
                                 "\ttime_delta  :   27 bits\n"
                                 "\tarray       :   32 bits\n"
                                 "\n"
                                 "\tpadding     : type == 29\n"
                                 "\ttime_extend : type == 30\n"
                                 "\ttime_stamp : type == 31\n"
                                 "\tdata max type_len  == 28\n";
// The one in brackets is the trace's: ns, of a clock that is never set.
// trace-cmd reads up to a NUL, so the text has one.
static const char clock_text[] = "[mono]";

_Static_assert(sizeof(struct page_head) == 12, "as in page_text");

static void put_text(FILE *out, const char *name, const char *text)
{
    fwrite(name, 1, strlen(name) + 1, out);
    dat_put_number(out, strlen(text), 8);
    fputs(text, out);
}

static void put_begin(FILE *out)
{
    static const char magic[] = "\x17\x08\x44tracing6";

    fwrite(magic, 1, sizeof(magic), out);
    dat_put_number(out, 0, 1); // little-endian
    dat_put_number(out, LONG_BYTES, 1);
    dat_put_number(out, PAGE_BYTES, 4);
    put_text(out, "header_page", page_text);
    put_text(out, "header_event", event_text);
    dat_put_number(out, 0, 4); // formats of Linux's function tracer
}

static void put_clock(FILE *out, uint32_t size_bytes)
{
    dat_put_number(out, sizeof(clock_text), size_bytes);
    fwrite(clock_text, 1, sizeof(clock_text), out);
}

// Lines of a number and a name.
static void put_threads(FILE *out, const void *arg)
{
    const struct trace_file *f = arg;
    const char *name;
    uint32_t thread;

    for (uint32_t n = 0; (name = trace_file_nth_name(f, n, &thread)); n++)
        fprintf(out, "%" PRIu32 " %s\n", thread, name);
}

// What `trace-cmd report --stat` shows.
static void put_statistics(FILE *out, const void *arg)
{
    const struct dat *d = arg;
    const struct trace_file *f = d->file;
    uint64_t lost = (uint64_t)f->end.lost[1] << 32 | f->end.lost[0];

    fprintf(out, "command: %s\n", f->command);
    for (uint32_t i = 0; i < d->cpus; i++) {
        const struct dat_stream *s = d->streams[i];
        fprintf(out,
                "CPU: %" PRIu32 "\nevents: %" PRIu64 "\nlost: %" PRIu64
                "\nlost after its last event: %" PRIu64 "\n",
                i, s ? s->events : 0, s ? s->lost : 0, s ? s->lost_last : 0);
    }
    fprintf(out, "lost after a CPU's last event, of any CPU: %" PRIu64 "\n",
            lost > f->reader.lost ? lost - f->reader.lost : 0);
    if (!f->has_end)
        fputs("the trace was cut off\n", out);
    fputc('\0', out);
}

// As Linux's /proc/kallsyms.
static void put_functions(FILE *out, const void *arg)
{
    const struct functions *f = &((const struct trace_file *)arg)->functions;

    for (uint32_t i = 0; i < f->count; i++)
        fprintf(out, "%08" PRIx32 " t %s\n", f->list[i].address,
                f->list[i].name);
}

// All up to the pages' places, but for these.
static void put_head(FILE *out, const void *arg)
{
    const struct dat *d = arg;

    put_begin(out);
    dat_put_formats(out);
    dat_put_made(out, 4, put_functions, d->file);
    dat_put_number(out, 0, 4); // formats of trace_printk()
    dat_put_made(out, 8, put_threads, d->file);
    dat_put_number(out, d->cpus, 4);
    fwrite("options  ", 1, 10, out);
    dat_put_number(out, OPTION_CPUSTAT, 2);
    dat_put_made(out, 4, put_statistics, d);
    dat_put_number(out, OPTION_TRACECLOCK, 2);
    put_clock(out, 4); // and again behind the pages' places
    dat_put_number(out, OPTION_END, 2);
    fwrite("flyrecord", 1, 10, out);
}

static uint64_t bytes_of(const struct dat *d, uint32_t cpu)
{
    return d->streams[cpu] ? d->streams[cpu]->bytes : 0;
}

// Where they are, of each CPU, as `bytes` precede all this.
static void put_places(FILE *out, const struct dat *d, uint64_t bytes)
{
    bytes += d->cpus * 16 + 8 + sizeof(clock_text);
    uint64_t padding = -bytes % PAGE_BYTES, at = bytes + padding;

    for (uint32_t i = 0; i < d->cpus; at += bytes_of(d, i), i++) {
        dat_put_number(out, at, 8);
        dat_put_number(out, bytes_of(d, i), 8);
    }
    put_clock(out, 8);
    while (padding--)
        fputc(0, out);
}

// --- the file ---------------------------------------------------------------

static void put_pages(struct dat *d, FILE *out, FILE *pages)
{
    uint8_t page[PAGE_BYTES];

    rewind(pages);
    while (fread(page, 1, sizeof(page), pages) == sizeof(page))
        fwrite(page, 1, sizeof(page), out);
    if (ferror(pages))
        d->problem = no_space;
}

static void end_streams(struct dat *d)
{
    for (uint32_t i = 0; i < d->cpus; i++) {
        struct dat_stream *s = d->streams[i];
        if (s && s->pages) {
            end_page(d, s);
            if (fflush(s->pages) != 0)
                d->problem = no_space;
        }
    }
}

static void put_file(struct dat *d, FILE *out)
{
    uint64_t bytes = dat_put_made(out, 0, put_head, d);

    if (!bytes) {
        d->problem = no_memory;
        return;
    }
    put_places(out, d, bytes);
    for (uint32_t i = 0; i < d->cpus; i++) {
        if (d->streams[i])
            put_pages(d, out, d->streams[i]->pages);
    }
}

const char *trace_dat(FILE *out, struct trace_file *f)
{
    struct dat d = { .file = f, .cpus = f->head.cpus ? f->head.cpus : 1 };

    f->sensed = on_sensed;
    const char *problem = trace_file_events(f, on_event, &d);
    f->sensed = NULL;

    end_streams(&d);
    if (!d.problem)
        put_file(&d, out);
    for (uint32_t i = 0; i < TRACE_CPUS_MAX; i++) {
        if (d.streams[i] && d.streams[i]->pages)
            fclose(d.streams[i]->pages);
        free(d.streams[i]);
    }
    if (d.unknown && !problem)
        problem = "it has events of unknown types, which are left out";
    return d.problem ? d.problem : problem;
}
