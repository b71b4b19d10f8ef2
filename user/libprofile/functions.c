#include "functions.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define NEAR_MAX 8u
#define NAME_MAX_LENGTH 64u // longer names are compared up to here

// --- reading ----------------------------------------------------------------

#define SHORTEST_LINE (sizeof("0 0 f f\n") - 1)

// There are thousands of lines: each byte is read once.

// Ends the word at *at, which `end` follows, and steps over it. NULL: another
// byte follows, or there is no word.
static char *take_word(char **at, char end)
{
    char *word = *at, *c = word;

    while ((unsigned char)*c > ' ')
        c++;
    if (c == word || *c != end)
        return NULL;
    *c = '\0';
    *at = c + 1;
    return word;
}

static uint32_t digit_of(char c)
{
    uint32_t decimal = (uint32_t)c - '0', letter = (uint32_t)c - 'a';

    return decimal < 10 ? decimal : letter < 6 ? letter + 10 : UINT32_MAX;
}

// Takes a number of `most` digits at most, and the space after it.
static inline bool take_number(char **at, uint32_t base, int most,
                               uint32_t *out)
{
    uint32_t value = 0, digit;
    char *c = *at;

    for (; (digit = digit_of(*c)) < base; c++)
        value = value * base + digit;
    if (c == *at || c - *at > most || *c != ' ')
        return false;
    *out = value;
    *at = c + 1;
    return true;
}

static bool read_line(char **at, struct function *out)
{
    return take_number(at, 16, 8, &out->address) &&
           take_number(at, 10, 9, &out->size) &&
           (out->name = take_word(at, ' ')) &&
           (out->file = take_word(at, '\n'));
}

static const char *read_lines(struct functions *f)
{
    for (char *at = f->text; *at;) {
        struct function *new = &f->list[f->count];
        if (!read_line(&at, new))
            return "a line is not ADDRESS SIZE NAME FILE";
        if (f->count && new[-1].address >= new->address)
            return "the addresses are not ascending";
        f->count++;
    }
    return NULL;
}

const char *functions_read(struct functions *f, const char *text, size_t size)
{
    *f = (struct functions){ .text = malloc(size + 1) };
    if (!f->text)
        return "not enough memory";
    memcpy(f->text, text, size);
    f->text[size] = '\0';
    f->list = calloc(size / SHORTEST_LINE + 1, sizeof(*f->list));
    const char *problem = f->list ? read_lines(f) : "not enough memory";
    if (problem)
        functions_free(f);
    return problem;
}

void functions_free(struct functions *f)
{
    free(f->list);
    free(f->text);
    *f = (struct functions){ 0 };
}

const struct function *functions_find(const struct functions *f,
                                      uint32_t address)
{
    uint32_t low = 0, high = f->count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (f->list[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return NULL;
    const struct function *last = &f->list[low - 1];
    bool inside =
        address == last->address || address - last->address < last->size;
    return inside ? last : NULL;
}

// --- patterns ---------------------------------------------------------------

static bool matches(const struct function *f, const char *pattern)
{
    pattern += pattern[0] == '!';
    size_t length = strlen(pattern);
    if (!strchr(pattern, '/'))
        return fnmatch(pattern, f->name, 0) == 0;
    if (pattern[length - 1] == '/')
        return strncmp(pattern, f->file, length) == 0;
    return fnmatch(pattern, f->file, 0) == 0;
}

static bool is_chosen(const struct function *f, const struct function_choice *c)
{
    bool any = false, chosen = false;

    for (uint32_t i = 0; i < c->pattern_count; i++) {
        bool leaves_out = c->patterns[i][0] == '!';
        any |= !leaves_out;
        if (!matches(f, c->patterns[i]))
            continue;
        if (leaves_out)
            return false;
        chosen = true;
    }
    return (chosen || !any) && f->size >= c->bytes;
}

uint32_t functions_choose(const struct functions *f,
                          const struct function_choice *c, uint32_t *out)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < f->count; i++) {
        if (is_chosen(&f->list[i], c))
            out[count++] = f->list[i].address;
    }
    return count;
}

const char *functions_missed(const struct functions *f,
                             const struct function_choice *c)
{
    for (uint32_t p = 0; p < c->pattern_count; p++) {
        bool hit = false;
        for (uint32_t i = 0; i < f->count && !hit; i++)
            hit = matches(&f->list[i], c->patterns[p]);
        if (!hit)
            return c->patterns[p];
    }
    return NULL;
}

// --- what is near a pattern that hits nothing -------------------------------

// The pattern's text without '!' and without what matches anything.
static void plain_text(char *out, size_t size, const char *pattern)
{
    size_t n = 0;

    for (pattern += pattern[0] == '!'; *pattern && n + 1 < size; pattern++) {
        if (!strchr("*?[]", *pattern))
            out[n++] = *pattern;
    }
    out[n] = '\0';
}

// The number of letters to insert, delete or replace that make `text` of a part
// of `name` (P.H. Sellers, 1980).
static uint32_t distance(const char *text, const char *name)
{
    uint32_t row[NAME_MAX_LENGTH + 1] = { 0 }; // the part begins anywhere
    size_t n = strnlen(name, NAME_MAX_LENGTH);

    for (uint32_t k = 0; text[k]; k++) {
        uint32_t diagonal = row[0];
        row[0] = k + 1;
        for (size_t i = 1; i <= n; i++) {
            uint32_t replaced = diagonal + (text[k] != name[i - 1]);
            uint32_t least = row[i] < row[i - 1] ? row[i] + 1 : row[i - 1] + 1;
            diagonal = row[i];
            row[i] = replaced < least ? replaced : least;
        }
    }
    uint32_t best = row[0];
    for (size_t i = 1; i <= n; i++)
        best = row[i] < best ? row[i] : best;
    return best;
}

// How unlike they are: 0 if the name contains the text. UINT32_MAX: not near.
static uint32_t unlikeness(const char *text, const char *name)
{
    uint32_t d = distance(text, name);

    return d <= strlen(text) / 3 ? d : UINT32_MAX;
}

struct near {
    const char *name;
    uint32_t unlikeness;
};

// Inserts a name, unless it is there already or others are more like it.
static void insert(struct near *list, uint32_t *count, struct near new)
{
    uint32_t at = *count;

    for (uint32_t i = 0; i < *count; i++) {
        if (strcmp(list[i].name, new.name) == 0)
            return;
    }
    while (at && list[at - 1].unlikeness > new.unlikeness)
        at--;
    if (at == NEAR_MAX)
        return;
    *count += *count < NEAR_MAX;
    memmove(&list[at + 1], &list[at], (*count - at - 1) * sizeof(*list));
    list[at] = new;
}

void functions_print_near(const struct functions *f, const char *pattern,
                          FILE *out)
{
    struct near list[NEAR_MAX];
    char text[NAME_MAX_LENGTH];
    uint32_t count = 0;

    plain_text(text, sizeof(text), pattern);
    bool files = strchr(pattern, '/');
    for (uint32_t i = 0; i < f->count; i++) {
        const char *name = files ? f->list[i].file : f->list[i].name;
        struct near near = { name, unlikeness(text, name) };
        if (near.unlikeness != UINT32_MAX)
            insert(list, &count, near);
    }
    if (count)
        fputs("Near are:\n", out);
    for (uint32_t i = 0; i < count; i++)
        fprintf(out, "    %s\n", list[i].name);
}
