// All CPUs of the machine, which may be more than one word of a mask has bits:
// affinity, its sizes, and address spaces that change while all CPUs use them.
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define CPUS_MAX 256
#define WORDS (CPUS_MAX / 32)
#define PAGE 4096
#define ROUNDS 4

static uint32_t all[WORDS];
static int cpus; // numbered from 0

static long set_mask(size_t size, const void *mask)
{
    return syscall(SYS_sched_setaffinity, 0, size, mask);
}

static long get_mask(size_t size, void *mask)
{
    return syscall(SYS_sched_getaffinity, 0, size, mask);
}

static void find_cpus(void)
{
    check(get_mask(sizeof(all), all) > 0);
    while (cpus < CPUS_MAX && all[cpus / 32] >> cpus % 32 & 1)
        cpus++;
    for (int i = cpus; i < CPUS_MAX; i++)
        check(!(all[i / 32] >> i % 32 & 1));
    check(cpus > 0);
}

static void run_on(int cpu)
{
    uint32_t mask[WORDS] = { 0 };

    mask[cpu / 32] = 1u << cpu % 32;
    check(set_mask(sizeof(mask), mask) == 0);
}

// The CPU on which this process runs: field 39 of its stat.
static int cpu_of_stat(void)
{
    char text[1024], *at;
    FILE *file = fopen("/proc/self/stat", "r");

    check(file && fgets(text, sizeof(text), file));
    fclose(file);
    at = strrchr(text, ')');
    for (int field = 2; field < 39; field++) {
        at = strchr(at + 1, ' ');
        check(at);
    }
    return atoi(at);
}

static void each_cpu(void)
{
    for (int cpu = cpus - 1; cpu >= 0; cpu--) {
        uint32_t mask[WORDS] = { 0 };

        run_on(cpu);
        check(cpu_of_stat() == cpu);
        check(get_mask(sizeof(mask), mask) > 0);
        check(mask[cpu / 32] == 1u << cpu % 32);
    }
    check(set_mask(sizeof(all), all) == 0);
    ok("a thread runs on each CPU");
}

static void sizes(void)
{
    int least = (cpus + 31) / 32 * 4;
    uint32_t mask[2 * WORDS], short_one;

    for (int size = 0; size <= (int)sizeof(mask); size++) {
        memset(mask, 0xee, sizeof(mask));
        if (size < least || size % 4) {
            check_error(get_mask(size, mask), EINVAL);
            continue;
        }
        long stored = get_mask(size, mask);
        check(stored >= least && stored <= size && stored % 4 == 0);
        check(memcmp(mask, all, least) == 0);
        for (int i = stored / 4; i < 2 * WORDS; i++)
            check(mask[i] == 0xeeeeeeee);
    }
    ok("the size of a mask that is read");

    run_on(cpus - 1);
    memset(mask, 0, sizeof(mask));
    short_one = 1;
    check(set_mask(sizeof(short_one), &short_one) == 0);
    check(get_mask(sizeof(all), mask) > 0 && mask[0] == 1);
    for (int i = 1; i < WORDS; i++)
        check(mask[i] == 0);
    check_error(set_mask(0, &short_one), EINVAL);
    memset(mask, 0, sizeof(mask));
    check_error(set_mask(sizeof(mask), mask), EINVAL); // no CPU
    mask[WORDS] = 1;
    check_error(set_mask(sizeof(mask), mask), EINVAL); // one that is not there
    mask[(cpus - 1) / 32] = 1u << (cpus - 1) % 32;
    check(set_mask(sizeof(mask), mask) == 0);
    check(cpu_of_stat() == cpus - 1);
    check_error(set_mask(4, (void *)16), EFAULT);
    check_error(get_mask(sizeof(all), (void *)16), EFAULT);
    check(set_mask(sizeof(all), all) == 0);
    ok("the size of a mask that is set");
}

static uint32_t *page;
static uint32_t turn; // atomic
static uint32_t seen; // threads that have read the page in this turn

static void *read_page(void *cpu)
{
    run_on((int)(intptr_t)cpu);
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != i)
            __builtin_ia32_pause();
        check(*(volatile uint32_t *)page == i);
        __atomic_fetch_add(&seen, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

// Another page takes the place of the one that all CPUs have in their TLBs.
static void replace_page(uint32_t value)
{
    page = mmap(page, PAGE, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | (page ? MAP_FIXED : 0), -1, 0);
    check(page != MAP_FAILED);
    *page = value;
}

static void one_page_on_all(void)
{
    pthread_t thread[CPUS_MAX];
    pthread_attr_t small;

    check(!pthread_attr_init(&small));
    check(!pthread_attr_setstacksize(&small, 16384));
    replace_page(0);
    for (int i = 0; i < cpus; i++)
        check(!pthread_create(&thread[i], &small, read_page,
                              (void *)(intptr_t)i));
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        replace_page(i);
        __atomic_store_n(&seen, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&turn, i, __ATOMIC_RELEASE);
        while (__atomic_load_n(&seen, __ATOMIC_ACQUIRE) < (uint32_t)cpus)
            sched_yield();
    }
    for (int i = 0; i < cpus; i++)
        check(!pthread_join(thread[i], NULL));
    ok("a page that is replaced is new on all CPUs");
}

// --- an address space of two CPUs -------------------------------------------

#define QUIT 4 // a turn, after those that check a page

static volatile uint32_t *shared;
static sigjmp_buf no_access;

static void on_fault(int signal)
{
    siglongjmp(no_access, signal);
}

// The value, or -1: the page cannot be read; -2: it cannot be written.
static int access_page(bool write)
{
    if (sigsetjmp(no_access, 1))
        return write ? -2 : -1;
    int value = (int)*shared;
    if (write)
        *shared = (uint32_t)value;
    return value;
}

static int found; // by the observer in this turn

// Reads and writes the page when it is its turn. Between turns it runs, so
// that its CPU keeps the page in its TLB.
static void *observe(void *cpu)
{
    run_on((int)(intptr_t)cpu);
    for (uint32_t i = 1; i < QUIT; i++) {
        while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != i)
            __builtin_ia32_pause();
        found = access_page(i == 2);
        __atomic_store_n(&seen, i, __ATOMIC_RELEASE);
    }
    return NULL;
}

static int observed(uint32_t i)
{
    __atomic_store_n(&turn, i, __ATOMIC_RELEASE);
    while (__atomic_load_n(&seen, __ATOMIC_ACQUIRE) != i)
        __builtin_ia32_pause();
    return found;
}

// In a new process, which has never run on other CPUs.
static int change_page(int cpu)
{
    pthread_t thread;
    struct sigaction action = { .sa_handler = on_fault };

    alarm(TEST_SECONDS);
    check(!sigaction(SIGSEGV, &action, NULL));
    turn = seen = 0;
    shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(shared != MAP_FAILED);
    *shared = 7;
    check(!pthread_create(&thread, NULL, observe, (void *)(intptr_t)cpu));
    check(observed(1) == 7);
    check(!mprotect((void *)shared, PAGE, PROT_READ));
    check(observed(2) == -2);
    check(!munmap((void *)shared, PAGE));
    check(observed(3) == -1);
    check(!pthread_join(thread, NULL));
    return 0;
}

// The address space has never been loaded on other CPUs: the child's affinity
// is that of its parent.
static void two_cpus_only(int first, int second)
{
    int status;

    run_on(first);
    pid_t child = fork();
    check(child >= 0);
    if (!child)
        _exit(change_page(second));
    check(waitpid(child, &status, 0) == child && status == 0);
    check(set_mask(sizeof(all), all) == 0);
}

static void pairs(void)
{
    two_cpus_only(cpus - 1, cpus > 1 ? cpus - 2 : 0);
    two_cpus_only(cpus - 1, 0);
    two_cpus_only(0, cpus - 1);
    ok("a page that one CPU changes is changed on the other");
}

int main(void)
{
    alarm(TEST_SECONDS);
    find_cpus();
    printf("%d CPUs\n", cpus);
    fflush(stdout);
    each_cpu();
    sizes();
    one_page_on_all();
    pairs();
    return 0;
}
