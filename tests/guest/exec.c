// execve: what a new program inherits, and files that are not programs.
#include "test.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>

#define FILE_NAME "/tmp/exec-test"

// --- what the new program finds ---------------------------------------------

static int inherited(int argc, char *argv[])
{
    sigset_t mask, pending;
    struct sigaction action;
    char name[16] = "";

    check(argc == 6 && strcmp(argv[2], "two words") == 0);
    check(strcmp(argv[3], "") == 0);
    check(getpid() == atoi(argv[4]));
    check(getenv("COLOUR") != NULL && strcmp(getenv("COLOUR"), "red") == 0);
    check(getenv("PATH") == NULL);
    check_error(fcntl(20, F_GETFD), EBADF); // close-on-exec
    check(fcntl(21, F_GETFD) == 0);
    check(sigaction(SIGUSR1, NULL, &action) == 0);
    check(action.sa_handler == SIG_DFL); // caught before the exec
    check(sigaction(SIGUSR2, NULL, &action) == 0);
    check(action.sa_handler == SIG_IGN);
    check(sigprocmask(SIG_BLOCK, NULL, &mask) == 0);
    check(sigismember(&mask, SIGHUP));
    check(sigpending(&pending) == 0 && sigismember(&pending, SIGHUP));
    check(alarm(0) > 0); // the alarm survives exec
    stack_t stack;
    check(sigaltstack(NULL, &stack) == 0 && stack.ss_flags == SS_DISABLE);
    int fd = open("/proc/self/stat", O_RDONLY);
    check(fd >= 0 && read(fd, name, 15) > 0);
    check(strlen(argv[5]) == 16384);
    return 23;
}

static void ignore(int signal)
{
    (void)signal;
}

static void become(void)
{
    char id[16], *large = malloc(16385);
    char *environment[] = { "COLOUR=red", NULL };
    static char alternate[8192];
    stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
    sigset_t mask;

    memset(large, 'x', 16384);
    large[16384] = '\0';
    snprintf(id, sizeof(id), "%d", getpid());
    char *arguments[] = { "exec", "child", "two words", "", id, large, NULL };
    check(fcntl(1, F_DUPFD_CLOEXEC, 20) == 20);
    check(dup2(1, 21) == 21);
    on_signal(SIGUSR1, ignore, 0);
    on_signal(SIGUSR2, SIG_IGN, 0);
    sigemptyset(&mask);
    sigaddset(&mask, SIGHUP);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    kill(getpid(), SIGHUP);
    alarm(50);
    check(sigaltstack(&stack, NULL) == 0);
    execve("/proc/self/exe", arguments, environment);
    check(!"execve came back");
}

// --- files that are not programs --------------------------------------------

static char *image; // this program's own file
static size_t image_size;

static void read_image(void)
{
    int fd = open("/proc/self/exe", O_RDONLY);
    struct stat st;
    check(fd >= 0 && fstat(fd, &st) == 0);
    image_size = st.st_size;
    image = malloc(image_size);
    size_t done = 0;
    while (done < image_size) {
        ssize_t n = read(fd, image + done, image_size - done);
        check(n > 0);
        done += n;
    }
    close(fd);
}

static void write_file(const void *bytes, size_t size, mode_t mode)
{
    unlink(FILE_NAME);
    int fd = open(FILE_NAME, O_WRONLY | O_CREAT | O_TRUNC, mode);
    check(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    check(fchmod(fd, mode) == 0);
    close(fd);
}

static void try(void)
{
    char *arguments[] = { FILE_NAME, "child-of-copy", NULL };
    execve(FILE_NAME, arguments, NULL);
    _exit(errno);
}

static void must_fail(const void *bytes, size_t size, mode_t mode, int error)
{
    write_file(bytes, size, mode);
    int status = in_child(try);
    if (!exited_with(status, error))
        dprintf(1, "status %x\n", status);
    check(exited_with(status, error));
}

// Errors past the header may be found only after the point of no return: then a
// signal ends the task. Nothing else may happen.
static void must_not_run(const void *bytes, size_t size)
{
    write_file(bytes, size, 0755);
    int status = in_child(try);
    if (!(WIFSIGNALED(status) ||
          (WIFEXITED(status) && WEXITSTATUS(status) != 0)))
        dprintf(1, "status %x\n", status);
    check(WIFSIGNALED(status) ||
          (WIFEXITED(status) && WEXITSTATUS(status) != 0));
}

static void not_programs(void)
{
    static const char garbage[5000] = "\1\2\3 nothing that anybody runs";

    check_error(execl("/nowhere/at-all", "x", NULL), ENOENT);
    check_error(execl("/tmp", "x", NULL), EACCES);
    check_error(execl("/proc/self/exe/x", "x", NULL), ENOTDIR);
    check_error(execl("", "x", NULL), ENOENT);
    must_fail("", 0, 0755, ENOEXEC);
    must_fail("\177", 1, 0755, ENOEXEC);
    must_fail("\177ELF", 4, 0755, ENOEXEC);
    must_fail(garbage, sizeof(garbage), 0755, ENOEXEC);
    must_fail(image, 51, 0755, ENOEXEC); // a byte short of a header
    ok("files that are no programs");
}

static void wrong_headers(void)
{
    Elf32_Ehdr good = *(Elf32_Ehdr *)image, *h = (Elf32_Ehdr *)image;

    h->e_type = ET_REL;
    must_fail(image, image_size, 0755, ENOEXEC);
    *h = good;
    h->e_machine = EM_ARM;
    must_fail(image, image_size, 0755, ENOEXEC);
    *h = good;
    h->e_phnum = 0;
    must_fail(image, image_size, 0755, ENOEXEC);
    *h = good;
    h->e_phentsize = 7;
    must_fail(image, image_size, 0755, ENOEXEC);
    *h = good;
    h->e_phoff = 0xfffffff0;
    must_not_run(image, image_size);
    h->e_phoff = image_size;
    must_not_run(image, image_size);
    *h = good;
    ok("wrong ELF headers");
}

// Sets each field of the first two loadable segments to extreme values.
static void wrong_segments(void)
{
    static const Elf32_Word values[] = { 0xfffff000, 0xffffffff, 0xc0000000,
                                         0x7fffffff };
    Elf32_Ehdr *h = (Elf32_Ehdr *)image;
    Elf32_Phdr *segments = (Elf32_Phdr *)(image + h->e_phoff);
    int tried = 0;

    for (int i = 0; i < h->e_phnum && tried < 2; i++) {
        if (segments[i].p_type != PT_LOAD)
            continue;
        tried++;
        Elf32_Phdr good = segments[i];
        for (size_t v = 0; v < sizeof(values) / sizeof(*values); v++) {
            segments[i].p_vaddr = values[v];
            must_not_run(image, image_size);
            segments[i] = good;
            segments[i].p_filesz = values[v];
            must_not_run(image, image_size);
            segments[i] = good;
            segments[i].p_offset = values[v] & ~0xfffu;
            must_not_run(image, image_size);
            segments[i] = good;
        }
        segments[i].p_filesz = good.p_memsz + 1; // larger than p_memsz
        must_not_run(image, image_size);
        segments[i] = good;
    }
    ok("wrong ELF segments");
}

static void cut_off(void)
{
    for (size_t size = 52; size < image_size / 4; size += image_size / 32)
        must_not_run(image, size);
    ok("truncated programs");
}

static void sound_copy(void)
{
    write_file(image, image_size, 0755);
    int status = in_child(try);
    check(exited_with(status, 37));
    check(unlink(FILE_NAME) == 0);
    ok("the sound copy runs");
}

static void too_much(void)
{
    size_t size = 32 * 1024 * 1024;
    char *huge = malloc(size);
    char *arguments[] = { "x", huge, NULL };

    check(huge != NULL);
    memset(huge, 'x', size);
    huge[size - 1] = '\0';
    check_error(execv("/proc/self/exe", arguments), E2BIG);
    free(huge);
    ok("too many arguments");
}

int main(int argc, char *argv[])
{
    if (argc > 1 && strcmp(argv[1], "child") == 0)
        return inherited(argc, argv);
    if (argc > 1 && strcmp(argv[1], "child-of-copy") == 0)
        return 37;
    alarm(TEST_SECONDS);
    int status = in_child(become);
    check(exited_with(status, 23));
    ok("what exec keeps and what not");
    read_image();
    not_programs();
    wrong_headers();
    wrong_segments();
    cut_off();
    sound_copy();
    too_much();
    return 0;
}
