// A QEMU plugin that makes x87 stores across a page boundary go to the right
// page: QEMU 9.1 and later store an 80-bit number wrongly (docs/distros.md)
// except by the path that reports accesses to plugins. So this plugin asks for
// such reports, and ignores them.
#include "api.h"

PLUGIN_EXPORT int qemu_plugin_version = API_VERSION;

static int is_prefix(uint8_t byte)
{
    switch (byte) {
    case 0x26: // segment overrides
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0x66: // operand size
    case 0x67: // address size
        return 1;
    default:
        return 0;
    }
}

// Whether the instruction's opcode is DB, DD or DF. Among these are all that
// store an 80-bit number: FSTP, FBSTP and FNSAVE (Intel SDM volume 2, appendix
// A.5).
static int may_store(const struct qemu_plugin_insn *insn)
{
    uint8_t bytes[15]; // the longest instruction
    size_t size = qemu_plugin_insn_data(insn, bytes, sizeof bytes);
    size_t i = 0;
    while (i < size && is_prefix(bytes[i]))
        i++;
    return i < size && (bytes[i] & 0xf9) == 0xd9 && bytes[i] != 0xd9;
}

static void ignore(unsigned cpu, uint32_t info, uint64_t address, void *data)
{
    (void)cpu, (void)info, (void)address, (void)data;
}

static void watch(struct qemu_plugin_tb *tb)
{
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        if (may_store(insn))
            qemu_plugin_register_vcpu_mem_cb(insn, ignore, NO_REGISTERS,
                                             MEM_WRITE, NULL);
    }
}

#if API_VERSION >= 7
static void translated(struct qemu_plugin_tb *tb, void *data)
{
    (void)data;
    watch(tb);
}
#else
static void translated(uint64_t plugin, struct qemu_plugin_tb *tb)
{
    (void)plugin;
    watch(tb);
}
#endif

PLUGIN_EXPORT int qemu_plugin_install(uint64_t plugin, const void *info,
                                      int argc, char **argv)
{
    (void)info, (void)argc, (void)argv;
#if API_VERSION >= 7
    qemu_plugin_register_vcpu_tb_trans_cb(plugin, translated, NULL);
#else
    qemu_plugin_register_vcpu_tb_trans_cb(plugin, translated);
#endif
    return 0;
}
