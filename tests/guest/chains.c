// Call chains as profile -g sees them: a child runs one kind of code
// repeatedly. Every sample of it must have the right callers, at whichever
// instruction it was taken.
//
//     chains                     all kinds, a few samples of each
//     chains KIND SAMPLES        one kind; prints each place that was hit:
//                                at NAME ADDRESS
//     chains ways SAMPLES        all ways into the kernel; a debugger takes at
//                                least SAMPLES samples there
//                                (tests/system/test_entry.py); prints each new
//                                chain in order, until no more come:
//                                sample ADDRESS KERNEL-ENTRIES
//
// Uses the libprofile that makes the reports. Skipped on Linux.
#include "chain_ways.h"
#include "test.h"

#include "user/libprofile/samples.h"
#include "user/libstrobe/strobe.h"

#include <sys/auxv.h>
#include <sys/mman.h>

#define RATE_HZ 20000
#define FEW 300u
#define WAIT_MS 20000
#define RARE_HZ 2
#define RARE_WAIT_MS 1000
#define QUIET 8u // user-mode samples in a row: the debugger is done

// --- what must be seen ------------------------------------------------------

struct kind {
    const char *name;
    void (*run)(unsigned n);
    bool cut;  // its chains are cut off and marked so
    bool rare; // sampled at RARE_HZ, besides the debugger's samples
};
static const struct kind kinds[] = {
    { "calls", calls, false, false },
    { "entries", entries, false, false },
    { "wrappers", wrappers, false, false },
    { "faults", faults, false, false },
    { "interrupts", interrupts, false, false },
    { "signals", signals, false, false },
    { "deep", deep, false, false },
    { "too_deep", too_deep, true, false },
    { "torn", torn, true, false },
    { "nowhere", nowhere, false, false },
    { "astray", astray, false, false },
    { "ways", ways, false, true },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

// Allowed pairs of callee and caller. `leaf` has several callers.
static const char *const callers[][2] = {
    { "leaf", "middle" },
    { "leaf", "sized" },
    { "leaf", "aligned" },
    { "middle", "calls" },
    { "sized", "calls" },
    { "aligned", "calls" },
    { "bare", "calls_bare" },
    { "calls_bare", "calls" },
    { "memcpy", "copier" },
    { "memset", "setter" },
    { "memcpy", "__libc_sigaction" },
    { "__syscall_ret", "__libc_sigaction" },
    { "__libc_sigaction", "signal" },
    { "signal", "interrupts" },
    { "copier", "calls" },
    { "setter", "calls" },
    { "calls", "work" },
    { "system_call", "entries" },
    { "entries", "work" },
    { "__kernel_vsyscall", "mkdir" },
    { "__kernel_vsyscall", "getppid" },
    { "__kernel_vsyscall", "madvise" },
    { "__kernel_vsyscall", "__setitimer_time64" },
    { "__kernel_vsyscall", "__libc_sigaction" },
    { "__vdso_clock_gettime64", "__clock_gettime" },
    { "__syscall_ret", "__clock_gettime" },
    { "__clock_gettime", "wrappers" },
    { "mkdir", "wrappers" },
    { "getppid", "wrappers" },
    { "__syscall_ret", "wrappers" },
    { "__syscall_ret", "faults" },
    { "__syscall_ret", "interrupts" },
    { "wrappers", "work" },
    { "leaf", "handler" },
    { "leaf", "on_information" },
    { "leaf", "signals" },
    { "handler", "__restore" },
    { "on_frameless", "__restore" },
    { "on_information", "__restore_rt" },
    { "__restore_rt", "__kernel_vsyscall" },
    { "__restore", "__kernel_vsyscall" },
    { "__restore", "leaf" },
    { "__restore", "handler" },
    { "__restore", "on_information" },
    { "__restore", "signals" },
    { "__restore", "work" },
    { "__restore", "kill" },
    { "__restore", "getpid" },
    { "__restore", "__setitimer_time64" },
    { "__restore", "__restore" },
    { "__restore_rt", "leaf" },
    { "__restore_rt", "signals" },
    { "__restore", "__errno_location" },
    { "__errno_location", "__syscall_ret" },
    { "__restore_rt", "__restore" },
    { "__restore", "on_frameless" },
    { "__restore", "__restore_rt" },
    { "__kernel_vsyscall", "kill" },
    { "__kernel_vsyscall", "getpid" },
    { "kill", "on_information" },
    { "kill", "signals" },
    { "getpid", "on_information" },
    { "getpid", "signals" },
    { "__syscall_ret", "signals" },
    { "__syscall_ret", "on_information" },
    { "__restore", "__syscall_ret" },
    { "signals", "work" },
    { "__setitimer_time64", "signals" },
    { "__syscall_ret", "__setitimer_time64" },
    { "__libc_sigaction", "handle" },
    { "handle", "signals" },
    { "__setitimer_time64", "interrupts" },
    { "touch", "faults" },
    { "madvise", "faults" },
    { "faults", "work" },
    { "spin", "interrupts" },
    { "interrupts", "work" },
    { "spin", "recurse" },
    { "recurse", "recurse" },
    { "recurse", "deep" },
    { "recurse", "too_deep" },
    { "deep", "work" },
    { "too_deep", "work" },
    { "torn", "work" },
    { "nowhere", "work" },
    { "astray", "work" },
    { "call_kernel", "ways" },
    { "touch", "ways" },
    { "breakpoint", "ways" },
    { "bad_opcode", "ways" },
    { "spin", "ways" },
    { "skip", "__restore_rt" },
    { "__restore_rt", "breakpoint" },
    { "__restore_rt", "bad_opcode" },
    { "ways", "work" },
    { "work", "test_kind" },
    { "test_kind", "main" },
    { "main", "libc_start_main_stage2" },
    { "libc_start_main_stage2", "_start_c" },
    { "_start_c", "_start" },
};

// The kernel's entry code, and the first functions after it.
static const char *const entry_code[] = {
    "trap_stubs",       "kernel_exception",    "strobe_syscall",
    "early_syscall",    "early_exception",     "exception_common",
    "interrupt_common", "syscall_entry_point", "to_user",
    "trap_return",      "enter_user"
};
// The entry code calls the last one while the user's charged time is ahead.
static const char *const first_functions[] = {
    "trap_syscall",     "trap_user_exception", "trap_kernel_exception",
    "trap_interrupt",   "fork_child_begin",    "thread_begin",
    "ledger_await_user"
};
// While these run, the stack or the address space may be another thread's: a
// chain that cannot be unwound there is cut off.
static const char *const switching[] = {
    "switch_away",  "choose_and_switch",     "aspace_switch",
    "switch_stack", "sched_switch_finished",
};
static const char *const samplers[] = { "trap_nmi",    "timer_nmi",
                                        "hpet_serve",  "tick",
                                        "odd_tick",    "sample_take",
                                        "take_kernel", "fill_stacks" };
#define AMONG(name, list) among(name, list, sizeof(list) / sizeof((list)[0]))

static bool among(const char *name, const char *const *list, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (strcmp(name, list[i]) == 0)
            return true;
    }
    return false;
}

static bool is_known(const char *callee)
{
    for (unsigned i = 0; i < sizeof(callers) / sizeof(callers[0]); i++) {
        if (strcmp(callers[i][0], callee) == 0)
            return true;
    }
    return false;
}

static bool may_call(const char *caller, const char *callee)
{
    for (unsigned i = 0; i < sizeof(callers) / sizeof(callers[0]); i++) {
        if (strcmp(callers[i][0], callee) == 0 &&
            strcmp(callers[i][1], caller) == 0)
            return true;
    }
    return false;
}

#define RUNS_PER_PAUSE 100
#define NAMES_MAX 400
static struct samples samples;
static const struct kind *kind;
static char names[NAMES_MAX][64];
static uint32_t addresses[NAMES_MAX];
static bool in_kernel[NAMES_MAX];
static unsigned length;
static bool marked;    // the outermost entry was a cut mark; removed
static uint32_t mark;  // the mark's value
static uint32_t cuts;  // samples with such a mark
static pid_t running;  // the child
static unsigned quiet; // samples since the last one in the kernel
static bool working;   // seen at work: all later samples must be right

static void set_names(uint32_t node)
{
    length = 0;
    marked = false;
    for (; node != CHAIN_ROOT && length < NAMES_MAX; length++) {
        struct chain_node n = samples.chains.nodes[node];
        const struct symbol *s =
            images_symbol(&samples.images, n.place.image, n.place.address);
        snprintf(names[length], sizeof(names[0]), "%.*s",
                 s != NULL ? (int)s->name_size : 1, s != NULL ? s->name : "?");
        addresses[length] = n.place.address;
        in_kernel[length] = n.place.image == IMAGE_KERNEL;
        marked = n.place.image == IMAGE_CUT;
        mark = n.place.address;
        node = n.parent;
    }
    length -= marked;
}

static _Noreturn void wrong(const char *what, unsigned at)
{
    dprintf(1, "FAILED %s: %s, in entry %u of\n", kind->name, what, at);
    for (unsigned i = 0; i < length; i++)
        dprintf(1, "    %08x %s%s\n", addresses[i], names[i],
                in_kernel[i] ? " (kernel)" : "");
    kill(running, SIGKILL);
    _exit(1);
}

static bool in_a_switch(unsigned kernel)
{
    for (unsigned i = 0; i < kernel; i++) {
        if (AMONG(names[i], switching))
            return true;
    }
    return false;
}

// Checks the kernel's part of the chain. Returns its length.
static unsigned check_kernel(void)
{
    unsigned n = 0;
    for (; n < length && in_kernel[n]; n++) {
        if (AMONG(names[n], samplers))
            wrong("the sampler's own frame", n);
        if (AMONG(names[n], entry_code) && n > 0)
            wrong("the entry code as a caller", n);
    }
    if (n > 0 && !AMONG(names[n - 1], entry_code) &&
        !AMONG(names[n - 1], first_functions) && !in_a_switch(n))
        wrong("the kernel was not entered so", n - 1);
    return n;
}

// Whether the stack is the one that `nowhere` or `astray` made.
static bool is_on_its_own(unsigned first)
{
    if (strcmp(names[first], kind->name) != 0)
        return false;
    if (kind->run == nowhere)
        return length == first + 2 && strcmp(names[first + 1], "middle") == 0;
    return kind->run == astray && marked && length == first + 1;
}

static void check_user(unsigned first, bool cut)
{
    unsigned i = first;
    if (first == length || (!is_known(names[first]))) {
        if (kind->rare && first > 0 && AMONG(names[0], entry_code))
            wrong("not of the program", first);
        return; // program start-up or the libc's own code
    }
    if (is_on_its_own(first))
        return;
    for (; i + 1 < length; i++) {
        if (!may_call(names[i + 1], names[i]))
            wrong("not its caller", i + 1);
    }
    if (!cut && strcmp(names[i], "_start") != 0)
        wrong("not the outermost function", i);
}

static void check_torn(unsigned first)
{
    if (strcmp(names[first], "torn") != 0 || length != first + 2 ||
        strcmp(names[first + 1], "middle") != 0)
        wrong("not the frames that are there", first);
}

static void print_sample(void)
{
    unsigned kernel = 0;
    while (kernel < length && in_kernel[kernel])
        kernel++;
    dprintf(1, "sample %x %u\n", addresses[0], kernel);
}

static void take(void *arg, const struct stream_sample *s)
{
    (void)arg;
    uint32_t before = samples.count;
    samples.reader.sample(samples.reader.arg, s);
    quiet = s->kernel_depth > 0 ? 0 : quiet + 1;
    if (samples.count == before) // this chain has been checked
        return;
    const struct sample_count *c = &samples.counts[before];
    set_names(c->chain);
    bool cut = marked;
    if (kind->rare)
        print_sample();
    unsigned first = check_kernel();
    for (unsigned i = first; i < length; i++)
        working |= strcmp(names[i], kind->name) == 0;
    if (cut && in_a_switch(first))
        return;
    if (cut && kind->run == too_deep && mark != CHAIN_DEEP - 1)
        wrong("not for its depth", length);
    cuts += cut;
    working |= cut && kind->cut;
    if (!working)
        return;
    if (cut && kind->run == torn)
        check_torn(first);
    else if (cut && !kind->cut && kind->run != astray)
        wrong("cut off", length);
    else
        check_user(first, cut);
}

// --- parent and child -------------------------------------------------------

static OUTLINE _Noreturn void work(int go)
{
    char byte;
    check(read(go, &byte, 1) == 1);
    for (unsigned n = 0;; n++) {
        kind->run(n);
        // Under -icount QEMU switches to other CPUs only here. It leaves the
        // translated code for that, so after a PAUSE in each turn most NMIs
        // would be taken here.
        if (n % RUNS_PER_PAUSE == 0)
            __builtin_ia32_pause();
    }
}

static void print_places(void)
{
    for (uint32_t i = 0; i < samples.count; i++) {
        set_names(samples.counts[i].chain);
        if (length > 0)
            dprintf(1, "at %s %x\n", names[0], addresses[0]);
    }
}

static void take_piece(void *arg, const void *bytes, size_t size)
{
    struct stream_reader *reader = arg;
    check(stream_read(reader, bytes, size) == size);
    check(reader->malformed == 0);
}

static void read_samples(struct profile_session *session, uint32_t wanted)
{
    struct stream_reader reader = samples.reader;
    reader.sample = take;
    while (samples.total < wanted || (kind->rare && quiet < QUIET)) {
        check(profile_request(session) == 0);
        uint32_t wait_ms = kind->rare ? RARE_WAIT_MS : WAIT_MS;
        check(profile_answer(session, wait_ms, take_piece, &reader) >= 0);
    }
}

static void profile_kind(pid_t child, int go, uint32_t wanted)
{
    struct sprofile_options o = { .rate_hz = RATE_HZ,
                                  .flags =
                                      SPROFILE_O_STACKS | SPROFILE_O_RANDOM };
    if (kind->rare)
        o = (struct sprofile_options){ .rate_hz = RARE_HZ,
                                       .flags = SPROFILE_O_STACKS,
                                       .source = "nmi-rtc" };
    struct profile_session session = { 0 };
    check(samples_init(&samples, program_read) == 0);
    samples.vdso = getauxval(AT_SYSINFO_EHDR);
    struct program p = { .task = child };
    p.image = images_add(&samples.images, program_of_task(child), NULL, 0);
    programs_add(&samples.programs, &p);
    check(profile_begin(&session, child, &o) == 0);
    check(write(go, "", 1) == 1);
    working = false;
    cuts = 0;
    read_samples(&session, wanted);
    profile_end(&session);
    check(working && (cuts > 0 || !kind->cut));
}

static OUTLINE void test_kind(const struct kind *k, uint32_t wanted,
                              bool places)
{
    int go[2];
    kind = k;
    check(pipe(go) == 0);
    pid_t child = fork();
    check(child >= 0);
    if (child == 0)
        work(go[0]);
    running = child;
    profile_kind(child, go[1], wanted);
    kill(child, SIGKILL);
    check(waitpid(child, NULL, 0) == child);
    if (places)
        print_places();
    samples_free(&samples);
    close(go[0]);
    close(go[1]);
    ok(k->name);
}

static void make_pages(void)
{
    fresh = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    torn_stack = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(fresh != MAP_FAILED && torn_stack != MAP_FAILED);
    check(mprotect(torn_stack + PAGE, PAGE, PROT_NONE) == 0);
}

int main(int argc, char *argv[])
{
    if (kbox_connect(getpid()) < 0) {
        ok("skipped: no kernel boxes here");
        return 0;
    }
    make_pages();
    for (unsigned i = 0; i < KINDS; i++) {
        if (argc < 3 && !kinds[i].rare)
            test_kind(&kinds[i], FEW, false);
        else if (argc > 2 && strcmp(argv[1], kinds[i].name) == 0)
            test_kind(&kinds[i], strtoul(argv[2], NULL, 10), !kinds[i].rare);
    }
    return 0;
}
