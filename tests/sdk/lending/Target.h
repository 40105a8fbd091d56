// A target that lends, for the test: the CPU, whose allocator asks for lent memory first.
#pragma once

#include "Lending.h"
