# Finds libtorch without find_package(Torch), which demands a CUDA toolkit for a CUDA build of the wheel.
#
# Looks in SINEW_TORCH_DIR (a folder with include/ and lib/: the wheel's torch/ or an unpacked libtorch). If it is not
# set, looks in the virtual environment that ./dev setup makes. Defines SinewTorch::torch.
set(SINEW_TORCH_DIR "" CACHE PATH "Folder with libtorch's include/ and lib/")
if(NOT SINEW_TORCH_DIR)
  file(GLOB SINEW_TORCH_CANDIDATES ${CMAKE_SOURCE_DIR}/build/venv/lib/python3*/site-packages/torch)
  list(GET SINEW_TORCH_CANDIDATES 0 SINEW_TORCH_DIR)
endif()

find_library(SINEW_LIB_TORCH_CPU torch_cpu PATHS ${SINEW_TORCH_DIR}/lib NO_DEFAULT_PATH)
find_library(SINEW_LIB_C10 c10 PATHS ${SINEW_TORCH_DIR}/lib NO_DEFAULT_PATH)
find_library(SINEW_LIB_TORCH_CUDA torch_cuda PATHS ${SINEW_TORCH_DIR}/lib NO_DEFAULT_PATH)
find_library(SINEW_LIB_C10_CUDA c10_cuda PATHS ${SINEW_TORCH_DIR}/lib NO_DEFAULT_PATH)
file(GLOB SINEW_LIB_GOMP ${SINEW_TORCH_DIR}/lib/libgomp*.so* ${SINEW_TORCH_DIR}/../torch.libs/libgomp*.so*)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SinewTorch REQUIRED_VARS SINEW_LIB_TORCH_CPU SINEW_LIB_C10
  REASON_FAILURE_MESSAGE "run ./dev setup, or set SINEW_TORCH_DIR to a libtorch")

if(SinewTorch_FOUND AND NOT TARGET SinewTorch::torch)
  add_library(SinewTorch::torch INTERFACE IMPORTED)
  target_include_directories(SinewTorch::torch SYSTEM INTERFACE ${SINEW_TORCH_DIR}/include ${SINEW_TORCH_DIR}/include/torch/csrc/api/include)
  # libtorch is built with NDEBUG, and the layout of some of its classes depends on this macro.
  target_compile_definitions(SinewTorch::torch INTERFACE NDEBUG)
  # --no-as-needed keeps libraries of which no symbol is used: their constructors register the kernels.
  set(libraries ${SINEW_LIB_TORCH_CPU} ${SINEW_LIB_C10})
  if(SINEW_LIB_TORCH_CUDA)
    list(APPEND libraries ${SINEW_LIB_TORCH_CUDA} ${SINEW_LIB_C10_CUDA})
  endif()
  target_link_libraries(SinewTorch::torch INTERFACE -Wl,--no-as-needed ${libraries} -Wl,--as-needed)
  # Links the wheel's own libgomp instead of the compiler's. Two OpenMP runtimes in one process would each start
  # threads.
  target_link_options(SinewTorch::torch INTERFACE -Wl,-rpath,${SINEW_TORCH_DIR}/lib -Wl,--allow-shlib-undefined)
  if(SINEW_LIB_GOMP)
    list(GET SINEW_LIB_GOMP 0 gomp)
    target_link_libraries(SinewTorch::torch INTERFACE ${gomp})
  endif()
endif()
