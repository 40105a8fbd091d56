# kernels/ported/*.cu -> <build>/ported/.../*.mu -> <build>/mcc/.../*.mu.cpp, which the target compiles as C++.
#
#   musa_add_ported_sources(<out-var> files...)
#   musa_add_kernel_sources(<out-var> files...)     for sources that are .mu already: mcc alone
#
# Every source is a chain of its own, so one edited .cu recompiles one object. Headers in CUDA's dialect (.cuh) beside the
# sources go the same way, .cuh -> .muh -> .muh; which objects an edited one recompiles, the compiler's dependency files
# know. <out-var> also holds the host target's own part of the gpu_kernel API (torch_musa/csrc/porting_host).
#
# That is the target host. On the others a device compiler takes the .mu as it is (MusaKernels.cmake): no mcc step, and
# <out-var> holds what opgen_compile_kernels makes of them.
#
# What these sources include of PyTorch's device headers is found in this order:
#   torch_musa/csrc/porting_host   (host) faster there than what is ported
#   torch_musa/csrc/porting        the backend's streams, guards, allocator ... in place of libc10_cuda's, on every target
#   <build>/ported/wheel           the wheel's own, ported when CMake runs; on the host <build>/mcc/wheel, translated, too

# Porting a source needs no library of ours: without this, Ninja would first link those that the target links to.
set(CMAKE_ADD_CUSTOM_COMMAND_DEPENDS_EXPLICIT_ONLY ON)

include(MusaKernels)
if(OPGEN_TARGET STREQUAL host)
  include(Cccl)
endif()
set(MUSA_PORTED_DIR ${CMAKE_BINARY_DIR}/ported)
set(MUSA_MCC_DIR ${CMAKE_BINARY_DIR}/mcc)
# The toolkit's headers in front of CCCL's: they hold thrust's device system.
set(MUSA_KERNEL_INCLUDES ${MUSA_MCC_DIR} ${CMAKE_SOURCE_DIR}/sdk/include ${CCCL_INCLUDE_DIR})
# A kernel must be free to go into the loop over its threads, in a shared library too.
set(MUSA_KERNEL_OPTIONS -O3 -fno-semantic-interposition -Wno-unknown-pragmas)
file(GLOB MUSA_PORT_TOOL CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/opgen/port/*.py ${CMAKE_SOURCE_DIR}/opgen/port/mappings/*.tsv ${CMAKE_SOURCE_DIR}/opgen/port/mappings/names/*.tsv
  ${CMAKE_SOURCE_DIR}/opgen/port/mappings/*.yaml ${CMAKE_SOURCE_DIR}/opgen/diagnostics.py)
file(GLOB MUSA_MCC CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/sdk/host/mcc/*.py)
set(MUSA_PORTING_DIR ${CMAKE_SOURCE_DIR}/torch_musa/csrc/porting)

# ---- the wheel's device headers --------------------------------------------------------------------------------
# Ported into the build, never in place, from the wheel that is installed. At configure time, because what there is depends
# on the wheel; the tools write only what changed.
file(GLOB_RECURSE MUSA_PORTING_HEADERS CONFIGURE_DEPENDS ${MUSA_PORTING_DIR}/*.h ${MUSA_PORTING_DIR}/*.muh)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${MUSA_PORT_TOOL} ${MUSA_MCC} ${TORCH_DIR}/version.py)
if(NOT OPGEN_SANITIZE)
  opgen_port_torch_headers(MUSA_WHEEL)
endif()
if(OPGEN_TARGET STREQUAL host AND NOT OPGEN_SANITIZE)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1
            ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/sdk/host/mcc --translate ${MUSA_WHEEL} -o ${MUSA_MCC_DIR}/wheel
    RESULT_VARIABLE _failed ERROR_VARIABLE _messages)
  if(_failed)
    message(STATUS "Some of PyTorch's device headers are not translated:\n${_messages}")
  endif()
endif()

# Ports `source` to `name` (relative, .mu or .muh) and translates that to `translated`. Both tools leave a file alone whose
# text would be the same: the stamp records that they ran, and as byproducts (Ninja looks at them again after the step)
# unchanged files recompile nothing.
function(_musa_translate source name translated)
  set(ported ${MUSA_PORTED_DIR}/${name})
  if(NOT OPGEN_TARGET STREQUAL host)
    add_custom_command(
      OUTPUT ${ported}.stamp
      BYPRODUCTS ${ported}
      COMMAND ${OPGEN_PORT} ${source} --out ${ported} --overwrite
      COMMAND ${CMAKE_COMMAND} -E touch ${ported}.stamp
      DEPENDS ${source} ${MUSA_PORT_TOOL}
      COMMENT "Porting ${name}"
      VERBATIM)
    return()
  endif()
  add_custom_command(
    OUTPUT ${translated}.stamp
    BYPRODUCTS ${ported} ${translated}
    COMMAND ${OPGEN_PORT} ${source} --out ${ported} --overwrite
    # The port keeps lines, so messages may name the file a developer edits.
    COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1
            ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/sdk/host/mcc --translate ${ported} -o ${translated} --presumed ${source}
            --include ${MUSA_PORTING_DIR}/device_prelude.h
    COMMAND ${CMAKE_COMMAND} -E touch ${translated}.stamp
    DEPENDS ${source} ${MUSA_PORT_TOOL} ${MUSA_MCC}
    COMMENT "Porting ${name}"
    VERBATIM)
endfunction()

function(musa_add_ported_sources out)
  # The stamps are what makes the target run the steps; headers exist before its first object is compiled.
  set(stamps)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/ported/*.cuh)
  foreach(header IN LISTS headers)
    file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR} ${header})
    string(REGEX REPLACE "\\.cuh$" ".muh" name ${name})
    _musa_translate(${header} ${name} ${MUSA_MCC_DIR}/${name})
    list(APPEND stamps ${MUSA_MCC_DIR}/${name}.stamp)
  endforeach()
  if(NOT OPGEN_TARGET STREQUAL host)
    list(TRANSFORM stamps REPLACE "^${MUSA_MCC_DIR}" ${MUSA_PORTED_DIR})
    set(ported)
    foreach(source IN LISTS ARGN)
      file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR} ${source})
      string(REGEX REPLACE "\\.cu$" ".mu" name ${name})
      _musa_translate(${source} ${name} "")
      list(APPEND stamps ${MUSA_PORTED_DIR}/${name}.stamp)
      list(APPEND ported ${MUSA_PORTED_DIR}/${name})
    endforeach()
    opgen_compile_kernels(result INCLUDE ${MUSA_PORTED_DIR} ${MUSA_WHEEL} AFTER ${stamps} SOURCES ${ported})
    set(${out} ${result} ${stamps} PARENT_SCOPE)
    return()
  endif()

  file(GLOB_RECURSE result CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/torch_musa/csrc/porting_host/*.cpp)
  foreach(source IN LISTS ARGN)
    file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR} ${source})
    string(REGEX REPLACE "\\.cu$" ".mu" name ${name})
    _musa_translate(${source} ${name} ${MUSA_MCC_DIR}/${name}.cpp)
    list(APPEND stamps ${MUSA_MCC_DIR}/${name}.cpp.stamp)
    list(APPEND result ${MUSA_MCC_DIR}/${name}.cpp)
  endforeach()

  # Inner loops are what these files are made of: let the compiler vectorize them. (Flags that define a macro, such as
  # -fno-math-errno, would shut out the precompiled header.)
  set_source_files_properties(${result} PROPERTIES
    COMPILE_OPTIONS "${MUSA_KERNEL_OPTIONS}"
    INCLUDE_DIRECTORIES "${CMAKE_SOURCE_DIR}/torch_musa/csrc/porting_host;${MUSA_PORTING_DIR};${MUSA_MCC_DIR}/wheel;${MUSA_KERNEL_INCLUDES}")
  set(${out} ${result} ${stamps} PARENT_SCOPE)
endfunction()

function(musa_add_kernel_sources out)
  set(result)
  set(stamps)
  foreach(source IN LISTS ARGN)
    file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR} ${source})
    set(translated ${MUSA_MCC_DIR}/${name}.cpp)
    add_custom_command(
      OUTPUT ${translated}.stamp
      BYPRODUCTS ${translated}
      COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1
              ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/sdk/host/mcc --translate ${source} -o ${translated}
      COMMAND ${CMAKE_COMMAND} -E touch ${translated}.stamp
      DEPENDS ${source} ${MUSA_MCC}
      COMMENT "Translating ${name}"
      VERBATIM)
    list(APPEND result ${translated})
    list(APPEND stamps ${translated}.stamp)
  endforeach()
  set_source_files_properties(${result} PROPERTIES
    COMPILE_OPTIONS "${MUSA_KERNEL_OPTIONS}"
    INCLUDE_DIRECTORIES "${MUSA_KERNEL_INCLUDES}")
  set(${out} ${result} ${stamps} PARENT_SCOPE)
endfunction()
