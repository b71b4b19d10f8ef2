// The list of devices that system.usb shows: changed by the controllers'
// threads, read by others.
#pragma once

#include <strobe/sysinfo.h>

#include "kernel/usb/usb.h"

// A device takes its slot.
void usb_list_take_slot(struct usb_device *d);
// The device has started.
void usb_list_add(struct usb_device *d);
// It leaves its slot. On return no reader sees it.
void usb_list_remove(struct usb_device *d);
void usb_describe(const struct usb_device *d, struct sysinfo_usb *out);
