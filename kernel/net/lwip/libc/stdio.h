// lwIP includes it for printf, which it does not use: LWIP_PLATFORM_DIAG.
#pragma once
