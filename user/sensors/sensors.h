// The parts of the tool `sensors`.
#pragma once

#include "user/libstrobe/sensor_print.h"

// list.c: all sensors, with what changes in each second.
void list_sensors(bool json);

// sensors.c: opens all, or ends the program with the reason.
struct sensor_file *open_sensors(char **paths, int count);

// watch.c and record.c: subcommands. argv[0] is the subcommand's name. They
// return the exit status.
int watch_command(int argc, char *argv[]);
int record_command(int argc, char *argv[]);
