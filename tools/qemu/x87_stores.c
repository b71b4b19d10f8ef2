// A QEMU plugin that makes x87 stores across a page boundary go to the right
// page: QEMU 9.1 and later store an 80-bit number wrongly (docs/install.md)
// except by the path that reports accesses to plugins. So this plugin asks for
// such reports, and ignores them.
#include "translation.h"
#include "x86.h"

PLUGIN_EXPORT int qemu_plugin_version = API_VERSION;

// Whether the instruction's opcode is DB, DD or DF. Among these are all that
// store an 80-bit number: FSTP, FBSTP and FNSAVE (Intel SDM volume 2, appendix
// A.5).
static bool may_store(const struct qemu_plugin_insn *insn)
{
    uint8_t bytes[INSN_MAX];
    size_t size = plugin_bytes(insn, bytes);
    unsigned op = x86_opcode(bytes, size).op;
    return op == 0xdb || op == 0xdd || op == 0xdf;
}

static void ignore(unsigned cpu, uint32_t info, uint64_t address, void *data)
{
    (void)cpu, (void)info, (void)address, (void)data;
}

static void translate(struct qemu_plugin_tb *tb)
{
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        if (may_store(insn))
            qemu_plugin_register_vcpu_mem_cb(insn, ignore, NO_REGISTERS,
                                             MEM_WRITE, NULL);
    }
}

PLUGIN_EXPORT int qemu_plugin_install(uint64_t plugin, const void *info,
                                      int argc, char **argv)
{
    (void)info, (void)argc, (void)argv;
    plugin_on_translation(plugin);
    return 0;
}
