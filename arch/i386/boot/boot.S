// Boot entry: the Multiboot headers, the first page tables, the jump to the
// higher half.
//
// A Multiboot 2 loader may have moved the image: loaded it at another multiple
// of 4 MiB than it is linked for. The distance is in ebp until higher_half; the
// code up to there adds it to each address.
//
// The early page tables map the first 768 MiB twice, at 0 and at KERNEL_BASE,
// by large pages, readable, writable and executable; arch_init_memory replaces
// them. In the upper half the large pages of the image's addresses are mapped
// to where it lies; what they hide of the memory is out of reach. PAE is chosen
// here, once, since a later change of the format would need paging off again.
// PAE requires CMPXCHG8B, which changes a 64-bit entry atomically (entry.h).

#include "arch/i386/boot/multiboot.h"
#include "arch/i386/cpu/registers.h"
#include "assembly.h" // from arch/i386/cpu/assembly.c

// The address for which a symbol behind .boot is loaded, if not moved.
#define PHYS(symbol) ((symbol) - ASM_KERNEL_BASE)

#define PTE_PRESENT_WRITABLE 0x003
#define PDE_LARGE            0x080
#define CPUID_1_EDX_PSE      (1 << 3)
#define CPUID_1_EDX_TSC      (1 << 4)
#define CPUID_1_EDX_PAE      (1 << 6)
#define CPUID_1_EDX_CX8      (1 << 8)
#define CPUID_1_EDX_CMOV     (1 << 15)
// Required by the compiler (-march=i686), the clocks and the tables below.
#define NEEDED (CPUID_1_EDX_PSE | CPUID_1_EDX_TSC | CPUID_1_EDX_CMOV)
#define NEEDED_FOR_PAE (CPUID_1_EDX_PAE | CPUID_1_EDX_CX8)
#define EFLAGS_ID (1 << 21) // can be changed where there is CPUID
#define NO_CPUID (1 << 31)  // among the bits that are lacking

#define COM1            0x3f8
#define COM_LINE_STATUS (COM1 + 5)
#define LINE_EMPTY      0x20
#define VGA_TEXT        0xb8000
#define VGA_GREY        0x07

    .section .boot.header, "a"
    .balign 4
    .long MB1_HEADER_MAGIC, MB1_HEADER_FLAGS
    .long -(MB1_HEADER_MAGIC + MB1_HEADER_FLAGS)

    .balign 8
mb2_header:
    .long MB2_HEADER_MAGIC, 0, mb2_header_end - mb2_header
    .long -(MB2_HEADER_MAGIC + (mb2_header_end - mb2_header))
    // Information request, optional: loaders without one of these boot us, too.
    .balign 8
1:  .short MB2_HEADER_REQUEST, MB2_HEADER_OPTIONAL
    .long 2f - 1b
    .long MB2_TAG_CMDLINE, MB2_TAG_LOADER, MB2_TAG_MODULE, MB2_TAG_MEMORY
    .long MB2_TAG_MMAP, MB2_TAG_FRAMEBUFFER, MB2_TAG_RSDP_OLD
    .long MB2_TAG_RSDP_NEW
2:  .balign 8
    .short MB2_HEADER_CONSOLE, MB2_HEADER_OPTIONAL
    .long 12, MB2_CONSOLE_TEXT
    // Any framebuffer: UEFI has no text mode.
    .balign 8
    .short MB2_HEADER_FRAMEBUFFER, MB2_HEADER_OPTIONAL
    .long 20, 0, 0, 0
    .balign 8
    .short MB2_HEADER_MODULE_ALIGN, MB2_HEADER_OPTIONAL
    .long 8
    // At the lowest address that is free: the linked one, if it is.
    .balign 8
    .short MB2_HEADER_RELOCATABLE, MB2_HEADER_OPTIONAL
    .long 24, ASM_IMAGE_PADDR, ASM_DIRECT_MAP_MAX, ASM_IMAGE_ALIGN
    .long MB2_PREFER_LOWEST
    // No EFI tags: UEFI loaders end the boot services and enter boot_entry as BIOS
    // loaders do. No address tags: the file is an ELF file.
    .short 0, 0
    .long 8
mb2_header_end:

    .section .boot.text, "ax"
    .global boot_entry
    .type boot_entry, @function
boot_entry:
    cli
    cld
    movl $PHYS(boot_stack_top), %esp
    xorl %ebp, %ebp
    movl %eax, %edi // magic
    movl %ebx, %esi // information
    cmpl $MB1_BOOT_MAGIC, %eax
    je 1f
    cmpl $MB2_BOOT_MAGIC, %eax
    je 1f
    movl $no_multiboot, %esi
    jmp fail
    // The distance. There is no stack yet but a word of the information.
1:  movl 4(%esi), %edx
    leal 8(%esi), %esp
    call 2f
2:  popl %ebp
    movl %edx, 4(%esi)
    subl $2b, %ebp
    leal PHYS(boot_stack_top)(%ebp), %esp

    pushfl
    xorl $EFLAGS_ID, (%esp)
    movl (%esp), %eax
    popfl
    pushfl
    xorl (%esp), %eax
    movl $NO_CPUID, %ebx
    testl $EFLAGS_ID, %eax
    jnz lacks // it cannot be changed
    movl $1, %eax
    cpuid
    movl %edx, %eax
    notl %eax
    movl %eax, %ebx
    andl $NEEDED, %ebx
    jnz lacks
    leal PHYS(early_directory)(%ebp), %ebx
    testl $NEEDED_FOR_PAE, %eax
    jnz two_level

    // A directory for each half: entries 0 and 3 of the pointer table.
    leal PHYS(early_identity)(%ebp), %edx
    xorl %ecx, %ecx
    movl $(PTE_PRESENT_WRITABLE | PDE_LARGE), %eax
1:  movl %eax, (%edx, %ecx, 8)
    movl %eax, (%ebx, %ecx, 8)
    addl $0x200000, %eax
    incl %ecx
    cmpl $(ASM_DIRECT_MAP_MAX / 0x200000), %ecx
    jb 1b
    movl $(ASM_IMAGE_PADDR / 0x200000), %ecx
2:  addl %ebp, (%ebx, %ecx, 8)
    incl %ecx
    cmpl $image_end_2m, %ecx
    jb 2b
    leal PHYS(early_pointers)(%ebp), %ecx
    orl $1, %edx
    orl $1, %ebx
    movl %edx, (%ecx)
    movl %ebx, 24(%ecx)
    movl $(ASM_CR4_PSE | ASM_CR4_PAE), %edx
    jmp paging_on

two_level:
    xorl %ecx, %ecx
    movl $(PTE_PRESENT_WRITABLE | PDE_LARGE), %eax
1:  movl %eax, (%ebx, %ecx, 4)
    movl %eax, (ASM_KERNEL_BASE >> 20)(%ebx, %ecx, 4)
    addl $0x400000, %eax
    incl %ecx
    cmpl $(ASM_DIRECT_MAP_MAX / 0x400000), %ecx
    jb 1b
    movl $(ASM_IMAGE_PADDR / 0x400000), %ecx
2:  addl %ebp, (ASM_KERNEL_BASE >> 20)(%ebx, %ecx, 4)
    incl %ecx
    cmpl $image_end_4m, %ecx
    jb 2b
    movl %ebx, %ecx
    movl $ASM_CR4_PSE, %edx

paging_on:
    movl %cr0, %eax
    andl $~ASM_CR0_PG, %eax // whatever the loader has set
    movl %eax, %cr0
    movl %edx, %cr4
    movl %ecx, %cr3
    andl $~(ASM_CR0_CD | ASM_CR0_NW), %eax
    orl $(ASM_CR0_PG | ASM_CR0_WP), %eax
    movl %eax, %cr0
    movl $higher_half, %eax
    jmp *%eax

// Prints what the CPU lacks, the bits in ebx, and halts.
lacks:
    movl $VGA_TEXT, %edi
    leal no_i686(%ebp), %esi
    call print
    leal features(%ebp), %edx
1:  pushl %edx
    movl 4(%edx), %esi
    addl %ebp, %esi
    testl %ebx, (%edx)
    jz 2f
    call print
2:  popl %edx
    addl $8, %edx
    leal features_end(%ebp), %eax
    cmpl %eax, %edx
    jb 1b
    leal line_end(%ebp), %esi
    call print
    jmp halt

// Prints the text at esi, and halts.
fail:
    movl $VGA_TEXT, %edi
    call print
halt:
    movw $ASM_DEBUG_EXIT_PORT, %dx
    movb $ASM_DEBUG_EXIT_PANIC, %al
    outb %al, %dx
1:  hlt
    jmp 1b

// Prints the text at esi on the first serial port, and the screen at edi.
print:
    movw $COM_LINE_STATUS, %dx
    movl $100000, %ecx // limit, in case the port is absent
1:  inb %dx, %al
    testb $LINE_EMPTY, %al
    loopz 1b
    lodsb
    testb %al, %al
    jz 2f
    movw $COM1, %dx
    outb %al, %dx
    cmpb $' ', %al // skip CR and LF: the VGA shows glyphs
    jb print
    movb $VGA_GREY, %ah
    stosw
    jmp print
2:  ret

    .section .boot.data, "a"
no_multiboot:
    .asciz "Strobe: not started by a Multiboot loader\r\n"
no_i686:
    .asciz "Strobe: this CPU is older than i686: it lacks"
no_cpuid:
    .asciz " CPUID"
no_cmov:
    .asciz " CMOV"
no_tsc:
    .asciz " TSC"
no_pse:
    .asciz " PSE (4 MiB pages)"
line_end:
    .asciz "\r\n"
    .balign 4
features: // a bit, and what it is
    .long NO_CPUID, no_cpuid
    .long CPUID_1_EDX_CMOV, no_cmov
    .long CPUID_1_EDX_TSC, no_tsc
    .long CPUID_1_EDX_PSE, no_pse
features_end:

    .text
    .type higher_half, @function
higher_half:
    movl %ebp, image_distance
    movl $boot_stack_top, %esp
    xorl %ebp, %ebp // backtraces end here
    movl %edi, %eax
    movl %esi, %edx
    call boot_main
    // boot_main has moved the image (kaslr.c): these are its new addresses.
    movl $moved, %eax
    jmp *%eax
moved:
    movl $boot_stack_top, %esp
    pushl %ebp
    pushl %ebp
    movl %esp, %ebp
    call boot_moved
    hlt

    .section .bss.page_aligned, "aw", @nobits
    .balign 4096
    .global early_directory
early_directory:
    .skip 4096
    // Guard page: unmapped by arch_init_memory, to catch stack overflows. Before
    // higher_half it is the directory of the lower half.
    .global boot_stack_guard, boot_stack_top
early_identity:
boot_stack_guard:
    .skip 4096
    .skip ASM_KSTACK_SIZE
boot_stack_top:
    .global early_pointers
early_pointers:
    .skip 4096

    .section .note.GNU-stack, "", @progbits
