// Operations as text: the output of `--print`, and the scripts in corpus/. A
// line
//
//     episode SHAPE
//
// begins an episode; each other line is an operation: the worker, the slot for
// a descriptor, the call's name, and its arguments' tokens as KIND:NUMBER.
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX 512
#define OPS_MAX 65536u

static const char *const token_names[] = {
#define TOKEN_NAME(name) #name,
    TOKENS(TOKEN_NAME)
#undef TOKEN_NAME
};

void script_print(const struct episode *e)
{
    const struct operation *ops = episode_ops(e);
    printf("episode %llx\n", (unsigned long long)e->shape);
    for (uint32_t i = 0; i < e->count; i++) {
        const struct operation *op = &ops[i];
        printf("%u %u %s", op->worker, op->slot, calls[op->call].name);
        for (uint32_t a = 0; calls[op->call].kinds[a] != '\0'; a++)
            printf(" %s:%x", token_names[op->argument[a].kind],
                   op->argument[a].value);
        printf("\n");
    }
}

static uint32_t line_number;

static _Noreturn void wrong(const char *what, const char *text)
{
    fprintf(stderr, "fuzz: line %u of the script: %s '%s'\n", line_number, what,
            text);
    exit(2);
}

static uint32_t index_of(const char *word, const char *what)
{
    if (*what == 't') {
        for (uint32_t i = 0; i < TOKEN_KINDS; i++) {
            if (strcmp(token_names[i], word) == 0)
                return i;
        }
    }
    for (uint32_t i = 0; *what == 'c' && i < call_count; i++) {
        if (strcmp(calls[i].name, word) == 0)
            return i;
    }
    wrong(what, word);
}

static uint32_t a_number(const char *word, int base)
{
    char *end;
    unsigned long value = word ? strtoul(word, &end, base) : 0;
    if (word == NULL || *word == '\0' || *end != '\0')
        wrong("number expected at", word ? word : "the end");
    return (uint32_t)value;
}

static void parse(char *line, struct operation *op)
{
    memset(op, 0, sizeof(*op));
    op->worker = a_number(strtok(line, " \n"), 10) % WORKERS;
    op->slot = a_number(strtok(NULL, " \n"), 10) % SLOTS;
    char *name = strtok(NULL, " \n");
    if (name == NULL)
        wrong("call expected at", "the end");
    op->call = index_of(name, "call unknown:");
    for (uint32_t i = 0; i < ARGUMENTS; i++) {
        char *word = strtok(NULL, " \n");
        if (word == NULL)
            break;
        char *colon = strchr(word, ':');
        if (colon == NULL)
            wrong("KIND:NUMBER expected at", word);
        *colon = '\0';
        op->argument[i].kind = index_of(word, "token unknown:");
        op->argument[i].value = a_number(colon + 1, 16);
    }
}

// Episodes of a script that run concurrently.
static struct {
    struct episode episodes[LANES];
    uint32_t count;
} round;

static bool run_some(uint32_t times)
{
    bool good = true;
    for (uint32_t i = 0; i < times; i++)
        good = round_run(round.episodes, round.count) && good;
    return good;
}

static void begin_episode(const struct operation *ops, uint64_t shape)
{
    round.episodes[round.count++] =
        (struct episode){ .shape = shape, .ops = ops };
}

bool script_run(const char *path, uint32_t times)
{
    static struct operation ops[OPS_MAX];
    char line[LINE_MAX];
    uint32_t count = 0;
    bool good = true;
    FILE *f = fopen(path, "r");

    if (f == NULL) {
        perror(path);
        exit(2);
    }
    for (line_number = 1; fgets(line, sizeof(line), f); line_number++) {
        if (line[0] == '#' || line[0] == '\n')
            continue;
        if (strncmp(line, "episode ", 8) == 0) {
            if (round.count == LANES) {
                good = run_some(times) && good;
                round.count = count = 0;
            }
            begin_episode(&ops[count], strtoull(line + 8, NULL, 16));
            continue;
        }
        if (count == OPS_MAX)
            wrong("too many operations at", line);
        if (round.count == 0)
            begin_episode(ops, 0);
        parse(line, &ops[count++]);
        round.episodes[round.count - 1].count++;
    }
    fclose(f);
    return run_some(times) && good;
}
