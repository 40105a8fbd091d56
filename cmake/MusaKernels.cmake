# .mu sources on the targets that have a device compiler.
#
#   opgen_compile_kernels(<out-var> [INCLUDE <folders>] [AFTER <files>] SOURCES <.mu files>)
#
# On cuda <out-var> is the sources, which CMake has nvcc compile; on musa it is the objects that mcc makes of them. Folders
# of the target that takes them are searched as well on cuda; mcc is given its own list: OPGEN_MCC_INCLUDES.
#
#   opgen_port_torch_headers(<out-var>)
#
# ports PyTorch's device headers from the wheel into the build, when CMake runs, and returns the folder. Headers that the
# backend has of its own (torch_musa/csrc/porting) are left out.

# The porting tool, beside whatever the user's PYTHONPATH brings.
set(OPGEN_PORT
  ${CMAKE_COMMAND} -E env --modify PYTHONPATH=path_list_prepend:${CMAKE_SOURCE_DIR} PYTHONDONTWRITEBYTECODE=1
  ${Python3_EXECUTABLE} -m opgen.port)

function(opgen_port_torch_headers out)
  set(folder ${CMAKE_BINARY_DIR}/ported/wheel)
  file(REMOVE ${folder}.json)
  execute_process(
    COMMAND ${OPGEN_PORT} ${TORCH_DIR} --torch-headers
            --own ${CMAKE_SOURCE_DIR}/torch_musa/csrc/porting --out ${folder} --report ${folder}.json
    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE messages)
  if(NOT EXISTS ${folder}.json)
    message(FATAL_ERROR "PyTorch's device headers cannot be ported:\n${messages}")
  elseif(failed)
    # Who includes one of these learns from the compiler that it is missing.
    message(STATUS "Some of PyTorch's device headers are not ported (${folder}.json)")
  endif()
  set(${out} ${folder} PARENT_SCOPE)
endfunction()

function(opgen_compile_kernels out)
  cmake_parse_arguments(PARSE_ARGV 1 kernels "" "" "INCLUDE;AFTER;SOURCES")
  # In front of each: what the ported headers leave to the backend.
  set(prelude ${CMAKE_SOURCE_DIR}/torch_musa/csrc/porting/device_prelude.h)
  list(APPEND OPGEN_NVCC_OPTIONS -include=${prelude})
  list(APPEND OPGEN_MCC_FLAGS -include ${prelude})
  if(OPGEN_TARGET STREQUAL cuda)
    set_source_files_properties(${kernels_SOURCES} PROPERTIES
      LANGUAGE CUDA
      GENERATED TRUE
      OBJECT_DEPENDS "${kernels_AFTER}"
      COMPILE_OPTIONS "${OPGEN_NVCC_OPTIONS}"
      INCLUDE_DIRECTORIES "${kernels_INCLUDE}")
    set(${out} ${kernels_SOURCES} PARENT_SCOPE)
    return()
  endif()
  set(objects)
  list(TRANSFORM kernels_INCLUDE PREPEND -I OUTPUT_VARIABLE own_includes)
  list(TRANSFORM OPGEN_MCC_INCLUDES PREPEND -I OUTPUT_VARIABLE includes)
  foreach(source IN LISTS kernels_SOURCES)
    file(RELATIVE_PATH name ${CMAKE_BINARY_DIR} ${source})
    string(REPLACE "../" "" name ${name})
    set(object ${CMAKE_BINARY_DIR}/objects/${name}.o)
    get_filename_component(folder ${object} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${OPGEN_MCC} ${OPGEN_MCC_FLAGS} ${own_includes} ${includes} -MD -MF ${object}.d -c ${source} -o ${object}
      DEPENDS ${source} ${kernels_AFTER}
      DEPFILE ${object}.d
      COMMENT "Compiling ${name}"
      VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  set(${out} ${objects} PARENT_SCOPE)
endfunction()
