// Text tables and JSON strings.
#define _GNU_SOURCE // asprintf
#include "strobe.h"

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

static void add_cell(struct table *t, char *text)
{
    if (text)
        printable(text);
    if (t->count == t->room) {
        size_t room = t->room * 2 + 64;
        char **cells = realloc(t->cells, room * sizeof(*cells));
        if (!cells) { // out of memory: the cell is dropped
            free(text);
            return;
        }
        t->cells = cells;
        t->room = room;
    }
    t->cells[t->count++] = text;
}

void table_add(struct table *t, const char *fmt, ...)
{
    char *text = NULL, most[128]; // longer ones are formatted twice
    va_list args;

    va_start(args, fmt);
    int n = vsnprintf(most, sizeof(most), fmt, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof(most)) {
        text = strdup(most);
    } else {
        va_start(args, fmt);
        if (vasprintf(&text, fmt, args) < 0)
            text = NULL;
        va_end(args);
    }
    add_cell(t, text);
}

void table_add_text(struct table *t, const char *text)
{
    add_cell(t, strdup(text));
}

static const char *cell(const struct table *t, size_t i)
{
    return t->cells[i] != NULL ? t->cells[i] : "?";
}

static int width(const struct table *t, unsigned column)
{
    size_t widest = strlen(t->columns[column].title);

    for (size_t i = column; i < t->count; i += t->column_count) {
        size_t n = strlen(cell(t, i));
        widest = n > widest ? n : widest;
    }
    return (int)widest;
}

void put_blanks(FILE *out, int count)
{
    static const char blanks[] = "                                ";
    const int most = sizeof(blanks) - 1;

    for (; count > 0; count -= most)
        fwrite(blanks, 1, (size_t)(count < most ? count : most), out);
}

static void print_cell(const struct table *t, FILE *out, unsigned column,
                       const char *text, int cell_width)
{
    bool last = column + 1 == t->column_count;
    int blanks = cell_width - (int)strlen(text);

    if (t->columns[column].right)
        put_blanks(out, blanks);
    fputs(text, out);
    if (!last && !t->columns[column].right) // none at the end of the line
        put_blanks(out, blanks);
    fputs(last ? "\n" : "  ", out);
}

void table_print(struct table *t, FILE *out)
{
    int widths[t->column_count];

    for (unsigned c = 0; c < t->column_count; c++) {
        widths[c] = width(t, c);
        print_cell(t, out, c, t->columns[c].title, widths[c]);
    }
    size_t whole = t->count - t->count % t->column_count;
    for (size_t i = 0; i < whole; i++) {
        unsigned c = i % t->column_count;
        print_cell(t, out, c, cell(t, i), widths[c]);
    }
    for (size_t i = 0; i < t->count; i++)
        free(t->cells[i]);
    free(t->cells);
    t->cells = NULL;
    t->count = t->room = 0;
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
