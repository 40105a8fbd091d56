# Moore Threads' toolkit. No card was at hand when this was written: what is tested is which commands come out.
#
# In:  MUSA_HOME, OPGEN_MUSA_ARCH (a list: 21;22;31), OPGEN_FP64 (`opgen build` gives all three)
# Out: OPGEN_SDK_INCLUDES, the folder of the toolkit's headers, OPGEN_MCC, OPGEN_MCC_FLAGS, OPGEN_MCC_INCLUDES for .mu sources
if(NOT MUSA_HOME)
  set(MUSA_HOME /usr/local/musa)
  if(DEFINED ENV{MUSA_HOME})
    set(MUSA_HOME $ENV{MUSA_HOME})
  endif()
endif()
set(OPGEN_MUSA_ARCH 31 CACHE STRING "Chips to compile kernels for: 21;22;31")
option(OPGEN_FP64 "Double precision in kernels on chips where it is slow" OFF)

set(OPGEN_SDK_INCLUDES ${MUSA_HOME}/include)
find_program(OPGEN_MCC mcc HINTS ${MUSA_HOME}/bin NO_DEFAULT_PATH)
if(NOT OPGEN_MCC)
  message(FATAL_ERROR "No mcc in ${MUSA_HOME}/bin. Set MUSA_HOME to the MUSA toolkit")
endif()

# mcc is a clang: `-x musa` reads the dialect, one --offload-arch a chip. NDEBUG as in the wheel (CMakeLists.txt).
set(OPGEN_MCC_FLAGS -x musa -mtgpu -std=c++20 -fPIC)
if(CMAKE_BUILD_TYPE STREQUAL Debug)
  list(APPEND OPGEN_MCC_FLAGS -O0 -g)
else()
  list(APPEND OPGEN_MCC_FLAGS -O2 -DNDEBUG)
endif()
foreach(arch IN LISTS OPGEN_MUSA_ARCH)
  list(APPEND OPGEN_MCC_FLAGS --offload-arch=mp_${arch})
endforeach()
if(OPGEN_FP64)
  list(APPEND OPGEN_MCC_FLAGS -DENABLE_COMPILE_FP64=1)
endif()
if(OPGEN_ASAN)
  # Device code has no such thing.
  list(APPEND OPGEN_MCC_FLAGS -Xarch_host -fsanitize=address -fno-omit-frame-pointer)
endif()
list(APPEND OPGEN_MCC_FLAGS -DAT_PER_OPERATOR_HEADERS)
set(OPGEN_MCC_INCLUDES
  ${CMAKE_SOURCE_DIR} ${OPGEN_GENERATED}/include ${CMAKE_SOURCE_DIR}/torch_musa/csrc/porting ${MUSA_HOME}/include
  ${TORCH_INCLUDE_DIRS})
