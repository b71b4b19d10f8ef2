#include "function_names.h"

#include "user/libstrobe/tracing.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS 256u
#define CHUNK 256u

static struct chunk {
    struct calls_name names[CHUNK];
    struct known {
        struct known *next; // in the same bucket
        struct calls_name *name;
    } known[CHUNK];
    uint32_t count, asked;
} * last;

static struct calls_name no_memory;

static void ask(void)
{
    static int phone = -1;
    struct calls_name *n = last->names + last->asked;

    if (phone < 0)
        phone = tracing_phone();
    if (phone >= 0)
        tracing_names(phone, n, last->count - last->asked);
    for (; last->asked < last->count; last->asked++, n++) {
        if (n->length)
            continue;
        strcpy(n->name, "[unknown]");
        n->length = (uint32_t)strlen(n->name);
    }
}

struct calls_name *function_wanted(uint32_t address)
{
    static struct known *buckets[BUCKETS];
    struct known **bucket = &buckets[address / 16 % BUCKETS], *k = *bucket;

    while (k && k->name->address != address)
        k = k->next;
    if (k)
        return k->name;
    if (last && last->count == CHUNK)
        ask();
    if (!last || last->count == CHUNK) {
        struct chunk *new = malloc(sizeof(*new));
        if (!new)
            return &no_memory;
        new->count = new->asked = 0;
        last = new;
    }
    k = &last->known[last->count];
    k->name = &last->names[last->count++];
    k->name->address = address;
    k->name->length = 0;
    k->next = *bucket;
    *bucket = k;
    return k->name;
}

const struct calls_name *function_name(uint32_t address)
{
    struct calls_name *n = function_wanted(address);

    if (!n->length && n != &no_memory)
        ask();
    return n;
}
