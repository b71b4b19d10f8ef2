// Calls the plugin's translate() for each block that QEMU translates. For one
// of a plugin's files.
#pragma once

#include "api.h"

// The plugin's: called for each block that QEMU translates.
static void translate(struct qemu_plugin_tb *tb);

#if API_VERSION >= 7
typedef void tb_callback(struct qemu_plugin_tb *tb, void *data);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t plugin,
                                           tb_callback *callback, void *data);
static void plugin_translated(struct qemu_plugin_tb *tb, void *data)
{
    (void)data;
    translate(tb);
}
#define plugin_on_translation(plugin) \
    qemu_plugin_register_vcpu_tb_trans_cb(plugin, plugin_translated, NULL)
#else
typedef void tb_callback(uint64_t plugin, struct qemu_plugin_tb *tb);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t plugin,
                                           tb_callback *callback);
static void plugin_translated(uint64_t plugin, struct qemu_plugin_tb *tb)
{
    (void)plugin;
    translate(tb);
}
#define plugin_on_translation(plugin) \
    qemu_plugin_register_vcpu_tb_trans_cb(plugin, plugin_translated)
#endif
