// The part of QEMU's plugin interface that Strobe's plugins use (QEMU, "QEMU
// TCG Plugins", docs/devel/tcg-plugins.rst). Debian has no package with the
// header.
//
// API_VERSION is the version that QEMU is asked for: 1 is QEMU 7.2's, 4 is
// accepted by QEMU 9.1 to 10, 7 by QEMU 11.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PLUGIN_EXPORT __attribute__((visibility("default")))

// Bits for the accesses that a memory callback is called for.
enum { MEM_READ = 1, MEM_WRITE = 2 };

// The registers that a callback uses.
enum { NO_REGISTERS = 0 };

#define INLINE_ADD 0 // the only inline operation

struct qemu_plugin_tb;   // a block of instructions during its translation
struct qemu_plugin_insn; // an instruction of the block
struct qemu_plugin_hwaddr;

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *
qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

#if API_VERSION >= 3
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *bytes,
                             size_t size);
#else
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
#endif

#define INSN_MAX 15 // bytes of the longest instruction

// Copies the bytes of an instruction; returns their number.
static inline size_t plugin_bytes(const struct qemu_plugin_insn *insn,
                                  uint8_t bytes[INSN_MAX])
{
    size_t size = qemu_plugin_insn_size(insn);
    if (size > INSN_MAX)
        size = INSN_MAX;
#if API_VERSION >= 3
    return qemu_plugin_insn_data(insn, bytes, size);
#else
    __builtin_memcpy(bytes, qemu_plugin_insn_data(insn), size);
    return size;
#endif
}

// Calls `callback` before each execution of the block.
typedef void exec_callback(unsigned cpu, void *data);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb,
                                          exec_callback *callback,
                                          int registers, void *data);

// The same before each execution of the instruction.
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
                                            exec_callback *callback,
                                            int registers, void *data);

#if API_VERSION < 2
// Adds to a counter before each execution of the instruction.
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn,
                                                int op, void *counter,
                                                uint64_t add);
// The same after each access of the instruction.
void qemu_plugin_register_vcpu_mem_inline(struct qemu_plugin_insn *insn,
                                          int accesses, int op, void *counter,
                                          uint64_t add);
#endif

// Calls `callback` after each access of the instruction at a virtual address.
typedef void mem_callback(unsigned cpu, uint32_t info, uint64_t address,
                          void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
                                      mem_callback *callback, int registers,
                                      int accesses, void *data);
_Bool qemu_plugin_mem_is_store(uint32_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(uint32_t info,
                                                  uint64_t address);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *at);

// Calls `callback` at QEMU's end.
void qemu_plugin_register_atexit_cb(uint64_t plugin,
                                    void (*callback)(uint64_t, void *),
                                    void *data);
