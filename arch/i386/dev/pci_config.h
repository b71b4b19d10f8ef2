// A PCI function's configuration space: 256 bytes, by configuration mechanism
// 1. Any context but NMI.
#pragma once

#include "arch/pci.h"

bool pci_present(void); // the mechanism is there
// `offset`: a multiple of 4, below 256. What does not exist reads as ones.
u32 pci_read(const struct pci_function *f, u32 offset);
void pci_write(const struct pci_function *f, u32 offset, u32 value);

// Whether it can interrupt by messages. Sets what it sends, by MSI-X (its first
// vector) or MSI, and lets it. 0, -ENODEV.
bool pci_has_messages(const struct pci_function *f);
int pci_set_message(const struct pci_function *f, u32 address, u32 data);
