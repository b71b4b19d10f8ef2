// Translation: which callbacks a block needs; and the plugin's options
// (oracle.h).
#include "oracle.h"

#include "tools/qemu/translation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

PLUGIN_EXPORT int qemu_plugin_version = API_VERSION;

#define END_MARK 0x4c434152 // user/init/command.c

struct options options = { .paths = 1 << 20 };

void fail(const char *why)
{
    fprintf(stderr, "oracle: %s\n", why);
    exit(1);
}

void *enough(void *p)
{
    if (!p)
        fail("no memory");
    return p;
}

// --- translation ------------------------------------------------------------

static int vector_of(u32 at)
{
    if (at == options.syscall_entry_point)
        return SYSCALL_VECTOR;
    if (at == options.nmi_entry_point)
        return NMI_VECTOR;
    if (at == options.double_fault_entry_point)
        return 8;
    if (at - options.trap_stubs < 256 * 16 && at % 16 == 0)
        return (int)((at - options.trap_stubs) / 16);
    return -1;
}

// QEMU 7.2 reports no load to a callback for loads, and each to a callback for
// stores: all callbacks are for both, and look at `info`.
static void on_access(struct qemu_plugin_insn *insn, mem_callback *callback,
                      void *data)
{
    qemu_plugin_register_vcpu_mem_cb(insn, callback, NO_REGISTERS,
                                     MEM_READ | MEM_WRITE, data);
}

static void observe(struct qemu_plugin_insn *insn, struct block *b,
                    const u8 *bytes, size_t size, u32 at)
{
    u32 stored = 0;
    if (size > 4)
        memcpy(&stored, bytes + size - 4, 4);
    bool fork = stored == options.fork_child_begin;
    if (!options.flat && bytes[0] == 0xc7 &&
        (fork || stored == options.thread_begin))
        on_access(insn, born, fork ? b : NULL);
    // movl %eax, LEDGER_USER_SINCE(%ebx)
    if (at >= options.to_user && at < options.trap_return && bytes[0] == 0x89 &&
        (bytes[1] & 0x38) == 0 && size == 3)
        on_access(insn, stored_time, NULL);
}

// QEMU 7.2 also reports an instruction that crosses a page, with its bytes in
// the first page, but leaves it to the next block, unless the block begins with
// it.
static size_t insns_of(const struct qemu_plugin_tb *tb)
{
    size_t n = qemu_plugin_tb_n_insns(tb);
    const struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, n - 1);
    u8 bytes[INSN_MAX];
    size_t size = plugin_bytes(last, bytes);
    bool near_end =
        (qemu_plugin_insn_vaddr(last) & 4095) + sizeof(bytes) > 4096;
    return n > 1 && near_end && !x86_is_complete(bytes, size) ? n - 1 : n;
}

#if API_VERSION >= 2 // (whose inline operations make QEMU 11 fail on SMP)
static void begin_segment(unsigned cpu, void *data)
{
    (void)cpu, (void)data;
    segments_begun++;
}

static void count_segment(struct qemu_plugin_insn *first, struct block *b)
{
    qemu_plugin_register_vcpu_insn_exec_cb(
        first, options.flat ? flat_segment : begin_segment, NO_REGISTERS, b);
}

static void count_access(struct qemu_plugin_insn *insn, struct block *b)
{
    on_access(insn, flat_access, b);
}
#else
static void count_segment(struct qemu_plugin_insn *first, struct block *b)
{
    u64 *counter = options.flat ? &b->progress : &segments_begun;
    qemu_plugin_register_vcpu_insn_exec_inline(first, INLINE_ADD, counter, 1);
}

static void count_access(struct qemu_plugin_insn *insn, struct block *b)
{
    qemu_plugin_register_vcpu_mem_inline(insn, MEM_READ | MEM_WRITE, INLINE_ADD,
                                         &b->progress, FLAT_ACCESS);
}
#endif

// Callbacks at the last instruction, which may access memory.
static void observe_end(struct qemu_plugin_insn *end, struct block *b)
{
    if (options.flat)
        count_access(end, b);
    else if (b->end == END_CALL)
        on_access(end, called, b);
    else if (b->end == END_RET)
        on_access(end, returned, b);
    else if (b->end == END_IRET)
        on_access(end, iret_read, b);
    else
        on_access(end, accessed, b);
}

static void translate(struct qemu_plugin_tb *tb)
{
    static u8 bytes[512 * INSN_MAX];
    static u32 ends[512], ats[512];
    size_t n = insns_of(tb);
    u32 at = (u32)qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0));
    u32 size = 0, segments = 0;
    bool last = true, modifies = false, marks_end = false;
    enum x86_kind kind = X86_OTHER;
    struct qemu_plugin_insn *starts[512];
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        ats[i] = (u32)qemu_plugin_insn_vaddr(insn);
        size_t length = plugin_bytes(insn, bytes + size);
        if (last)
            starts[segments++] = insn;
        last = x86_may_fault(bytes + size, length);
        ends[segments - 1] = (u32)i + 1;
        kind = x86_kind(bytes + size, length);
        modifies = x86_modifies(bytes + size, length);
        marks_end |= x86_tests(bytes + size, length, END_MARK);
        size += (u32)length;
    }
    bool is_new;
    struct block *b = block_of(at, bytes, size, (u32)n, &is_new);
    if (is_new) {
        b->segments = segments;
        b->seals = last;
        b->modifies = modifies;
        b->marks_end = marks_end && at < options.kernel;
        b->segment_end = enough(malloc(segments * 4));
        memcpy(b->segment_end, ends, segments * 4);
        b->insn_at = enough(malloc(n * 4));
        memcpy(b->insn_at, ats, n * 4);
        b->entry = at >= options.kernel ? vector_of(at) : -1;
        b->end = kind == X86_CALL    ? END_CALL
                 : kind == X86_RET   ? END_RET
                 : kind == X86_IRET  ? END_IRET
                 : kind == X86_HLT   ? END_HLT
                 : kind == X86_RDTSC ? END_RDTSC
                                     : END_OTHER;
        if (options.flat)
            flat_init(b);
    }
    qemu_plugin_register_vcpu_tb_exec_cb(
        tb, options.flat ? execute_flat : execute, NO_REGISTERS, b);
    for (u32 i = 1; i < segments; i++)
        count_segment(starts[i], b);
    if (last)
        observe_end(qemu_plugin_tb_get_insn(tb, n - 1), b);
    if (at < options.kernel)
        return;
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        u8 one[INSN_MAX];
        size_t length = plugin_bytes(insn, one);
        observe(insn, b, one, length, ats[i]);
    }
}

// --- options ----------------------------------------------------------------

static const struct {
    const char *name;
    u32 *value;
} numbers[] = {
#define NUMBER(name)         \
    {                        \
#name, &options.name \
    }
    NUMBER(trap_stubs),
    NUMBER(syscall_entry_point),
    NUMBER(nmi_entry_point),
    NUMBER(double_fault_entry_point),
    NUMBER(thread_begin),
    NUMBER(fork_child_begin),
    NUMBER(arch_exec),
    NUMBER(sigframe_push),
    NUMBER(sigframe_pop),
    NUMBER(to_user),
    NUMBER(trap_return),
    NUMBER(kernel),
    NUMBER(flat),
};

static bool take_option(const char *argument)
{
    const char *equals = strchr(argument, '=');
    if (!equals)
        return false;
    size_t length = (size_t)(equals - argument);
    if (length == 3 && !strncmp(argument, "out", 3))
        return options.out = strdup(equals + 1), true;
    if (length == 6 && !strncmp(argument, "memory", 6))
        return options.memory = strdup(equals + 1), true;
    if (length == 5 && !strncmp(argument, "paths", 5))
        return options.paths = (u32)strtoul(equals + 1, NULL, 10), true;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        if (strlen(numbers[i].name) == length &&
            !strncmp(argument, numbers[i].name, length))
            return *numbers[i].value = (u32)strtoul(equals + 1, NULL, 16), true;
    }
    return false;
}

PLUGIN_EXPORT int qemu_plugin_install(uint64_t plugin, const void *info,
                                      int argc, char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (!take_option(argv[i])) {
            fprintf(stderr, "oracle: unknown option %s\n", argv[i]);
            return 1;
        }
    }
    if (!options.out)
        return 0; // tools/build/qemu-plugin asks only whether QEMU loads it
    plugin_on_translation(plugin);
    qemu_plugin_register_atexit_cb(plugin, options.flat ? ended_flat : ended,
                                   NULL);
    return 0;
}
