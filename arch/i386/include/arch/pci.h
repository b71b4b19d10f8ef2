// PCI functions (PCI Local Bus 3.0): finding them, their memory and their
// interrupts.
//
// Thread context, interrupts on. A function belongs to the one driver that has
// found it by its class.
#pragma once

#include "arch/mmu.h"

struct pci_function {
    u8 bus, device, function;
    u16 vendor, product;
    u32 class; // base class << 16 | subclass << 8 | programming interface
};

// Calls fn for each function of this class.
void pci_each(u32 class, void (*fn)(const struct pci_function *f, void *arg),
              void *arg);

// The same for each whose class has these upper 8 of 24 bits.
void pci_each_of_base(u32 class,
                      void (*fn)(const struct pci_function *f, void *arg),
                      void *arg);

// The memory behind base address register `index` (0-5). False: there is none,
// or the firmware has given it no address.
struct pci_memory {
    paddr_t base;
    u64 size;
};
bool pci_memory(const struct pci_function *f, u32 index,
                struct pci_memory *out);

// Switches it on, if the firmware has not, and lets it answer to accesses of
// its memory, and access memory itself, through all bridges. Its interrupt line
// stays disabled.
void pci_enable(const struct pci_function *f);
// Stops its accesses to memory.
void pci_disable_dma(const struct pci_function *f);

// A register of its configuration space, of 32 bits at a multiple of 4.
u32 pci_register(const struct pci_function *f, u32 at);
void pci_set_register(const struct pci_function *f, u32 at, u32 value);

// Lets it interrupt the boot CPU by messages: MSI-X (its first vector), or MSI.
// 0; -ENODEV: it has neither, or this machine has no local APIC; -ENOSPC.
int pci_register_messages(const struct pci_function *f,
                          void (*handler)(void *arg), void *arg,
                          const char *name);
