// Layout: Linux's tools/perf/Documentation/perf.data-file-format.txt,
// HEADER_CPU_TOPOLOGY: the lists of the CPUs of each package, then those of
// each core, then each CPU's core and package. The lists of dies that may
// follow are left out: dies are not known.
//
// perf finds the end of the lists by their sizes as it would have written them
// itself, so their padding is perf's. It refuses packages with numbers above
// that of the CPUs, so they are numbered from 0 on.

#include "perf_topology.h"

#include <string.h>

#include "lib/cpu_set.h"

#define LIST_MAX (4u * CPU_MAX)
#define STRING_ALIGN 64u // perf's NAME_ALIGN

typedef bool (*cpu_relation)(const struct sysinfo_cpu *a,
                             const struct sysinfo_cpu *b);

static bool same_package(const struct sysinfo_cpu *a,
                         const struct sysinfo_cpu *b)
{
    return a->package == b->package;
}

static bool same_core(const struct sysinfo_cpu *a, const struct sysinfo_cpu *b)
{
    return same_package(a, b) && a->core == b->core;
}

static bool same_kind(const struct sysinfo_cpu *a, const struct sysinfo_cpu *b)
{
    return strcmp(a->kind, b->kind) == 0;
}

// Whether no CPU before is related to number `i`.
static bool is_first(const struct sysinfo_cpu *cpus, uint32_t i,
                     cpu_relation related)
{
    for (uint32_t j = 0; j < i; j++) {
        if (related(&cpus[i], &cpus[j]))
            return false;
    }
    return true;
}

// Adds the list of the CPUs that are related to `to`.
static void add_list(struct blob *out, const struct sysinfo_cpu *cpus,
                     uint32_t count, const struct sysinfo_cpu *to,
                     cpu_relation related)
{
    struct cpu_set set = CPU_SET_EMPTY;
    char list[LIST_MAX];
    for (uint32_t i = 0; i < count; i++) {
        if (related(to, &cpus[i]))
            cpu_set_add(&set, i);
    }
    cpu_set_words = CPU_SET_WORDS_MAX;
    blob_add_string(out, cpu_set_list(&set, list, sizeof(list)), STRING_ALIGN);
}

// Adds a list for each group of related CPUs, after their number.
static void add_lists(struct blob *out, const struct sysinfo_cpu *cpus,
                      uint32_t count, cpu_relation related)
{
    uint32_t groups = 0;
    for (uint32_t i = 0; i < count; i++)
        groups += is_first(cpus, i, related);
    blob_add_word(out, groups);
    for (uint32_t i = 0; i < count; i++) {
        if (is_first(cpus, i, related))
            add_list(out, cpus, count, &cpus[i], related);
    }
}

// The number of packages with lower ids.
static uint32_t package_number(const struct sysinfo_cpu *cpus, uint32_t count,
                               uint32_t package)
{
    uint32_t lower = 0;
    for (uint32_t i = 0; i < count; i++)
        lower += cpus[i].package < package && is_first(cpus, i, same_package);
    return lower;
}

void perf_topology_make(struct blob *out, const struct sysinfo_cpu *cpus,
                        uint32_t count)
{
    add_lists(out, cpus, count, same_package);
    add_lists(out, cpus, count, same_core);
    for (uint32_t i = 0; i < count; i++) {
        blob_add_word(out, cpus[i].core);
        blob_add_word(out, package_number(cpus, count, cpus[i].package));
    }
}

void perf_hybrid_make(struct blob *out, const struct sysinfo_cpu *cpus,
                      uint32_t count)
{
    // Linux's names of the kinds' counters.
    static const struct {
        const char *kind, *name;
    } kinds[] = { { "performance", "cpu_core" }, { "efficiency", "cpu_atom" } };
    const struct sysinfo_cpu *first[ARRAY_SIZE(kinds)] = { NULL };
    uint32_t present = 0;
    for (uint32_t k = 0; k < ARRAY_SIZE(kinds); k++) {
        for (uint32_t i = 0; i < count && !first[k]; i++) {
            if (strcmp(cpus[i].kind, kinds[k].kind) == 0)
                first[k] = &cpus[i];
        }
        present += first[k] != NULL;
    }
    if (present == 0)
        return;
    blob_add_word(out, present);
    for (uint32_t k = 0; k < ARRAY_SIZE(kinds); k++) {
        if (!first[k])
            continue;
        blob_add_string(out, kinds[k].name, STRING_ALIGN);
        add_list(out, cpus, count, first[k], same_kind);
    }
}
