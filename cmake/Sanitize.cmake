# `make sanitize`: the toolkit's libraries and tests with a sanitizer. libtorch stays as it is, uninstrumented, so what the
# sanitizer cannot see into is listed, with reasons, in tests/sdk/sanitizers/*.supp.
#
#   opgen_sanitized_test(<test>)   gives a ctest its sanitizer's options; without a sanitizer nothing changes
if(OPGEN_SANITIZE AND NOT OPGEN_SANITIZE MATCHES "^(address|undefined|thread)$")
  message(FATAL_ERROR "OPGEN_SANITIZE=${OPGEN_SANITIZE} is not one of address, undefined, thread")
endif()
if(OPGEN_SANITIZE)
  # -O1: readable stacks, and still fast enough for the stress test.
  add_compile_options(-fsanitize=${OPGEN_SANITIZE} -fno-omit-frame-pointer -O1 -g1)
  add_link_options(-fsanitize=${OPGEN_SANITIZE})
  if(OPGEN_SANITIZE STREQUAL undefined)
    # Not enum: the runtime is a C interface, whose enumerations arrive as whatever number the caller passed. That such a
    # number is refused is what the tests of bad input show.
    add_compile_options(-fno-sanitize-recover=all -fno-sanitize=enum)
  endif()
endif()

function(opgen_sanitized_test test)
  if(NOT OPGEN_SANITIZE)
    return()
  endif()
  set(lists ${CMAKE_SOURCE_DIR}/tests/sdk/sanitizers)
  set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT
    "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1"
    "LSAN_OPTIONS=suppressions=${lists}/leak.supp:print_suppressions=0"
    "UBSAN_OPTIONS=print_stacktrace=1:suppressions=${lists}/undefined.supp"
    "TSAN_OPTIONS=suppressions=${lists}/thread.supp:ignore_noninstrumented_modules=1:halt_on_error=0"
    # OpenMP's barriers are not instrumented: with more threads every parallel loop would look like a race.
    "OMP_NUM_THREADS=1")
  set_tests_properties(${test} PROPERTIES TIMEOUT 900)
endfunction()
