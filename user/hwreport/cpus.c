// The CPUs: every leaf of CPUID as the first one gives it, what they mean, and
// on each other CPU the leaves that differ (SDM vol. 2, CPUID; AMD64 APM vol.
// 3, appendix E).
#define _GNU_SOURCE // sched_setaffinity
#include "hwreport.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define LEAVES_MAX 256
#define LEAF_LIMIT 0x40u // of a range: what claims more lies
#define SUBLEAVES_MAX 16u
#define HYPERVISOR 0x40000000u
#define EXTENDED 0x80000000u

struct leaf {
    uint32_t leaf, subleaf, eax, ebx, ecx, edx;
};

struct leaves {
    struct leaf at[LEAVES_MAX];
    unsigned count;
};

// CPUID with the PIC's register saved.
static struct leaf cpuid(uint32_t leaf, uint32_t subleaf)
{
    struct leaf l = { .leaf = leaf, .subleaf = subleaf };

    __asm__ volatile("cpuid"
                     : "=a"(l.eax), "=b"(l.ebx), "=c"(l.ecx), "=d"(l.edx)
                     : "a"(leaf), "c"(subleaf));
    return l;
}

// Whether the leaf has subleaves, and `l` is not the last one.
static bool has_next(const struct leaf *l)
{
    switch (l->leaf) {
    case 0x04: // caches
    case 0x8000001d:
        return l->eax & 0x1f;
    case 0x0b: // topology
    case 0x1f:
        return l->ecx >> 8 & 0xff;
    case 0x07: // eax of subleaf 0: the last one
    case 0x14:
    case 0x18:
        return l->subleaf < cpuid(l->leaf, 0).eax;
    case 0x0d:
    case 0x0f:
    case 0x10:
        return l->subleaf == 0;
    default:
        return false;
    }
}

static void read_range(struct leaves *all, uint32_t first)
{
    uint32_t last = cpuid(first, 0).eax;

    if (last < first || last - first > LEAF_LIMIT)
        last = first; // the range is not there, or absurd
    for (uint32_t leaf = first; leaf <= last; leaf++) {
        for (uint32_t sub = 0; sub < SUBLEAVES_MAX; sub++) {
            struct leaf l = cpuid(leaf, sub);
            if (all->count == LEAVES_MAX)
                return;
            all->at[all->count++] = l;
            if (!has_next(&l))
                break;
        }
    }
}

static void read_leaves(struct leaves *all)
{
    all->count = 0;
    read_range(all, 0);
    if (cpuid(1, 0).ecx >> 31)
        read_range(all, HYPERVISOR);
    read_range(all, EXTENDED);
}

static const struct leaf *find(const struct leaves *all, uint32_t leaf,
                               uint32_t subleaf)
{
    for (unsigned i = 0; i < all->count; i++) {
        if (all->at[i].leaf == leaf && all->at[i].subleaf == subleaf)
            return &all->at[i];
    }
    return NULL;
}

static void print_leaf(FILE *out, const struct leaf *l)
{
    fprintf(out, "  %08x.%x: %08x %08x %08x %08x\n", l->leaf, l->subleaf,
            l->eax, l->ebx, l->ecx, l->edx);
}

// ---- meaning

struct flags {
    uint32_t leaf;
    char reg;          // 'b', 'c', 'd'
    const char *names; // of bits 0, 1, ...; "-": none
};

static const struct flags flags[] = {
    { 1, 'd',
      "fpu vme de pse tsc msr pae mce cx8 apic - sep mtrr pge mca cmov pat "
      "pse36 psn clfsh - ds acpi mmx fxsr sse sse2 ss htt tm - pbe" },
    { 1, 'c',
      "sse3 pclmulqdq dtes64 monitor ds-cpl vmx smx eist tm2 ssse3 cnxt-id "
      "sdbg fma cx16 xtpr pdcm - pcid dca sse4.1 sse4.2 x2apic movbe popcnt "
      "tsc-deadline aes xsave osxsave avx f16c rdrand hypervisor" },
    { 7, 'b',
      "fsgsbase tsc-adjust sgx bmi1 hle avx2 - smep bmi2 erms invpcid rtm "
      "rdt-m - mpx rdt-a avx512f avx512dq rdseed adx smap - - clflushopt clwb "
      "pt - - - sha - -" },
    { 7, 'd',
      "- - - - fsrm - - - - - md-clear - - - serialize hybrid - - arch-lbr - - "
      "- - - - - ibrs stibp l1d-flush arch-capabilities core-capabilities "
      "ssbd" },
    { 0x80000001, 'd',
      "- - - - - - - - - - - syscall - - - - - - - - nx - - - - - 1gb rdtscp - "
      "lm - -" },
    { 0x80000001, 'c',
      "lahf cmp-legacy svm extapic - lzcnt sse4a - - - ibs - - - - - - - - - - "
      "- topoext perfctr-core perfctr-nb - - - perfctr-l3 - - -" },
};

static uint32_t register_of(const struct leaf *l, char reg)
{
    return reg == 'b' ? l->ebx : reg == 'c' ? l->ecx : l->edx;
}

static void print_flags(FILE *out, const struct leaves *all)
{
    fprintf(out, "features:");
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        const struct leaf *l = find(all, flags[i].leaf, 0);
        const char *name = flags[i].names;
        for (int bit = 0; l && *name != '\0'; bit++) {
            size_t length = strcspn(name, " ");
            if (*name != '-' && register_of(l, flags[i].reg) >> bit & 1)
                fprintf(out, " %.*s", (int)length, name);
            name += length + (name[length] == ' ');
        }
    }
    fprintf(out, "\n");
}

static void print_text(FILE *out, const void *bytes, size_t size)
{
    for (const unsigned char *p = bytes; size > 0 && *p != '\0'; p++, size--)
        fputc(*p >= ' ' && *p <= '~' ? *p : '.', out);
}

static void print_names(FILE *out, const struct leaves *all)
{
    const struct leaf *vendor = find(all, 0, 0), *id = find(all, 1, 0);
    uint32_t family = id->eax >> 8 & 0xf, model = id->eax >> 4 & 0xf;

    if (family == 6 || family == 15)
        model |= id->eax >> 12 & 0xf0;
    if (family == 15)
        family += id->eax >> 20 & 0xff;
    print_text(out, &vendor->ebx, 4);
    print_text(out, &vendor->edx, 4);
    print_text(out, &vendor->ecx, 4);
    fprintf(out, ", family %u, model %u, stepping %u: ", family, model,
            id->eax & 0xf);
    for (uint32_t i = 2; i <= 4; i++) {
        const struct leaf *l = find(all, EXTENDED + i, 0);
        if (l)
            print_text(out, &l->eax, 16);
    }
    fprintf(out, "\n");
}

static void print_caches(FILE *out, const struct leaves *all, uint32_t leaf)
{
    static const char *const types[] = { "?", "data", "instruction",
                                         "unified" };
    const struct leaf *l;

    for (uint32_t i = 0; (l = find(all, leaf, i)) && l->eax & 0x1f; i++) {
        uint32_t line = (l->ebx & 0xfff) + 1, sets = l->ecx + 1;
        uint32_t parts = (l->ebx >> 12 & 0x3ff) + 1;
        uint32_t ways = (l->ebx >> 22) + 1;
        fprintf(out,
                "cache: level %u, %s, %u KiB, %u ways, lines of %u, for %u "
                "threads\n",
                l->eax >> 5 & 7, types[l->eax & 3],
                line * sets * parts / 1024 * ways, ways, line,
                (l->eax >> 14 & 0xfff) + 1);
    }
}

static void print_rates(FILE *out, const struct leaves *all)
{
    const struct leaf *l = find(all, 0x15, 0);

    if (l && l->eax && l->ebx)
        fprintf(out, "TSC: %u / %u of a crystal of %u Hz%s\n", l->ebx, l->eax,
                l->ecx, l->ecx ? "" : " (not given)");
    else
        fprintf(out, "TSC by the crystal (leaf 15H): not there\n");
    l = find(all, 0x16, 0);
    if (l && l->eax)
        fprintf(out, "MHz: base %u, most %u, bus %u\n", l->eax & 0xffff,
                l->ebx & 0xffff, l->ecx & 0xffff);
    l = find(all, EXTENDED + 7, 0);
    fprintf(out, "TSC: %s\n",
            l && l->edx >> 8 & 1 ? "invariant" : "not said to be invariant");
}

static void print_counters(FILE *out, const struct leaves *all)
{
    const struct leaf *l = find(all, 0x0a, 0);

    if (l && l->eax & 0xff)
        fprintf(out,
                "counters: version %u, %u general of %u bits, %u fixed of %u "
                "bits\n",
                l->eax & 0xff, l->eax >> 8 & 0xff, l->eax >> 16 & 0xff,
                l->edx & 0x1f, l->edx >> 5 & 0xff);
    else
        fprintf(out, "counters (leaf 0AH): not there\n");
    l = find(all, 5, 0);
    if (l && l->eax & 0xffff && cpuid(1, 0).ecx >> 3 & 1)
        fprintf(out,
                "MWAIT: lines of %u to %u bytes, sub-states of C0, C1, "
                "...: %08x\n",
                l->eax & 0xffff, l->ebx & 0xffff, l->edx);
    else
        fprintf(out, "MWAIT: not there\n");
}

static void print_topology(FILE *out, const struct leaves *all)
{
    const struct leaf *l = find(all, 1, 0);
    uint32_t leaf = find(all, 0x1f, 0) ? 0x1f : 0x0b;

    fprintf(out, "APIC id %u, %u ids a package\n", l->ebx >> 24,
            l->ebx >> 16 & 0xff);
    for (uint32_t i = 0; (l = find(all, leaf, i)) && l->ecx >> 8 & 0xff; i++)
        fprintf(out, "topology: level type %u, %u CPUs, x2APIC id %#x >> %u\n",
                l->ecx >> 8 & 0xff, l->ebx & 0xffff, l->edx, l->eax & 0x1f);
}

static void print_meaning(FILE *out, const struct leaves *all)
{
    const struct leaf *size = find(all, EXTENDED + 8, 0);

    print_names(out, all);
    print_flags(out, all);
    print_topology(out, all);
    print_caches(out, all,
                 find(all, 4, 0) && find(all, 4, 0)->eax & 0x1f ? 4
                                                                : 0x8000001d);
    print_rates(out, all);
    print_counters(out, all);
    if (size)
        fprintf(out, "addresses: %u bits physical, %u linear\n",
                size->eax & 0xff, size->eax >> 8 & 0xff);
}

// ---- all CPUs

static bool move_to(long cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof(set), &set) == 0;
}

static void print_differences(FILE *out, const struct leaves *first,
                              const struct leaves *here)
{
    for (unsigned i = 0; i < here->count; i++) {
        const struct leaf *l = &here->at[i];
        const struct leaf *same = find(first, l->leaf, l->subleaf);
        if (!same || memcmp(l, same, sizeof(*l)) != 0)
            print_leaf(out, l);
    }
}

void print_cpus(FILE *out)
{
    static struct leaves first, here;
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t before;

    sched_getaffinity(0, sizeof(before), &before);
    for (long cpu = 0; cpu < count; cpu++) {
        if (!move_to(cpu)) {
            fprintf(out, "CPU %ld: not there: %s\n", cpu, strerror(errno));
            continue;
        }
        read_leaves(&here);
        if (cpu == 0) {
            first = here;
            print_meaning(out, &first);
            fprintf(out, "CPU 0, leaf.subleaf: eax ebx ecx edx\n");
            for (unsigned i = 0; i < first.count; i++)
                print_leaf(out, &first.at[i]);
        } else {
            fprintf(out, "CPU %ld, what differs from CPU 0\n", cpu);
            print_differences(out, &first, &here);
        }
    }
    sched_setaffinity(0, sizeof(before), &before);
}
