# .mu sources on the targets that have a device compiler.
#
#   opgen_compile_kernels(<out-var> [INCLUDE <folders>] [AFTER <files>] SOURCES <.mu files>)
#
# On cuda <out-var> is the sources, which CMake has nvcc compile; on musa it is the objects that mcc makes of them. Folders
# of the target that takes them are searched as well on cuda; mcc is given its own list: OPGEN_MCC_INCLUDES.
function(opgen_compile_kernels out)
  cmake_parse_arguments(PARSE_ARGV 1 kernels "" "" "INCLUDE;AFTER;SOURCES")
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
