// Runs the tester that the command line asks for, if any, and does not return
// then. A kernel that lacks it says so and powers off, with the status of a
// failure.
#pragma once

void testers_run(void);
