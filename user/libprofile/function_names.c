#include "function_names.h"

#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS 256u
#define PREFIX "system.functions."

struct known {
    struct known *next; // in the same bucket
    uint32_t address;
    struct sysinfo_function function;
};

// NULL: not enough memory.
static struct known *ask(uint32_t address)
{
    char path[sizeof(PREFIX) + NUMBER_SIZE] = PREFIX;
    struct known *k = calloc(1, sizeof(*k));

    if (!k)
        return NULL;
    k->address = address;
    put_decimal(path + strlen(PREFIX), address);
    if (sysinfo_get_data(path, &k->function, sizeof(k->function)) < 0)
        strcpy(k->function.name, "[unknown]");
    return k;
}

const char *function_name(uint32_t address)
{
    static struct known *buckets[BUCKETS];
    struct known **bucket = &buckets[address / 16 % BUCKETS], *k = *bucket;

    while (k && k->address != address)
        k = k->next;
    if (k)
        return k->function.name;
    k = ask(address);
    if (!k)
        return "[unknown]";
    k->next = *bucket;
    *bucket = k;
    return k->function.name;
}
