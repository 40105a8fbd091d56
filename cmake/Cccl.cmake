# Headers of CCCL (Thrust and what it needs) from the installed package nvidia-cuda-cccl, a dependency of this project.
#
# Out: CCCL_INCLUDE_DIR
if(NOT CCCL_INCLUDE_DIR)
  execute_process(
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/sdk/host/mcc/cccl.py
    OUTPUT_VARIABLE CCCL_INCLUDE_DIR OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _failed ERROR_VARIABLE _message)
  if(_failed)
    message(FATAL_ERROR "${_message}Run `make env`, or pass -DCCCL_INCLUDE_DIR=... (the folder that holds thrust/)")
  endif()
endif()
