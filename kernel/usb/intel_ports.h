// The ports that Intel's xHCI and EHCI controllers share.
#pragma once

#include "arch/pci.h"

// Gives them to this xHCI, if it is Intel's and there is an EHCI of Intel's.
void intel_ports_take(const struct pci_function *xhci);
