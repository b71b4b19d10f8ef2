// Access to the registers of ACPI tables.
#include "arch/i386/acpi/register.h"
#include "arch/i386/dev/pci_config.h"
#include "arch/i386/dev/port.h"
#include "lib/format.h"

// ACPI 6.4, table 5.1, "access size": 1 << (n - 1) bytes; 0: undefined.
#define ACCESS_BYTE 1
#define ACCESS_DWORD 3
#define PORT_MAX 0xffffu

static bool is_reachable(struct acpi_register *r)
{
    switch (r->space) {
    case ACPI_SPACE_IO:
        return r->address + r->bytes - 1 <= PORT_MAX;
    case ACPI_SPACE_MEMORY:
        r->memory = map_device(r->address, r->bytes);
        return r->memory != NULL;
    case ACPI_SPACE_PCI:
        return pci_present() &&
               (r->address & 0xffff) + r->bytes <= PCI_CONFIG_BYTES;
    default:
        return false;
    }
}

bool acpi_register_open(struct acpi_register *r, const struct acpi_address *a,
                        u8 bytes)
{
    bool sized = a->access >= ACCESS_BYTE && a->access <= ACCESS_DWORD;
    *r = (struct acpi_register){
        .space = a->space,
        .bytes = sized ? (u8)(1u << (a->access - 1)) : bytes,
        .address = a->address,
    };
    if (!a->address || !is_reachable(r))
        r->bytes = 0;
    return r->bytes;
}

// Bits 32-47 of a PCI address are the device, bits 16-31 the function.
static u32 pci_of(const struct acpi_register *r)
{
    return PCI_FUNCTION(0, (u32)(r->address >> 32) & 0x1f,
                        (u32)(r->address >> 16) & 7);
}

u32 acpi_register_read(const struct acpi_register *r)
{
    u16 port = (u16)r->address;
    if (r->space == ACPI_SPACE_PCI)
        return pci_config_read(pci_of(r), (u32)r->address & 0xffff, r->bytes);
    if (r->space == ACPI_SPACE_IO)
        return r->bytes == 1   ? in8(port)
               : r->bytes == 2 ? in16(port)
                               : in32(port);
    return r->bytes == 1   ? *(volatile u8 *)r->memory
           : r->bytes == 2 ? *(volatile u16 *)r->memory
                           : *(volatile u32 *)r->memory;
}

static void write_port(u16 port, u32 bytes, u32 value)
{
    if (bytes == 1)
        out8(port, (u8)value);
    else if (bytes == 2)
        out16(port, (u16)value);
    else
        out32(port, value);
}

static void write_memory(volatile void *p, u32 bytes, u32 value)
{
    if (bytes == 1)
        *(volatile u8 *)p = (u8)value;
    else if (bytes == 2)
        *(volatile u16 *)p = (u16)value;
    else
        *(volatile u32 *)p = value;
}

void acpi_register_write(const struct acpi_register *r, u32 value)
{
    if (r->space == ACPI_SPACE_PCI)
        pci_config_write(pci_of(r), (u32)r->address & 0xffff, r->bytes, value);
    else if (r->space == ACPI_SPACE_IO)
        write_port((u16)r->address, r->bytes, value);
    else
        write_memory(r->memory, r->bytes, value);
}

void acpi_register_name(const struct acpi_register *r,
                        char text[ACPI_REGISTER_NAME])
{
    u32 pci = pci_of(r);
    if (r->space == ACPI_SPACE_PCI)
        format(text, ACPI_REGISTER_NAME, "PCI 00:%02x.%u register %#x",
               PCI_DEVICE(pci), PCI_NUMBER(pci), (u32)r->address & 0xffff);
    else
        format(text, ACPI_REGISTER_NAME, "%s %#llx",
               r->space == ACPI_SPACE_IO ? "port" : "memory", r->address);
}
