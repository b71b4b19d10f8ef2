// The vDSO: found as a libc finds it, agrees with the calls it stands for, is
// read-only, and gone only if a program unmaps it.
#include "test.h"

#include <elf.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>

#include "user/libstrobe/strobe.h"

#define NR_CLOCK_GETTIME32 265
#define NR_CLOCK_GETTIME64 403
#define NR_GETTIMEOFDAY 78
#define SEC 1000000000ll
#define PAGE 4096u

struct timespec32 {
    int32_t sec, nsec;
};
struct timespec64 {
    int64_t sec, nsec;
};
struct timeval32 {
    int32_t sec, usec;
};

static char *image;
static int (*gettime32)(int clock, struct timespec32 *t);
static int (*gettime64)(int clock, struct timespec64 *t);
static int (*getres32)(int clock, struct timespec32 *t);
static int (*get_day)(struct timeval32 *t, void *zone);
static int32_t (*get_time)(int32_t *t);

// --- finding ----------------------------------------------------------------

static unsigned sysv_hash(const char *name)
{
    unsigned h = 0, high;
    for (; *name; name++) {
        h = (h << 4) + (unsigned char)*name;
        high = h & 0xf0000000;
        h = (h ^ high >> 24) & ~high;
    }
    return h;
}

static Elf32_Dyn *dynamic_section(void)
{
    Elf32_Ehdr *h = (Elf32_Ehdr *)image;
    Elf32_Phdr *p = (Elf32_Phdr *)(image + h->e_phoff);
    check(memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 && h->e_type == ET_DYN);
    for (int i = 0; i < h->e_phnum; i++) {
        check(p[i].p_type != PT_LOAD || !(p[i].p_flags & PF_W));
        if (p[i].p_type == PT_DYNAMIC)
            return (Elf32_Dyn *)(image + p[i].p_vaddr);
    }
    check(!"dynamic section");
    return NULL;
}

static void *dynamic_entry(int tag)
{
    for (Elf32_Dyn *d = dynamic_section(); d->d_tag != DT_NULL; d++) {
        if (d->d_tag == tag)
            return image + d->d_un.d_ptr;
    }
    check(!"dynamic entry");
    return NULL;
}

static const char *version_of(Elf32_Word symbol)
{
    Elf32_Half *versions = dynamic_entry(DT_VERSYM);
    const char *strings = dynamic_entry(DT_STRTAB);
    Elf32_Verdef *v = dynamic_entry(DT_VERDEF);
    for (;; v = (Elf32_Verdef *)((char *)v + v->vd_next)) {
        Elf32_Verdaux *aux = (Elf32_Verdaux *)((char *)v + v->vd_aux);
        if (v->vd_ndx == (versions[symbol] & 0x7fff))
            return strings + aux->vda_name;
        if (!v->vd_next)
            return "";
    }
}

// Looks a symbol up in the ELF hash table.
static void *find(const char *name)
{
    Elf32_Word *hash = dynamic_entry(DT_HASH);
    Elf32_Sym *symbols = dynamic_entry(DT_SYMTAB);
    const char *strings = dynamic_entry(DT_STRTAB);
    Elf32_Word buckets = hash[0], *bucket = hash + 2, *chain = bucket + buckets;
    Elf32_Word i = bucket[sysv_hash(name) % buckets];
    for (; i != STN_UNDEF; i = chain[i]) {
        if (strcmp(strings + symbols[i].st_name, name) == 0) {
            check(strcmp(version_of(i), "LINUX_2.6") == 0);
            check(ELF32_ST_TYPE(symbols[i].st_info) == STT_FUNC);
            return image + symbols[i].st_value;
        }
    }
    return NULL;
}

static void finding(void)
{
    image = (char *)getauxval(AT_SYSINFO_EHDR);
    check(image != NULL);
    gettime32 = find("__vdso_clock_gettime");
    gettime64 = find("__vdso_clock_gettime64");
    getres32 = find("__vdso_clock_getres");
    get_day = find("__vdso_gettimeofday");
    get_time = find("__vdso_time");
    check(gettime32 && gettime64 && getres32 && get_day && get_time);
    check(find("__vdso_nothing") == NULL);
    ok("its functions are where a libc looks for them");
}

// --- agreeing ---------------------------------------------------------------

static int64_t by_call(int clock)
{
    struct timespec64 t;
    check(syscall(NR_CLOCK_GETTIME64, clock, &t) == 0);
    return t.sec * SEC + t.nsec;
}

static int64_t by_vdso(int clock)
{
    struct timespec64 t = { -1, -1 };
    check(gettime64(clock, &t) == 0);
    check(t.sec >= 0 && t.nsec >= 0 && t.nsec < SEC);
    return t.sec * SEC + t.nsec;
}

static int64_t by_vdso32(int clock)
{
    struct timespec32 t = { -1, -1 };
    check(gettime32(clock, &t) == 0);
    check(t.nsec >= 0 && t.nsec < SEC);
    return t.sec * SEC + t.nsec;
}

static void in_order(int clock)
{
    int64_t a = by_call(clock), b = by_vdso(clock), c = by_vdso32(clock);
    int64_t d = by_call(clock);
    check(a <= b && b <= c && c <= d);
}

static void agreeing(void)
{
    struct timespec32 t, resolution[2];
    for (int i = 0; i < 2000; i++) {
        in_order(CLOCK_MONOTONIC);
        in_order(CLOCK_REALTIME);
        in_order(CLOCK_MONOTONIC_RAW);
        in_order(CLOCK_BOOTTIME);
        if (i % 500 == 0)
            sleep_ms(700); // longer than a time line, too
    }
    // Clocks that it leaves to the kernel.
    check(by_vdso(CLOCK_PROCESS_CPUTIME_ID) > 0);
    check(by_vdso32(CLOCK_THREAD_CPUTIME_ID) > 0);
    check(gettime32(77, &t) == -EINVAL && gettime32(-1, &t) == -EINVAL);
    check(getres32(CLOCK_REALTIME, &resolution[0]) == 0);
    check(syscall(266, CLOCK_REALTIME, &resolution[1]) == 0);
    check(resolution[0].sec == 0 && resolution[0].nsec == resolution[1].nsec);
    ok("it agrees with the calls");
}

static void days(void)
{
    struct timeval32 before, now, after;
    int32_t zone[2] = { 77, 77 }, stored = 0;
    check(syscall(NR_GETTIMEOFDAY, &before, 0) == 0);
    check(get_day(&now, NULL) == 0);
    check(syscall(NR_GETTIMEOFDAY, &after, 0) == 0);
    int64_t a = before.sec * 1000000ll + before.usec;
    int64_t b = now.sec * 1000000ll + now.usec;
    check(a <= b && b <= after.sec * 1000000ll + after.usec);
    check(now.usec >= 0 && now.usec < 1000000);
    check(get_day(&now, zone) == 0 && zone[0] != 77 && zone[1] != 77);
    check(get_day(NULL, zone) == 0);
    int32_t first = get_time(NULL), second = get_time(&stored);
    check(first >= after.sec && second >= first && stored == second);
    check(syscall(SYS_time, NULL) >= second);
    ok("gettimeofday and time");
}

// Each of its calls returns: none is `call 1f; 1: pop`, which would leave a
// caller that is none in the CPU's records of calls.
static void calls(void)
{
    static const char to_next[] = { '\xe8', 0, 0, 0, 0 };
    const Elf32_Ehdr *h = (const Elf32_Ehdr *)image;
    const Elf32_Phdr *p = (const Elf32_Phdr *)(image + h->e_phoff);
    check(p->p_type == PT_LOAD &&
          p->p_filesz > (uint32_t)getres32 - (uint32_t)image);
    check(memmem(image, p->p_filesz, to_next, sizeof(to_next)) == NULL);
    ok("its calls return");
}

// The symbols that a profiler finds in it.
static void symbols(void)
{
    struct program_symbols p;
    check(program_symbols_load(&p, "[vdso]") == NULL);
    uint32_t address = (char *)gettime64 - image;
    const struct symbol *s = symbols_find(&p.symbols, address + 5);
    check(s != NULL && s->start == address && s->end > address + 5);
    check(s->name_size == strlen("__vdso_clock_gettime64"));
    check(memcmp(s->name, "__vdso_clock_gettime64", s->name_size) == 0);
    program_symbols_free(&p);
    ok("its symbols are found by name");
}

// --- what a program may do to it --------------------------------------------

static void write_to(void *where)
{
    pid_t pid = fork();
    if (pid == 0) {
        *(volatile char *)where = 1;
        _exit(0);
    }
    int status;
    check(waitpid(pid, &status, 0) == pid && killed_by(status, SIGSEGV));
}

static void read_only(void)
{
    write_to(image);
    write_to(image - PAGE);
    static const int protections[] = { PROT_WRITE, PROT_READ | PROT_WRITE,
                                       PROT_READ | PROT_WRITE | PROT_EXEC };
    for (int i = 0; i < 3; i++) {
        check_error(mprotect(image, PAGE, protections[i]), EACCES);
        check_error(mprotect(image - PAGE, PAGE, protections[i]), EACCES);
    }
    // A system call does not write there either.
    check_error(syscall(NR_CLOCK_GETTIME64, CLOCK_REALTIME, image), EFAULT);
    check_error(syscall(NR_CLOCK_GETTIME64, CLOCK_REALTIME, image - PAGE),
                EFAULT);
    ok("it is read-only");
}

// mremap with all flags: in place, to a place that the kernel chooses, to ours.
static void grow(char *from)
{
    char *room =
        mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(room != MAP_FAILED);
    static const int flags[] = { 0, MREMAP_MAYMOVE,
                                 MREMAP_MAYMOVE | MREMAP_FIXED };
    for (int i = 0; i < 3; i++) {
        for (int pages = 2; pages <= 4; pages++)
            check(syscall(SYS_mremap, from, PAGE, pages * PAGE, flags[i],
                          room) == -1 &&
                  errno == EFAULT);
    }
    check(munmap(room, 4 * PAGE) == 0);
}

static void growing(void)
{
    grow(image - PAGE);
    grow(image);
    in_order(CLOCK_MONOTONIC);
    ok("it does not grow");
}

// The C library makes its calls through the vDSO (AT_SYSINFO), so children that
// unmap it use this.
static long call(long number, long a, long b, long c, long d, long e)
{
    long result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "0"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
                     : "memory");
    return result;
}

static void must(bool condition)
{
    if (!condition)
        call(SYS_exit_group, 1, 0, 0, 0, 0);
}

static int64_t now_by_call(void)
{
    struct timespec64 t;
    must(call(NR_CLOCK_GETTIME64, CLOCK_MONOTONIC, (long)&t, 0, 0, 0) == 0);
    return t.sec * SEC + t.nsec;
}

static int64_t now_by_vdso(void)
{
    struct timespec64 t;
    must(gettime64(CLOCK_MONOTONIC, &t) == 0);
    return t.sec * SEC + t.nsec;
}

static long move(char *from, char *to)
{
    return call(SYS_mremap, (long)from, PAGE, PAGE,
                MREMAP_MAYMOVE | MREMAP_FIXED, (long)to);
}

// --- handlers without SA_RESTORER -------------------------------------------

static volatile int handled;

static void on_user(int signal)
{
    handled += signal;
}

static void on_user_info(int signal, siginfo_t *info, void *context)
{
    handled += context != NULL && info->si_signo == signal ? 100 : 0;
}

// As glibc does where there is a vDSO: without SA_RESTORER.
static void set_handler(void *handler, unsigned flags)
{
    struct {
        void *handler;
        unsigned flags;
        void *restorer;
        uint64_t mask;
    } action = { handler, flags, NULL, 0 };
    must(call(SYS_rt_sigaction, SIGUSR1, (long)&action, 0, 8, 0) == 0);
}

static void handle_both(void)
{
    long self = call(SYS_getpid, 0, 0, 0, 0, 0);
    handled = 0;
    set_handler(on_user, 0);
    must(call(SYS_kill, self, SIGUSR1, 0, 0, 0) == 0);
    must(handled == SIGUSR1);
    set_handler(on_user_info, SA_SIGINFO);
    must(call(SYS_kill, self, SIGUSR1, 0, 0, 0) == 0);
    must(handled == SIGUSR1 + 100);
}

static void handlers(void)
{
    handle_both();
    call(SYS_exit_group, 0, 0, 0, 0, 0);
}

// Moves both pages: the code finds its data there.
static void moved(void)
{
    char *room =
        mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(room != MAP_FAILED);
    must(move(image - PAGE, room) == (long)room);
    must(move(image, room + PAGE) == (long)(room + PAGE));
    gettime64 = (void *)((char *)gettime64 + (room + PAGE - image));
    int64_t before = now_by_call(), now = now_by_vdso();
    must(before <= now && now <= now_by_call());
    long protection = PROT_READ | PROT_WRITE;
    must(call(SYS_mprotect, (long)room, PAGE, protection, 0, 0) == -EACCES);
    must(call(SYS_madvise, (long)room, 2 * PAGE, MADV_DONTNEED, 0, 0) == 0);
    must(now_by_vdso() >= now);
    handle_both();
    int status;
    long pid = call(SYS_fork, 0, 0, 0, 0, 0);
    if (pid == 0) {
        must(now_by_vdso() >= now);
        call(SYS_exit_group, 0, 0, 0, 0, 0);
    }
    must(call(SYS_wait4, pid, (long)&status, 0, 0, 0) == pid && status == 0);
    call(SYS_exit_group, 0, 0, 0, 0, 0);
}

static void unmapped(void)
{
    char *const arguments[] = { "vdso", "again", NULL };
    must(call(SYS_munmap, (long)(image - PAGE), 2 * PAGE, 0, 0, 0) == 0);
    must(now_by_call() > 0);
    call(SYS_execve, (long)"/proc/self/exe", (long)arguments, (long)environ, 0,
         0);
    must(false);
}

static void changing(void)
{
    check(exited_with(in_child(handlers), 0));
    check(exited_with(in_child(moved), 0));
    check(exited_with(in_child(unmapped), 0));
    ok("a program may move it, drop it, and get it back by exec");
}

int main(int argc, char **argv)
{
    struct utsname names;
    (void)argv;
    alarm(TEST_SECONDS);
    finding();
    if (argc > 1)
        return by_vdso(CLOCK_MONOTONIC) <= 0;
    agreeing();
    days();
    check(uname(&names) == 0);
    if (strcmp(names.sysname, "Strobe") != 0) { // Linux promises less
        ok("symbols, protection, changes: skipped, this is not Strobe");
        return 0;
    }
    calls();
    symbols();
    read_only();
    growing();
    changing();
    return 0;
}
