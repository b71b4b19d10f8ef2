// From Unicode to the font's characters; see cp437.h.
#include "arch/i386/dev/cp437.h"
#include "lib/utf8.h"

static const char upper_half[] = // from 0x80 on
    "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»"
    "░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀"
    "αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00a0";

// Pairs: a character that the font lacks, and its place holder.
static const char similar[] =
    "ÀAÁAÂAÃAĀAĂAĄAĆCČCĎDĐDÈEÊEËEĘEĚEÌIÍIÎIÏIĹLĽLŁLŃNŇNÒOÓOÔOÕOŐOØOŔRŘRŚSŠSŞS"
    "ŤTÙUÚUÛUŮUŰUÝYŹZŻZŽZãaăaąaćcčcďdđdęeěeĺlľlłlńnňnõoőoøoŕrřrśsšsşsťtůuűuýy"
    "źzżzžz´'¨\"ˇ^³3¹1€E‘'’'“\"”\"–-—-…."
    "§\x15¶\x14•\x07→\x1a←\x1b↑\x18↓\x19";

u8 cp437_of(u32 character)
{
    const char *p = upper_half;
    for (u32 code = 0x80; *p; code++) {
        if (utf8_next(&p) == character)
            return (u8)code;
    }
    p = similar;
    while (*p) {
        u32 lacking = utf8_next(&p), holder = utf8_next(&p);
        if (lacking == character)
            return (u8)holder;
    }
    return '?';
}
