// Stands in front of the host stand-in's header of this name.
#pragma once

#include <cub/cub.muh>
