// W^X: no page is both writable and executable unless its program asked for it.
// The kernel walks all page tables. Stacks are executable for programs whose
// header asks for it.
#include "test.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "user/libstrobe/sysinfo.h"

#define PAGE 4096u

// movl $42, %eax; ret
static const unsigned char code[] = { 0xb8, 42, 0, 0, 0, 0xc3 };

static int call(const void *at)
{
    int (*fn)(void);
    memcpy(&fn, &at, sizeof(fn));
    return fn();
}

static void call_on_stack(void)
{
    unsigned char copy[sizeof(code)];
    memcpy(copy, code, sizeof(code));
    __asm__ volatile("" : : "r"(copy) : "memory");
    _exit(call(copy));
}

static char data[2 * PAGE];

static void call_in_data(void)
{
    memcpy(data, code, sizeof(code));
    _exit(call(data));
}

static void call_in_mapping(void)
{
    void *m = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(m != MAP_FAILED);
    memcpy(m, code, sizeof(code));
    _exit(call(m));
}

static void call_in_heap(void)
{
    void *m = malloc(100);
    memcpy(m, code, sizeof(code));
    _exit(call(m));
}

static void what_is_written_does_not_run(void)
{
    check(killed_by(in_child(call_on_stack), SIGSEGV));
    check(killed_by(in_child(call_in_data), SIGSEGV));
    check(killed_by(in_child(call_in_mapping), SIGSEGV));
    check(killed_by(in_child(call_in_heap), SIGSEGV));
    ok("stack, data, heap and mappings do not run");
}

// --- an executable stack ----------------------------------------------------

static void ask_for_stack(int fd)
{
    Elf32_Ehdr h;
    Elf32_Phdr p;
    check(pread(fd, &h, sizeof(h), 0) == sizeof(h));
    for (unsigned i = 0; i < h.e_phnum; i++) {
        off_t at = h.e_phoff + i * sizeof(p);
        check(pread(fd, &p, sizeof(p), at) == sizeof(p));
        if (p.p_type != PT_GNU_STACK)
            continue;
        check(!(p.p_flags & PF_X));
        p.p_flags |= PF_X;
        check(pwrite(fd, &p, sizeof(p), at) == sizeof(p));
        return;
    }
    check(!"a PT_GNU_STACK");
}

static const char *copy_name = "/tmp/mm_protection-stack";

static void copy_that_asks(void)
{
    char buf[PAGE];
    int in = open("/proc/self/exe", O_RDONLY);
    int out = open(copy_name, O_CREAT | O_RDWR | O_TRUNC, 0700);
    check(in >= 0 && out >= 0);
    for (ssize_t n; (n = read(in, buf, sizeof(buf))) > 0;)
        check(write(out, buf, n) == n);
    ask_for_stack(out);
    close(in);
    close(out);
}

static void run_copy(void)
{
    execl(copy_name, "x", "stack", NULL);
}

static void stack_by_wish(void)
{
    copy_that_asks();
    check(exited_with(in_child(run_copy), 42));
    unlink(copy_name);
    ok("a stack runs for a program that says so");
}

// --- all page tables --------------------------------------------------------

static struct sysinfo_protection now(void)
{
    struct sysinfo_protection p;
    check(sysinfo_get_protection("system.protection", &p) == 0);
    return p;
}

static void all_tables(void)
{
    struct sysinfo_protection p = now();
    check(p.kernel > 1000 && p.kernel_both == 0 && p.kernel_user == 0);
    check(p.user > 20 && p.user_executable > 5 && p.user_both == 0);
    char *m = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(m != MAP_FAILED);
    m[0] = m[PAGE] = 1;
    check(now().user_both == 2); // only touched pages
    check(mprotect(m, PAGE, PROT_READ | PROT_EXEC) == 0);
    check(now().user_both == 1);
    memcpy(m + PAGE, code, sizeof(code));
    check(call(m + PAGE) == 42 && munmap(m, 3 * PAGE) == 0);
    check(now().user_both == 0);
    ok("no page in all page tables but by a program's wish");
}

int main(int argc, char **argv)
{
    struct sysinfo_protection p;
    alarm(TEST_SECONDS);
    if (argc == 2 && strcmp(argv[1], "stack") == 0)
        call_on_stack();
    bool strobe = sysinfo_get_protection("system.protection", &p) == 0;
    if (strobe && !p.forbids_execution) {
        ok("nothing: the CPU cannot forbid execution");
        return 0;
    }
    what_is_written_does_not_run();
    stack_by_wish();
    if (strobe)
        all_tables();
    return 0;
}
