# kernels/ported/*.cu -> <build>/ported/.../*.mu -> <build>/ported/.../*.mu.cpp, which the target compiles as C++.
#
#   musa_add_ported_sources(<out-var> files...)
#
# Every source is a chain of its own, so one edited .cu recompiles one object. Headers in CUDA's dialect (.cuh) beside the
# sources are ported as well; which object an edited one recompiles, the compiler's dependency files know.
# <out-var> also holds the host target's own part of the gpu_kernel API (torch_musa/csrc/porting).

set(MUSA_PORTED_DIR ${CMAKE_BINARY_DIR}/ported)
file(GLOB MUSA_PORT_TOOL CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/opgen/port/*.py ${CMAKE_SOURCE_DIR}/opgen/port/mappings/*.tsv ${CMAKE_SOURCE_DIR}/opgen/diagnostics.py)
file(GLOB MUSA_MCC CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/sdk/host/mcc/*.py)

function(_musa_port_command source target)
  # The stamp records that the step ran; the port itself keeps its time where its text did not change, and as a byproduct
  # (Ninja looks at it again after the step) it then recompiles nothing.
  add_custom_command(
    OUTPUT ${target}.stamp
    BYPRODUCTS ${target}
    COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${CMAKE_SOURCE_DIR} PYTHONDONTWRITEBYTECODE=1
            ${Python3_EXECUTABLE} -m opgen.port ${source} --out ${target}
    COMMAND ${CMAKE_COMMAND} -E touch ${target}.stamp
    DEPENDS ${source} ${MUSA_PORT_TOOL}
    COMMENT "Porting ${source}"
    VERBATIM)
endfunction()

function(musa_add_ported_sources out)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/ported/*.cuh)
  set(ported_headers)
  foreach(header IN LISTS headers)
    file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR} ${header})
    string(REGEX REPLACE "\\.cuh$" ".muh" name ${name})
    _musa_port_command(${header} ${MUSA_PORTED_DIR}/${name})
    list(APPEND ported_headers ${MUSA_PORTED_DIR}/${name})
  endforeach()

  file(GLOB_RECURSE result CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/torch_musa/csrc/porting/*.cpp)
  foreach(source IN LISTS ARGN)
    file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR} ${source})
    string(REGEX REPLACE "\\.cu$" ".mu" name ${name})
    set(mu ${MUSA_PORTED_DIR}/${name})
    _musa_port_command(${source} ${mu})
    # The port keeps lines, so messages may name the file a developer edits.
    add_custom_command(
      OUTPUT ${mu}.cpp
      COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/sdk/host/mcc --translate ${mu} -o ${mu}.cpp --presumed ${source}
      DEPENDS ${mu}.stamp ${MUSA_MCC}
      COMMENT "mcc ${name}"
      VERBATIM)
    list(APPEND result ${mu}.cpp)
  endforeach()

  # Inner loops are what these files are made of: let the compiler vectorize them. (Flags that define a macro, such as
  # -fno-math-errno, would shut out the precompiled header. The warning is a false alarm in PyTorch's native/Math.h.)
  set_source_files_properties(${result} PROPERTIES
    COMPILE_OPTIONS "-O3;-Wno-maybe-uninitialized"
    INCLUDE_DIRECTORIES "${MUSA_PORTED_DIR}")
  # As sources of the target, the headers exist before its first object is compiled.
  set(${out} ${result} ${ported_headers} PARENT_SCOPE)
endfunction()
