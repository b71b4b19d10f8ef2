// The glyphs of the framebuffer's console (tools/build/font).
    .section .rodata
    .balign 16
    .global font
    .type font, @object
    .size font, 256 * 16
font:
    .incbin FONT

    .section .note.GNU-stack, "", @progbits
