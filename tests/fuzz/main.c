// Random system calls (see tests/fuzz/fuzz.h).
//
//     fuzz [--seed S] [--calls N]          operations until N calls are made
//     fuzz --seed S --from A --to B        operations A to B only
//     fuzz ... --print                     as a script, making none
//     fuzz --script FILE [--times N]       those of a script
//     fuzz ... --quiet                     no sampling sessions
//     fuzz ... --beside                    with other work running: memory is
//                                          not compared
//
// Exits with 1 on a failure: a task that cannot be killed, a mount that stays,
// kernel memory that is not freed.
#include "fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/types.h"
#include "user/libstrobe/strobe.h"

#define ROUND_OPS (LANES * EPISODE_OPS)
#define WARM_UP \
    10 // the part of the calls before memory is compared: 1 / WARM_UP

static struct settings {
    uint64_t seed;
    uint32_t calls, from, to, times;
    const char *script;
    bool print, quiet, beside;
} settings = { .seed = 1, .calls = 10000, .to = UINT32_MAX, .times = 1 };

static _Noreturn void usage(void)
{
    fprintf(stderr,
            "usage: fuzz [--seed S] [--calls N] [--from A] [--to B] [--print]\n"
            "            [--script FILE] [--times N] [--quiet] [--beside]\n");
    exit(2);
}

// Requires an argument: a worker that executes /proc/self/exe without any must
// not become a second supervisor, which would kill the first as a remaining
// task.
static void parse(int argc, char *argv[])
{
    if (argc < 2)
        usage();
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (strcmp(name, "--print") == 0) {
            settings.print = true;
            continue;
        }
        if (strcmp(name, "--beside") == 0) {
            settings.beside = true;
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

// --- episodes

// To the kernel log, which the console shows even if the machine stops.
static void print_where(uint32_t from, uint32_t to)
{
    char line[80];
    int fd = open("/dev/kmsg", O_WRONLY);
    int n = snprintf(line, sizeof(line), "fuzz --seed %llu --from %u --to %u\n",
                     (unsigned long long)settings.seed, from, to);
    (void)!write(fd, line, (size_t)n);
    close(fd);
}

// The episode that begins at operation `first`, limited to the range wanted.
static struct episode episode_at(uint32_t first)
{
    uint32_t end = first + (EPISODE_OPS - 1);
    struct episode e = { .shape = settings.seed * 1000003 + first,
                         .seed = settings.seed,
                         .first = MAX(first, settings.from) };
    end = MIN(end, settings.to);
    e.count = end >= e.first ? end - e.first + 1 : 0;
    return e;
}

static bool run_round(uint32_t first)
{
    struct episode e[LANES];
    uint32_t count = 0, end = 0;

    for (uint32_t i = 0; i < LANES; i++) {
        struct episode one = episode_at(first + i * EPISODE_OPS);
        if (one.count == 0)
            continue;
        if (settings.print)
            script_print(&one);
        e[count++] = one;
        end = one.first + one.count - 1;
    }
    if (settings.print || count == 0)
        return true;
    print_where(e[0].first, end);
    return round_run(e, count);
}

static bool wants_more(uint32_t first, uint32_t calls)
{
    return first <= settings.to && first >= settings.from / ROUND_OPS &&
           (settings.to != UINT32_MAX || shared->ops < calls);
}

// Runs rounds from operation `*first` on, until `calls` calls have been made,
// with concurrent sampling sessions.
static bool run_rounds(uint32_t *first, uint32_t calls)
{
    bool good = true;
    if (!settings.quiet && !settings.print)
        storm_begin((uint32_t)settings.seed);
    for (; good && wants_more(*first, calls); *first += ROUND_OPS)
        good = run_round(*first);
    storm_end();
    return end_all_tasks() && good;
}

// Compares the kernel's memory only after a part of the calls, which fills
// caches.
static bool run_all(void)
{
    uint32_t first = settings.from / ROUND_OPS * ROUND_OPS;
    bool good = true;

    if (settings.to == UINT32_MAX) {
        good = run_rounds(&first, settings.calls / WARM_UP);
        memory_note();
    }
    good = good && run_rounds(&first, settings.calls);
    printf("fuzz: seed %llu, operations %u to %u\n",
           (unsigned long long)settings.seed, settings.from, first - 1);
    return good;
}

static void print_all(void)
{
    uint32_t first = settings.from / ROUND_OPS * ROUND_OPS;
    for (; wants_more(first, settings.calls); first += ROUND_OPS)
        run_round(first);
}

static bool run_script(void)
{
    if (!settings.quiet)
        storm_begin((uint32_t)settings.seed);
    bool good = script_run(settings.script, settings.times);
    storm_end();
    return end_all_tasks() && good;
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
    grammar_prepare();
    if (mmap(shared, sizeof(*shared), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
        perror("fuzz: mmap");
        return 2;
    }
    if (settings.print) {
        print_all();
        return 0;
    }
    functions_prepare();
    bool good = end_all_tasks();
    jails_prepare();
    memory_note();
    good = (settings.script ? run_script() : run_all()) && good;
    report();
    return !((settings.beside || memory_check()) && good);
}
