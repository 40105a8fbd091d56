# muDNN's stand-in: the classes of this folder, which compute through ATen, and what is a target's own: its Target.h and the
# sources that implement it.
#
#   opgen_add_mudnn(<folder of Target.h> <sources...>)      adds the library `mudnn`
function(opgen_add_mudnn folder)
  file(GLOB shared CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/sdk/mudnn/*.cpp)
  add_library(mudnn SHARED ${shared} ${ARGN})
  target_include_directories(mudnn
    PUBLIC ${OPGEN_SDK_INCLUDES} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/sdk/mudnn ${folder})
  target_include_directories(mudnn SYSTEM PRIVATE ${TORCH_INCLUDE_DIRS})
  target_link_libraries(mudnn PUBLIC musart PRIVATE ${TORCH_LIBRARIES_CPU})
  opgen_use_pch(mudnn)
  # LayerNorm calls kernels of PyTorch's through its DispatchStub, which takes one function for each version of the CPU's
  # kernels: for x86 there are three. Elsewhere their number depends on the compiler that built PyTorch.
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    set_source_files_properties(${CMAKE_SOURCE_DIR}/sdk/mudnn/LayerNorm.cpp PROPERTIES
      SKIP_PRECOMPILE_HEADERS ON
      COMPILE_DEFINITIONS "HAVE_AVX512_CPU_DEFINITION;HAVE_AVX2_CPU_DEFINITION")
  endif()
endfunction()
