// The vDSO's image in the kernel: whole pages, mapped into programs unchanged
// (kernel/exec/vdso.c). VDSO is the linked file's name, from the Makefile.

    .section .rodata.vdso, "a", @progbits
    .balign 4096
    .global vdso_start
    .type vdso_start, @object
vdso_start:
    .incbin VDSO
    .balign 4096
    .global vdso_end
vdso_end:
    .size vdso_start, . - vdso_start
    .section .note.GNU-stack, "", @progbits
