// Requests of a person at a machine that may hang: by a break on the serial
// line, or by Alt+SysRq on the keyboard.
#pragma once

#include "lib/types.h"

// The request with this letter, as Linux names them: l(ocate the CPUs),
// t(asks), m(emory), b(oot again); any other one prints what there is. Any
// context but NMI, for an interrupt handler without locks. Prints on the
// consoles.
void sysrq(char letter);

// The line said a break, which is request l, and starts a request by letter.
void sysrq_break(void);
// The next characters from the line: true if this one was a request's letter,
// which is nobody's input then.
bool sysrq_letter(char c);
