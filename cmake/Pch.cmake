# One precompiled header for every target that includes ATen: it takes about 20 s to build and saves 7 to 9 s a file.
# It pays only with AT_PER_OPERATOR_HEADERS: otherwise native/Resize.h alone pulls in every operator's header.
add_library(opgen_pch OBJECT ${CMAKE_CURRENT_LIST_DIR}/pch.cpp)
target_include_directories(opgen_pch SYSTEM PRIVATE ${TORCH_INCLUDE_DIRS} ${OPGEN_PCH_INCLUDES})
target_compile_definitions(opgen_pch PRIVATE AT_PER_OPERATOR_HEADERS)
target_precompile_headers(opgen_pch PRIVATE ${OPGEN_FIRST_HEADER} ${CMAKE_CURRENT_LIST_DIR}/pch.h)

function(opgen_use_pch target)
  # The macro CMake would add for a shared library (<target>_EXPORTS) would differ from the header's, and nobody uses it.
  set_target_properties(${target} PROPERTIES DEFINE_SYMBOL "")
  target_compile_definitions(${target} PRIVATE AT_PER_OPERATOR_HEADERS)
  target_precompile_headers(${target} REUSE_FROM opgen_pch)
endfunction()
