// Prints records of the sysinfo tree as tables and JSON, by their descriptions.
#include "sysinfo.h"

#include "strobe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CELL 80 // the longest text has 64 bytes
#define FIXED_ONE 65536.0

static void format_text(const struct sysinfo_field *f, const void *record,
                        char *buf, size_t size)
{
    const char *text = (const char *)record + f->offset;
    size_t n = sysinfo_field_length(f, record);

    if (n >= size)
        n = size - 1;
    memcpy(buf, text, n);
    buf[n] = '\0';
    printable(buf);
}

static void format_number(const struct sysinfo_field *f, uint64_t number,
                          char *buf, size_t size)
{
    bool is_signed =
        f->kind == SYSINFO_FIELD_S32 || f->kind == SYSINFO_FIELD_S64;

    switch (f->unit) {
    case SYSINFO_FIXED16:
        number = sysinfo_hundredths(number);
        snprintf(buf, size, "%" PRIu64 ".%02" PRIu64, number / 100,
                 number % 100);
        return;
    case SYSINFO_FLAG:
        snprintf(buf, size, "%s", number ? "yes" : "no");
        return;
    case SYSINFO_STATE:
        snprintf(buf, size, "%s", sysinfo_state_name(number));
        return;
    case SYSINFO_ADDRESS:
        snprintf(buf, size, "%08" PRIx64, number);
        return;
    case SYSINFO_ID:
        if (number == SYSINFO_ALL) {
            snprintf(buf, size, "-");
            return;
        }
        break;
    default:
        break;
    }
    if (is_signed)
        snprintf(buf, size, "%" PRId64, (int64_t)number);
    else
        snprintf(buf, size, "%" PRIu64, number);
}

const char *sysinfo_format(const struct sysinfo_field *f, const void *record,
                           char *buf, size_t size)
{
    if (f->kind == SYSINFO_FIELD_TEXT)
        format_text(f, record, buf, size);
    else
        format_number(f, sysinfo_field_number(f, record), buf, size);
    return buf;
}

// ---- tables

static void print_fields(FILE *out, const struct sysinfo_record_type *t,
                         const void *record)
{
    static const struct table_column columns[] = {
        { "Field", false },
        { "Value", true },
        { "Unit", false },
        { "Meaning", false },
    };
    struct table table;
    char cell[CELL];

    table_init(&table, columns, 4);
    for (uint32_t i = 0; i < t->field_count; i++) {
        const struct sysinfo_field *f = &t->fields[i];
        bool shown = f->unit != SYSINFO_NAME && f->unit != SYSINFO_STATE &&
                     f->unit != SYSINFO_FLAG && f->unit != SYSINFO_FIXED16 &&
                     f->unit != SYSINFO_ID;
        table_add(&table, "%s", f->name);
        table_add(&table, "%s", sysinfo_format(f, record, cell, CELL));
        table_add(&table, "%s", shown ? sysinfo_unit_name(f->unit) : "");
        table_add(&table, "%s", f->meaning);
    }
    table_print(&table, out);
}

static void print_rows(FILE *out, const struct sysinfo_record_type *t,
                       const char *records, size_t count)
{
    struct table_column columns[t->field_count];
    struct table table;
    char cell[CELL];

    for (uint32_t i = 0; i < t->field_count; i++) {
        const struct sysinfo_field *f = &t->fields[i];
        columns[i] =
            (struct table_column){ f->name, f->unit != SYSINFO_NAME &&
                                                f->unit != SYSINFO_STATE };
    }
    table_init(&table, columns, t->field_count);
    for (size_t r = 0; r < count; r++) {
        for (uint32_t i = 0; i < t->field_count; i++)
            table_add(&table, "%s",
                      sysinfo_format(&t->fields[i], records + r * t->size, cell,
                                     CELL));
    }
    table_print(&table, out);
}

void sysinfo_print(FILE *out, uint32_t record, const void *records,
                   size_t count)
{
    const struct sysinfo_record_type *t = sysinfo_record_type(record);

    if (count == 1)
        print_fields(out, t, records);
    else
        print_rows(out, t, records, count);
}

// ---- JSON

static void json_number(FILE *out, const struct sysinfo_field *f,
                        uint64_t number)
{
    const char *state;

    switch (f->unit) {
    case SYSINFO_FIXED16:
        fprintf(out, "%.6f", number / FIXED_ONE);
        return;
    case SYSINFO_FLAG:
        fputs(number ? "true" : "false", out);
        return;
    case SYSINFO_STATE:
        state = sysinfo_state_name(number);
        json_string(out, state, strlen(state));
        return;
    case SYSINFO_ID:
        if (number == SYSINFO_ALL) {
            fputs("null", out);
            return;
        }
        break;
    default:
        break;
    }
    if (f->kind == SYSINFO_FIELD_S32 || f->kind == SYSINFO_FIELD_S64)
        fprintf(out, "%" PRId64, (int64_t)number);
    else
        fprintf(out, "%" PRIu64, number);
}

void sysinfo_print_json_record(FILE *out, uint32_t record, const void *data)
{
    const struct sysinfo_record_type *t = sysinfo_record_type(record);

    fputc('{', out);
    for (uint32_t i = 0; i < t->field_count; i++) {
        const struct sysinfo_field *f = &t->fields[i];
        fprintf(out, "%s\"%s\": ", i > 0 ? ", " : "", f->name);
        if (f->kind == SYSINFO_FIELD_TEXT)
            json_string(out, (const char *)data + f->offset,
                        sysinfo_field_length(f, data));
        else
            json_number(out, f, sysinfo_field_number(f, data));
    }
    fputc('}', out);
}

void sysinfo_print_json(FILE *out, uint32_t record, const void *records,
                        size_t count)
{
    size_t each = sysinfo_record_type(record)->size;

    fputc('[', out);
    for (size_t i = 0; i < count; i++) {
        fputs(i > 0 ? ",\n  " : "\n  ", out);
        sysinfo_print_json_record(out, record,
                                  (const char *)records + i * each);
    }
    fputs(count > 0 ? "\n]" : "]", out);
}
