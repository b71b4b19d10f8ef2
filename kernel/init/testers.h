// Runs the tester that the command line requests; returns only if there is
// none. A kernel without that tester reports this and powers off with a failure
// status.
#pragma once

void testers_run(void);
