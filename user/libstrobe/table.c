// Text tables, numbers in them, and JSON strings.
#include "strobe.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

// Returns the length of the multi-byte UTF-8 sequence at `text`, or 0 if there
// is none (RFC 3629, section 4).
static size_t utf8_length(const unsigned char *text, size_t size)
{
    unsigned char c = text[0];
    size_t length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    unsigned char low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    unsigned char high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;

    if (c < 0xc2 || c > 0xf4 || size < length)
        return 0;
    if (text[1] < low || text[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    }
    return length;
}

// Whether the character is a non-ASCII control character: C1 controls (U+0080
// to U+009F) and bidirectional controls, which change the order in which a name
// is displayed (Unicode Standard Annex 9, section 2: U+061C, U+200E, U+200F,
// U+202A to U+202E, U+2066 to U+2069).
static bool is_control(const unsigned char *text)
{
    if (text[0] == 0xc2 || text[0] == 0xd8)
        return text[0] == 0xc2 ? text[1] < 0xa0 : text[1] == 0x9c;
    if (text[0] != 0xe2)
        return false;
    if (text[1] == 0x80)
        return text[2] == 0x8e || text[2] == 0x8f ||
               (text[2] >= 0xaa && text[2] <= 0xae);
    return text[1] == 0x81 && text[2] >= 0xa6 && text[2] <= 0xa9;
}

// Decodes a complete UTF-8 sequence.
static unsigned code_of(const unsigned char *text, size_t length)
{
    unsigned code = text[0] & (0x7f >> length);

    for (size_t i = 1; i < length; i++)
        code = code << 6 | (text[i] & 0x3f);
    return code;
}

char *printable(char *text)
{
    size_t size = strlen(text);

    for (size_t i = 0; i < size; i++) {
        unsigned char *c = (unsigned char *)text + i;
        size_t more = *c >= 0x80 ? utf8_length(c, size - i) : 0;
        if (more > 0 && !is_control(c))
            i += more - 1;
        else if (*c < ' ' || *c >= 0x7f)
            *c = '?';
    }
    return text;
}

void put_printable(FILE *out, const char *text)
{
    char *copy = strdup(text);

    fputs(copy != NULL ? printable(copy) : "?", out);
    free(copy);
}

void table_init(struct table *t, const struct table_column *columns,
                unsigned column_count)
{
    *t = (struct table){ .columns = columns, .column_count = column_count };
}

// Where the next cell, of `size` bytes, begins. NULL: there is no memory; the
// cell is left out.
static char *room_for(struct table *t, size_t size)
{
    if (t->room - t->used < size) {
        size_t room = 2 * t->room + size + 1024;
        char *cells = realloc(t->cells, room);
        if (!cells)
            return NULL;
        t->cells = cells;
        t->room = room;
    }
    return t->cells + t->used;
}

static void end_cell(struct table *t, char *cell, size_t size)
{
    printable(cell);
    t->used += size;
    t->count++;
}

void table_add(struct table *t, const char *fmt, ...)
{
    size_t size = 128; // longer ones are formatted twice
    char *cell;

    while ((cell = room_for(t, size))) {
        va_list args;
        va_start(args, fmt);
        int n = vsnprintf(cell, size, fmt, args);
        va_end(args);
        if (n < 0)
            strcpy(cell, "?");
        if (n < (int)size) {
            end_cell(t, cell, strlen(cell) + 1);
            return;
        }
        size = (size_t)n + 1;
    }
}

void table_add_text(struct table *t, const char *text)
{
    size_t size = strlen(text) + 1;
    char *cell = room_for(t, size);

    if (cell)
        end_cell(t, memcpy(cell, text, size), size);
}

char *put_decimal_before(char *end, uint64_t value)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021"
                                "22232425262728293031323334353637383940414243"
                                "44454647484950515253545556575859606162636465"
                                "66676869707172737475767778798081828384858687"
                                "888990919293949596979899";

    for (; value > UINT32_MAX; value /= 10) // a division by library calls
        *--end = (char)('0' + value % 10);
    uint32_t low = (uint32_t)value;
    for (; low >= 100; low /= 100)
        memcpy(end -= 2, pairs + low % 100 * 2, 2);
    if (low >= 10)
        return memcpy(end - 2, pairs + low * 2, 2);
    *--end = (char)('0' + low);
    return end;
}

char *put_decimal(char *out, uint64_t value)
{
    char digits[20], *end = digits + sizeof(digits);
    char *first = put_decimal_before(end, value);

    memcpy(out, first, (size_t)(end - first));
    out += end - first;
    *out = '\0';
    return out;
}

char *put_fixed(char *out, double value, unsigned digits)
{
    static const uint32_t scales[] = { 1, 10, 100 };
    uint32_t scale = scales[digits];
    long double scaled = (long double)value * scale; // exact: 53 + 7 bits

    if (!(scaled >= 0 && scaled < INT32_MAX))
        return out + snprintf(out, NUMBER_SIZE, "%.*e", (int)digits, value);
    uint32_t number = (uint32_t)lrintl(scaled);
    out = put_decimal(out, number / scale);
    if (!digits)
        return out;
    *out++ = '.';
    if (digits == 2 && number % scale < 10)
        *out++ = '0';
    return put_decimal(out, number % scale);
}

void put_blanks(FILE *out, int count)
{
    static const char blanks[] = "                                ";
    const int most = sizeof(blanks) - 1;

    for (; count > 0; count -= most)
        fwrite(blanks, 1, (size_t)(count < most ? count : most), out);
}

// Puts a cell at `at`. Returns where the next one begins.
static char *put_cell(const struct table *t, char *at, unsigned column,
                      const char *text, int width)
{
    int length = (int)strlen(text), rest = width - length;
    bool right = t->columns[column].right;

    if (right)
        at = (char *)memset(at, ' ', (size_t)rest) + rest;
    at = (char *)memcpy(at, text, (size_t)length) + length;
    if (column + 1 == t->column_count) {
        *at = '\n';
        return at + 1;
    }
    rest = 2 + (right ? 0 : rest);
    return (char *)memset(at, ' ', (size_t)rest) + rest;
}

static void find_widths(const struct table *t, int *widths)
{
    const char *cell = t->cells;

    for (unsigned c = 0; c < t->column_count; c++)
        widths[c] = (int)strlen(t->columns[c].title);
    for (size_t i = 0; i < t->count; i++) {
        int *width = &widths[i % t->column_count], length = (int)strlen(cell);
        *width = length > *width ? length : *width;
        cell += length + 1;
    }
}

// Prints a row by way of `row`: the titles, or the cells from `cell` on.
// Returns the cell behind them.
static const char *print_row(const struct table *t, FILE *out, char *row,
                             const int *widths, const char *cell)
{
    char *at = row;

    for (unsigned c = 0; c < t->column_count; c++) {
        at = put_cell(t, at, c, cell ? cell : t->columns[c].title, widths[c]);
        cell += cell ? strlen(cell) + 1 : 0;
    }
    fwrite(row, 1, (size_t)(at - row), out);
    return cell;
}

void table_print(struct table *t, FILE *out)
{
    int widths[t->column_count];
    size_t size = 0;

    find_widths(t, widths);
    for (unsigned c = 0; c < t->column_count; c++)
        size += (size_t)widths[c] + 2;
    char *row = room_for(t, size);
    if (row) {
        const char *cell = t->cells;
        print_row(t, out, row, widths, NULL);
        for (size_t i = t->count / t->column_count; i > 0; i--)
            cell = print_row(t, out, row, widths, cell);
    }
    free(t->cells);
    t->cells = NULL;
    t->count = t->used = t->room = 0;
}

void json_string(FILE *out, const char *text, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)text;

    fputc('"', out);
    for (size_t i = 0; i < size; i++) {
        unsigned char c = bytes[i];
        size_t more = c >= 0x80 ? utf8_length(bytes + i, size - i) : 0;
        // Bytes that are not UTF-8 are written as Latin-1 characters, so that
        // the output is valid even for a corrupt file.
        if (more > 0 && is_control(bytes + i)) {
            fprintf(out, "\\u%04x", code_of(bytes + i, more));
            i += more - 1;
        } else if (more > 0) {
            fwrite(bytes + i, 1, more, out);
            i += more - 1;
        } else if (c == '"' || c == '\\') {
            fprintf(out, "\\%c", c);
        } else if (c < ' ' || c >= 0x7f) {
            fprintf(out, "\\u%04x", c);
        } else {
            fputc(c, out);
        }
    }
    fputc('"', out);
}
