// Stands in front of the host stand-in's header of this name: Thrust's device system is CUDA's.
#include <cccl/thrust/detail/config/device_system.h>
