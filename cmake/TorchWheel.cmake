# The PyTorch wheel as a library, without its own package file: TorchConfig.cmake of a CUDA wheel wants a CUDA toolkit,
# and this project needs nothing but headers, libc10, libtorch_cpu and (for the bindings) libtorch_python.
#
# In:  TORCH_DIR, the installed `torch` package (found through Python where it is not given)
# Out: TORCH_VERSION, TORCH_INCLUDE_DIRS, TORCH_LIBRARIES_CPU, TORCH_LIBRARY_PYTHON, TORCH_LIB_DIR, and for the target cuda
#      TORCH_LIBRARY_C10_CUDA, TORCH_LIBRARY_CUDA
find_package(Python3 3.10 REQUIRED COMPONENTS Interpreter Development.Module)

if(NOT TORCH_DIR)
  execute_process(
    # find_spec does not import the package, so this takes milliseconds and works while nothing is built yet
    COMMAND ${Python3_EXECUTABLE} -c
            "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    OUTPUT_VARIABLE TORCH_DIR OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _failed)
  if(_failed)
    message(FATAL_ERROR "No torch in ${Python3_EXECUTABLE}. Run `make env`, or pass -DTORCH_DIR=.../site-packages/torch")
  endif()
endif()

file(STRINGS ${TORCH_DIR}/version.py _line REGEX "^__version__ *=")
string(REGEX REPLACE ".*['\"]([0-9]+\\.[0-9]+\\.[0-9]+).*" "\\1" TORCH_VERSION "${_line}")
if(TORCH_VERSION VERSION_LESS 2.9 OR NOT TORCH_VERSION VERSION_LESS 2.16)
  message(FATAL_ERROR "torch ${TORCH_VERSION} in ${TORCH_DIR}: this project supports torch >= 2.9, < 2.16")
endif()

set(TORCH_LIB_DIR ${TORCH_DIR}/lib)
set(TORCH_INCLUDE_DIRS ${TORCH_DIR}/include ${TORCH_DIR}/include/torch/csrc/api/include)
set(TORCH_LIBRARIES_CPU ${TORCH_LIB_DIR}/libtorch_cpu.so ${TORCH_LIB_DIR}/libc10.so)
set(TORCH_LIBRARY_PYTHON ${TORCH_LIB_DIR}/libtorch_python.so)
set(TORCH_LIBRARY_C10_CUDA ${TORCH_LIB_DIR}/libc10_cuda.so)
set(TORCH_LIBRARY_CUDA ${TORCH_LIB_DIR}/libtorch_cuda.so)
