// Intel's chipsets of 2012 to 2015 have EHCI controllers, too, at which a port
// of USB 2 stays until it is given to the xHCI (8 Series / C220 Datasheet,
// xHCI's configuration registers USB3_PSSEN and XUSB2PR, and the masks of the
// ports that can be switched). Chipsets without EHCI lack these registers.
#include "kernel/usb/intel_ports.h"

#define INTEL 0x8086u
#define CLASS_EHCI 0x0c0320u
#define ROUTE_USB2 0xd0u
#define MASK_USB2 0xd4u
#define ROUTE_USB3 0xd8u
#define MASK_USB3 0xdcu

static void look_for_intel(const struct pci_function *f, void *found)
{
    *(bool *)found |= f->vendor == INTEL;
}

void intel_ports_take(const struct pci_function *xhci)
{
    bool has_ehci = false;
    if (xhci->vendor != INTEL)
        return;
    pci_each(CLASS_EHCI, look_for_intel, &has_ehci);
    if (!has_ehci)
        return;
    pci_set_register(xhci, ROUTE_USB3, pci_register(xhci, MASK_USB3));
    pci_set_register(xhci, ROUTE_USB2, pci_register(xhci, MASK_USB2));
}
