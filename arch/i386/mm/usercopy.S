// User copies: each instruction that may fault has an entry in the exception
// table, whose fix-up makes the function return -EFAULT. The C side
// (usercopy.c) has checked the range. Between STAC and CLAC there is nothing
// but the access; an exception clears AC for its handler.

#include "arch/i386/cpu/asm.inc"

#define ONES  0x01010101
#define HIGHS 0x80808080

    .cfi_sections .debug_frame
    .text

// int user_copy(void *dst, const void *src, size_t n): 0 or -EFAULT. Either
// pointer may be a user address.
    .balign 16
    .global user_copy
    .type user_copy, @function
user_copy:
    .cfi_startproc
    PUSH %esi
    PUSH %edi
    movl %eax, %edi
    movl %edx, %esi
    movl %ecx, %edx
    shrl $2, %ecx
    STAC
1:  rep movsl
    movl %edx, %ecx
    andl $3, %ecx
    jz 3f
2:  rep movsb
3:  CLAC
    xorl %eax, %eax
4:  POP %edi
    POP %esi
    ret
    PUSHED_HERE 2
5:  CLAC
    movl $-ASM_EFAULT, %eax
    jmp 4b
    FIXUP 1b, 5b
    FIXUP 2b, 5b
    .cfi_endproc

// int user_zero(void *dst, size_t n)
    .balign 16
    .global user_zero
    .type user_zero, @function
user_zero:
    .cfi_startproc
    PUSH %edi
    movl %eax, %edi
    movl %edx, %ecx
    shrl $2, %ecx
    xorl %eax, %eax
    STAC
1:  rep stosl
    movl %edx, %ecx
    andl $3, %ecx
2:  rep stosb
    CLAC
3:  POP %edi
    ret
    PUSHED_HERE 1
4:  CLAC
    movl $-ASM_EFAULT, %eax
    jmp 3b
    FIXUP 1b, 4b
    FIXUP 2b, 4b
    .cfi_endproc

// int user_string(char *dst, const char *src, size_t n): the length of the
// string without its NUL; n if there is no NUL among the first n bytes;
// -EFAULT. Copies words once src is aligned: an aligned word does not cross a
// page.
    .balign 16
    .global user_string
    .type user_string, @function
user_string:
    .cfi_startproc
    PUSH %ebx
    PUSH %esi
    PUSH %edi
    movl %eax, %edi
    movl %eax, %ebx
    movl %edx, %esi
    STAC
1:  testl $3, %esi
    jz 4f
2:  testl %ecx, %ecx
    jz 6f
3:  movb (%esi), %al
    movb %al, (%edi)
    testb %al, %al
    jz 6f
    incl %esi
    incl %edi
    decl %ecx
    jmp 1b

4:  cmpl $4, %ecx
    jb 2b
5:  movl (%esi), %eax
    leal -ONES(%eax), %edx
    notl %eax
    andl %eax, %edx
    testl $HIGHS, %edx // a byte is 0
    jnz 3b             // copied byte by byte; alignment is tested at 1 only
    notl %eax
    movl %eax, (%edi)
    addl $4, %esi
    addl $4, %edi
    subl $4, %ecx
    jmp 4b

6:  CLAC
    movl %edi, %eax
    subl %ebx, %eax
7:  POP %edi
    POP %esi
    POP %ebx
    ret
    PUSHED_HERE 3
8:  CLAC
    movl $-ASM_EFAULT, %eax
    jmp 7b
    FIXUP 3b, 8b
    FIXUP 5b, 8b
    .cfi_endproc

// int user_load(const u32 *src, u32 *value)
    .balign 16
    .global user_load
    .type user_load, @function
user_load:
    .cfi_startproc
    STAC
1:  movl (%eax), %eax
    CLAC
    movl %eax, (%edx)
    xorl %eax, %eax
    ret
    FIXUP 1b, user_fault
    .cfi_endproc

// int user_store(u32 *dst, u32 value)
    .balign 16
    .global user_store
    .type user_store, @function
user_store:
    .cfi_startproc
    STAC
1:  movl %edx, (%eax)
    CLAC
    xorl %eax, %eax
    ret
    FIXUP 1b, user_fault
    .cfi_endproc

// int user_fxsave(void *dst)
    .balign 16
    .global user_fxsave
    .type user_fxsave, @function
user_fxsave:
    .cfi_startproc
    STAC
1:  fxsave (%eax)
    CLAC
    xorl %eax, %eax
    ret
    FIXUP 1b, user_fault
    .cfi_endproc

// int user_fxrstor(const void *src)
    .balign 16
    .global user_fxrstor
    .type user_fxrstor, @function
user_fxrstor:
    .cfi_startproc
    STAC
1:  fxrstor (%eax)
    CLAC
    xorl %eax, %eax
    ret
    FIXUP 1b, user_fault
    .cfi_endproc

user_fault:
    .cfi_startproc
    CLAC
    movl $-ASM_EFAULT, %eax
    ret
    .cfi_endproc

    .section .note.GNU-stack, "", @progbits
