// Interrupts of PCI functions, to the boot CPU.
#include "arch/i386/dev/pci_config.h"
#include "arch/i386/irq/controllers.h"
#include "kernel/base/errno.h"

#define MESSAGE_ADDRESS 0xfee00000u // SDM vol. 3, 11.11.1
#define MESSAGE_DESTINATION(id) ((id) << 12)

int pci_register_messages(const struct pci_function *f,
                          void (*handler)(void *arg), void *arg,
                          const char *name)
{
    struct irq_source source;
    struct irq_message m;
    if (!apic_present || !pci_has_messages(f))
        return -ENODEV;
    int err = irq_source_message(&source, handler, arg, name);
    if (err)
        return err;
    irq_message_for(&source, IRQ_BOOT_CPU, &m);
    return pci_set_message(f,
                           MESSAGE_ADDRESS | MESSAGE_DESTINATION(m.destination),
                           m.delivery | m.vector);
}
