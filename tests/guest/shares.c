// Functions of known numbers of instructions, one after the other: their
// profile is compared with these (tests/system/test_truth.py).
//
//     shares [ROUNDS]     (1)
#include "test.h"

// A loop of two instructions; two more outside it are negligible.
#define FUNCTION(name, share)                            \
    void name(void);                                     \
    __asm__(".pushsection .text\n"                       \
            ".type " #name ", @function\n" #name ":\n\t" \
            "movl $" #share "*25000, %ecx\n"             \
            "1: decl %ecx\n\t"                           \
            "jnz 1b\n\t"                                 \
            "ret\n\t"                                    \
            ".size " #name ", . - " #name "\n"           \
            ".popsection")

FUNCTION(share_1, 1);
FUNCTION(share_2, 2);
FUNCTION(share_3, 3);
FUNCTION(share_4, 4);
FUNCTION(share_10, 10);

int main(int argc, char *argv[])
{
    unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    while (rounds-- > 0) {
        share_1();
        share_2();
        share_3();
        share_4();
        share_10();
    }
    ok("shares");
    return 0;
}
