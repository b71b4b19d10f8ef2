// Random system calls, as tests/fuzz/fuzz.h tells.
//
//     fuzz [--seed S] [--calls N]          operations until N calls are made
//     fuzz --seed S --from A --to B        operations A to B only
//     fuzz ... --print                     as a script, making none
//     fuzz --script FILE [--times N]       those of a script
//     fuzz ... --quiet                     no sampling the while
//
// Ends with 1 if something did not go as it should: a task that cannot be
// killed, a mount that stays, memory that is not free again.
#include "fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"

#define WARM_UP 5 // episodes before memory is compared: caches fill

static struct settings {
    uint64_t seed;
    uint32_t calls, from, to, times;
    const char *script;
    bool print, quiet;
} settings = { .seed = 1, .calls = 10000, .to = UINT32_MAX, .times = 1 };

static _Noreturn void usage(void)
{
    fprintf(stderr,
            "usage: fuzz [--seed S] [--calls N] [--from A] [--to B] [--print]\n"
            "            [--script FILE] [--times N] [--quiet]\n");
    exit(2);
}

static void parse(int argc, char *argv[])
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (strcmp(name, "--print") == 0) {
            settings.print = true;
            continue;
        }
        if (strcmp(name, "--quiet") == 0) {
            settings.quiet = true;
            continue;
        }
        if (++i == argc)
            usage();
        uint32_t value = 0;
        bool is_script = strcmp(name, "--script") == 0;
        if (!is_script && !decimal(argv[i], 0, UINT32_MAX, &value)) {
            fprintf(stderr, "fuzz: %s takes a number, not '%s'\n", name,
                    argv[i]);
            exit(2);
        }
        if (is_script)
            settings.script = argv[i];
        else if (strcmp(name, "--seed") == 0)
            settings.seed = value;
        else if (strcmp(name, "--calls") == 0)
            settings.calls = value;
        else if (strcmp(name, "--from") == 0)
            settings.from = value;
        else if (strcmp(name, "--to") == 0)
            settings.to = value;
        else if (strcmp(name, "--times") == 0)
            settings.times = value;
        else
            usage();
    }
}

// --- memory

static const char *const kinds[] = { "slab", "pagetable", "kstack",
                                     "user", "file",      "buffer" };
#define KINDS (sizeof(kinds) / sizeof(*kinds))

static void memory(uint64_t *bytes)
{
    struct sysinfo_physmem m;
    if (sysinfo_get_physmem("system.physmem", &m) < 0)
        sysinfo_fail("system.physmem");
    const uint64_t now[KINDS] = { m.slab, m.pagetable, m.kstack,
                                  m.user, m.file,      m.buffer };
    memcpy(bytes, now, sizeof(now));
}

static uint64_t before[KINDS];

static void memory_report(void)
{
    uint64_t after[KINDS];
    memory(after);
    printf("memory:");
    for (size_t i = 0; i < KINDS; i++)
        printf(" %s %+lld", kinds[i], (long long)(after[i] - before[i]));
    printf(" bytes\n");
}

// --- episodes

// On the console, where it is read also of a machine that stops.
static void say_where(uint32_t from, uint32_t to)
{
    char line[80];
    int fd = open("/dev/kmsg", O_WRONLY);
    int n = snprintf(line, sizeof(line), "fuzz --seed %llu --from %u --to %u\n",
                     (unsigned long long)settings.seed, from, to);
    (void)!write(fd, line, (size_t)n);
    close(fd);
}

// The operations from `first` on, of one episode, as far as they are wanted.
static bool run_episode(uint32_t first)
{
    static struct operation ops[EPISODE_OPS];
    struct episode e = { .shape = settings.seed * 1000003 + first, .ops = ops };
    uint32_t end = first + EPISODE_OPS - 1;

    if (end > settings.to)
        end = settings.to;
    for (uint32_t i = first; i <= end; i++) {
        if (i >= settings.from)
            grammar_make(settings.seed, i, &ops[e.count++]);
    }
    if (settings.print) {
        script_print(&e);
        return true;
    }
    say_where(first > settings.from ? first : settings.from, end);
    return episode_run(&e);
}

static bool run_all(void)
{
    uint32_t first = settings.from / EPISODE_OPS * EPISODE_OPS;
    uint32_t episodes = 0;
    bool good = true;

    while (good && first <= settings.to &&
           first >= settings.from / EPISODE_OPS &&
           (settings.to != UINT32_MAX || shared->ops < settings.calls)) {
        good = run_episode(first);
        first += EPISODE_OPS;
        if (++episodes == WARM_UP && !settings.print)
            memory(before);
    }
    if (!settings.print)
        printf("fuzz: seed %llu, operations %u to %u, %u episodes\n",
               (unsigned long long)settings.seed, settings.from, first - 1,
               episodes);
    return good;
}

static void report(void)
{
    uint32_t errors = 0;
    for (uint32_t i = 0; i < call_count; i++)
        errors += shared->errors[i];
    printf("%u calls, %u of them without an error\n", shared->ops,
           shared->ops - errors);
    printf("calls that never succeeded:");
    for (uint32_t i = 0; i < call_count; i++) {
        if (shared->calls[i] == shared->errors[i])
            printf(" %s(%u)", calls[i].name, shared->calls[i]);
    }
    printf("\n");
}

int main(int argc, char *argv[])
{
    parse(argc, argv);
    if (mmap(shared, sizeof(*shared), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
        perror("fuzz: mmap");
        return 2;
    }
    if (settings.print) {
        run_all();
        return 0;
    }
    bool good = end_all_tasks();
    if (!settings.quiet)
        storm_begin((uint32_t)settings.seed);
    memory(before);
    good = (settings.script ? script_run(settings.script, settings.times)
                            : run_all()) &&
           good;
    storm_end();
    good = end_all_tasks() && good;
    report();
    memory_report();
    return !good;
}
