# One C++ runtime in the process. torch's libraries use the shared libstdc++; where a toolchain lacks the development link
# (libstdc++.so), the linker quietly takes the archive instead, and ours would carry a second copy: its streams and
# locales are not torch's, and the first number that is formatted into a message crashes.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT APPLE)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libstdc++.so
    OUTPUT_VARIABLE OPGEN_STDLIB OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT IS_ABSOLUTE "${OPGEN_STDLIB}")
    message(STATUS "${CMAKE_CXX_COMPILER} has no libstdc++.so of its own: linking libstdc++.so.6 by name")
    link_libraries(-l:libstdc++.so.6)
  endif()
endif()
