// system.sensors: the files of /sensors.

#include "kernel/monitor/sysinfo.h"
#include "kernel/sensor/sensor.h"
#include "lib/string.h"

static void put_sensor(struct sensor *s, void *arg)
{
    struct sysinfo_sensor *record = chain_add(arg);
    if (!record)
        return;
    // Removed under its owner: it has no path.
    if (vfs_path(s->vnode, record->path, sizeof(record->path)) < 0)
        strlcpy(record->path, "(removed)", sizeof(record->path));
    strlcpy(record->type, sensor_type_name(s), sizeof(record->type));
    strlcpy(record->state, sensor_state(s), sizeof(record->state));
    record->owner = s->owner_id;
    record->readers = READ_ONCE(s->readers);
    record->bytes = READ_ONCE(s->bytes);
}

static int make_sensors(struct chain *out, u32 number UNUSED)
{
    sensors_each(put_sensor, out);
    return 0;
}

SYSINFO_NODE(sensors, .path = "system.sensors",
             .type = SYSINFO_TYPE(SYSINFO_DATA, SYSINFO_RECORD_SENSOR),
             .make = make_sensors);
