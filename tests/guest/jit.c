// JIT code: generated at run time, in no file, with a map for perf in
// /tmp/perf-PID.map. `jit ROUNDS` runs it ROUNDS times, `jit ROUNDS nameless`
// without a map. Its function "spin" counts down from 20,000; "twice the spin"
// calls it two times. `jit ROUNDS bare` runs "bare", which calls a function of
// the program, and has no frame.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OUTLINE __attribute__((noinline, noclone))
#define TWICE 64 // offsets
#define BARE 128

static const unsigned char spin[] = {
    0x55,                         // push %ebp
    0x89, 0xe5,                   // mov %esp, %ebp
    0xb9, 0x20, 0x4e, 0x00, 0x00, // mov $20000, %ecx
    0x49,                         // 1: dec %ecx
    0x75, 0xfd,                   // jnz 1b
    0x5d,                         // pop %ebp
    0xc3,                         // ret
};

static const unsigned char twice[] = {
    0x55,                         // push %ebp
    0x89, 0xe5,                   // mov %esp, %ebp
    0xe8, 0xb8, 0xff, 0xff, 0xff, // call spin
    0xe8, 0xb3, 0xff, 0xff, 0xff, // call spin
    0x5d,                         // pop %ebp
    0xc3,                         // ret
};

static const unsigned char bare[] = {
    0xff, 0x54, 0x24, 0x04, // call *4(%esp)
    0xc3,                   // ret
};

OUTLINE static void burn(void)
{
    for (volatile unsigned i = 0; i < 20000; i++)
        ;
}

OUTLINE static void run_bare(const unsigned char *code)
{
    void (*volatile run)(void (*)(void)) =
        (void (*)(void (*)(void)))(code + BARE);
    run(burn);
    __asm__ volatile(""); // no tail call
}

static void write_map(const unsigned char *code)
{
    char path[40];
    snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    if (!map)
        exit(1);
    fprintf(map, "%lx %zx overwritten\n%lx %zx spin\n", (long)code,
            sizeof(spin), (long)code, sizeof(spin));
    fprintf(map, "%lx %zx twice the spin\n", (long)code + TWICE, sizeof(twice));
    fprintf(map, "%lx %zx bare\n", (long)code + BARE, sizeof(bare));
    fclose(map);
}

int main(int argc, char *argv[])
{
    unsigned rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        return 1;
    memcpy(code, spin, sizeof(spin));
    memcpy(code + TWICE, twice, sizeof(twice));
    memcpy(code + BARE, bare, sizeof(bare));
    bool is_bare = argc > 2 && strcmp(argv[2], "bare") == 0;
    if (argc < 3 || is_bare)
        write_map(code);
    void (*volatile run)(void) = (void (*)(void))(code + TWICE);
    for (unsigned i = 0; i < rounds; i++)
        is_bare ? run_bare(code) : run();
    printf("ok code of no file\n");
    return 0;
}
