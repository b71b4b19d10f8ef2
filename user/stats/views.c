// stats --memory, --kernel, --syscalls, --locks, --errors.
#include "stats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct sysinfo_field *field(uint32_t record, uint32_t index)
{
    return &sysinfo_record_type(record)->fields[index];
}

static void show_json(uint32_t record, const void *records, size_t count)
{
    sysinfo_print_json(stdout, record, records, count);
}

// ---- memory

int show_memory(const struct settings *s)
{
    static const struct table_column columns[] = {
        { "Memory", false },
        { "KiB", true },
        { "Share", true },
        { "Meaning", false },
    };
    const struct sysinfo_record_type *type =
        sysinfo_record_type(SYSINFO_RECORD_PHYSMEM);
    struct sysinfo_physmem m;
    struct table table;

    if (sysinfo_get_physmem("system.physmem", &m) < 0)
        sysinfo_fail("system.physmem");
    if (s->json) {
        sysinfo_print_json_record(stdout, SYSINFO_RECORD_PHYSMEM, &m);
        return 0;
    }
    table_init(&table, columns, 4);
    for (uint32_t i = 0; i < type->field_count; i++) {
        const struct sysinfo_field *f = field(SYSINFO_RECORD_PHYSMEM, i);
        uint64_t bytes = sysinfo_field_number(f, &m);
        table_add(&table, "%s", f->name);
        table_add(&table, "%" PRIu64, bytes / 1024);
        add_percent(&table, bytes, m.total);
        table_add(&table, "%s", f->meaning);
    }
    table_print(&table, stdout);
    return 0;
}

// ---- kernel time

static int by_kernel_cycles(const void *left, const void *right)
{
    const struct sysinfo_kernel *a = left, *b = right;

    return a->cycles < b->cycles ? 1 : a->cycles > b->cycles ? -1 : 0;
}

int show_kernel(const struct settings *s)
{
    static const struct table_column columns[] = {
        { "Subsystem", false },
        { "ms", true },
        { "Share", true },
        { "Entered", true },
    };
    uint64_t hz = sysinfo_frequency(), total = 0;
    size_t count;
    struct sysinfo_kernel *rows =
        read_optional("system.kernel", SYSINFO_RECORD_KERNEL, &count,
                      "kernel time by subsystem");
    struct table table;

    qsort(rows, count, sizeof(*rows), by_kernel_cycles);
    for (size_t i = 0; i < count; i++)
        total += rows[i].cycles;
    if (s->json) {
        show_json(SYSINFO_RECORD_KERNEL, rows, count);
        free(rows);
        return 0;
    }
    table_init(&table, columns, 4);
    for (size_t i = 0; i < count; i++) {
        table_add(&table, "%s", rows[i].name);
        table_add(&table, "%" PRIu64, sysinfo_milliseconds(rows[i].cycles, hz));
        add_percent(&table, rows[i].cycles, total);
        table_add(&table, "%" PRIu64, (uint64_t)rows[i].calls);
    }
    table_add(&table, "all kernel time");
    table_add(&table, "%" PRIu64, sysinfo_milliseconds(total, hz));
    add_percent(&table, total, total);
    table_add(&table, "%s", "");
    table_print(&table, stdout);
    free(rows);
    return 0;
}

// ---- system calls

static int by_syscall_cycles(const void *left, const void *right)
{
    const struct sysinfo_syscall *a = left, *b = right;

    if (a->cycles != b->cycles)
        return a->cycles < b->cycles ? 1 : -1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static struct sysinfo_syscall *read_syscalls(const struct settings *s,
                                             size_t *count)
{
    char path[SYSINFO_PATH_MAX] = "system.syscalls";

    if (s->one_task) {
        snprintf(path, sizeof(path), "system.tasks.%" PRIu32, s->task);
        if (sysinfo_get_type(path) < 0 && errno == ENOENT)
            fail(1, "no such task: %" PRIu32 " (see tasks)", s->task);
        strcat(path, ".syscalls");
    }
    return read_optional(path, SYSINFO_RECORD_SYSCALL, count, "system calls");
}

int show_syscalls(const struct settings *s)
{
    static const struct table_column columns[] = {
        { "Number", true }, { "Name", false },  { "Calls", true },
        { "Errors", true }, { "Cycles", true }, { "Cycles/call", true },
    };
    size_t count;
    struct sysinfo_syscall *rows = read_syscalls(s, &count);
    struct table table;

    qsort(rows, count, sizeof(*rows), by_syscall_cycles);
    if (s->json) {
        show_json(SYSINFO_RECORD_SYSCALL, rows, count);
        free(rows);
        return 0;
    }
    table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < count; i++) {
        const struct sysinfo_syscall *r = &rows[i];
        if (r->number == SYSINFO_ALL)
            table_add(&table, "-");
        else
            table_add(&table, "%" PRIu32, r->number);
        table_add(&table, "%s", r->name);
        table_add(&table, "%" PRIu64, (uint64_t)r->count);
        table_add(&table, "%" PRIu64, (uint64_t)r->errors);
        table_add(&table, "%" PRIu64, (uint64_t)r->cycles);
        table_add(&table, "%" PRIu64, r->count > 0 ? r->cycles / r->count : 0);
    }
    table_print(&table, stdout);
    free(rows);
    return 0;
}

// ---- locks

static int by_wait(const void *left, const void *right)
{
    const struct sysinfo_lock *a = left, *b = right;

    if (a->wait != b->wait)
        return a->wait < b->wait ? 1 : -1;
    return strncmp(a->name, b->name, sizeof(a->name));
}

// The mean of the measured holds, rounded. About every 63rd hold is measured.
static uint64_t mean_hold(const struct sysinfo_lock *r)
{
    return r->held > 0 ? (r->hold + r->held / 2) / r->held : 0;
}

int show_locks(const struct settings *s)
{
    static const struct table_column columns[] = {
        { "Lock", false },      { "Kind", false }, { "Taken", true },
        { "Contended", true },  { "Wait", true },  { "Wait/each", true },
        { "~Hold/each", true }, { "~Hold", true },
    };
    size_t count;
    struct sysinfo_lock *rows = read_optional(
        "system.locks", SYSINFO_RECORD_LOCK, &count, "the use of locks");
    struct table table;

    qsort(rows, count, sizeof(*rows), by_wait);
    if (s->json) {
        show_json(SYSINFO_RECORD_LOCK, rows, count);
        free(rows);
        return 0;
    }
    table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < count; i++) {
        const struct sysinfo_lock *r = &rows[i];
        uint64_t taken = r->acquisitions, contended = r->contended;
        table_add(&table, "%s", r->name);
        table_add(&table, "%s", r->kind);
        table_add(&table, "%" PRIu64, taken);
        table_add(&table, "%" PRIu64, contended);
        table_add(&table, "%" PRIu64, (uint64_t)r->wait);
        table_add(&table, "%" PRIu64, contended > 0 ? r->wait / contended : 0);
        if (r->held > 0) {
            table_add(&table, "%" PRIu64, mean_hold(r));
            table_add(&table, "%" PRIu64, mean_hold(r) * taken);
        } else {
            table_add(&table, "-");
            table_add(&table, "-");
        }
    }
    table_print(&table, stdout);
    puts(
        "Times in TSC cycles. ~: reckoned from holds measured about every 63rd "
        "time.");
    free(rows);
    return 0;
}

// ---- errors

int show_errors(const struct settings *s)
{
    static const struct table_column columns[] = {
        { "Error", false },
        { "Times", true },
        { "Handling", false },
    };
    size_t count;
    struct sysinfo_error *rows =
        read_optional("system.errors", SYSINFO_RECORD_ERROR, &count, "errors");
    struct table table;

    if (s->json) {
        show_json(SYSINFO_RECORD_ERROR, rows, count);
        free(rows);
        return 0;
    }
    table_init(&table, columns, 3);
    for (size_t i = 0; i < count; i++) {
        table_add(&table, "%s", rows[i].name);
        table_add(&table, "%" PRIu64, (uint64_t)rows[i].count);
        table_add(&table, "%s", rows[i].meaning);
    }
    table_print(&table, stdout);
    free(rows);
    return 0;
}
