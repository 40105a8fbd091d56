// The driver's header. The stand-in has no driver interface (mu...): sources that include this for
// the sake of types and macros find those of the runtime.
#pragma once

#include <musa_runtime_api.h>
