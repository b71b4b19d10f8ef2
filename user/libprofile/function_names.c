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
        uint32_t address;
        struct calls_name *name;
    } known[CHUNK];
    uint32_t count, asked;
} * last;

static struct known *buckets[BUCKETS];
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

static struct known **bucket_of(uint32_t address)
{
    return &buckets[address / 16 % BUCKETS];
}

// Not inlined: most addresses are known.
static __attribute__((noinline)) struct calls_name *add(uint32_t address)
{
    struct known **bucket = bucket_of(address);

    if (last && last->count == CHUNK)
        ask();
    if (!last || last->count == CHUNK) {
        struct chunk *new = malloc(sizeof(*new));
        if (!new)
            return &no_memory;
        new->count = new->asked = 0;
        last = new;
    }
    struct known *k = &last->known[last->count];
    k->name = &last->names[last->count++];
    k->name->address = k->address = address;
    k->name->length = 0;
    k->next = *bucket;
    *bucket = k;
    return k->name;
}

struct calls_name *function_wanted(uint32_t address)
{
    const struct known *k = *bucket_of(address);

    while (k && k->address != address)
        k = k->next;
    return k ? k->name : add(address);
}

const struct calls_name *function_name(uint32_t address)
{
    struct calls_name *n = function_wanted(address);

    if (!n->length && n != &no_memory)
        ask();
    return n;
}
