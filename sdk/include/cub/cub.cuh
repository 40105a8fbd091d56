// The name that CUDA's sources know.
#pragma once

#include "cub.muh"
