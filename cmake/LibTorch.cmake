# Finds LibTorch in a directory (an unpacked LibTorch or the torch folder of a PyPI wheel) and declares
# imported targets:
#   keel_torch         what CPU programs link: c10 and torch_cpu. Not libtorch.so, which is empty but
#                      for needing torch_cuda: that and what it brings cost each start of a worker
#                      0.2 s, and each of its deaths 25 ms until the kernel has cleared it away
#   keel_cuda_headers  what the NCCL module is compiled with (only when the headers are there)
# Does not use LibTorch's own CMake package: that one wants a CUDA toolkit, even to build for the CPU.

set(KEEL_TORCH_MINIMUM 2.6)

# The torch folder inside the virtual environment that tools/setup.sh makes.
function(keel_default_torch root out)
  file(GLOB found "${root}/.deps/venv/lib/python3*/site-packages/torch")
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

function(keel_torch_version dir out)
  foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h torch/version.h)
    if(EXISTS "${dir}/include/${header}")
      file(STRINGS "${dir}/include/${header}" lines REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
      string(REGEX REPLACE "[^;]* ([0-9]+)" "\\1" numbers "${lines}")
      string(REPLACE ";" "." version "${numbers}")
      if(version MATCHES "^[0-9]+\\.[0-9]+\\.[0-9]+$")
        set(${out} "${version}" PARENT_SCOPE)
        return()
      endif()
    endif()
  endforeach()
  set(${out} "" PARENT_SCOPE)
endfunction()

# Says what is wrong with a LibTorch directory, or nothing.
function(keel_check_torch dir out)
  keel_torch_version("${dir}" version)
  set(cure "Run tools/setup.sh, or pass -DKEEL_TORCH=/path/to/libtorch.")
  if(KEEL_TORCH_CURE)
    set(cure "${KEEL_TORCH_CURE}")  # of the installed package
  endif()
  set(problem "")
  if(NOT EXISTS "${dir}/lib/libtorch_cpu.so")
    set(problem "No LibTorch in '${dir}' (lib/libtorch_cpu.so is missing). ${cure}")
  elseif(version STREQUAL "")
    set(problem "LibTorch in '${dir}' has no readable version header. ${cure}")
  elseif(version VERSION_LESS KEEL_TORCH_MINIMUM)
    set(problem "LibTorch ${version} in '${dir}' is older than ${KEEL_TORCH_MINIMUM}. ${cure}")
  elseif(NOT EXISTS "${dir}/include/torch/csrc/distributed/c10d/ProcessGroupGloo.hpp")
    set(problem "LibTorch in '${dir}' was built without distributed (no c10d headers). ${cure}")
  else()
    file(STRINGS "${dir}/lib/libc10.so" new_abi REGEX "__cxx11" LIMIT_COUNT 1)
    if(NOT new_abi)
      set(problem "LibTorch ${version} in '${dir}' uses the old C++ ABI (_GLIBCXX_USE_CXX11_ABI=0), "
                  "which Debian's libraries do not. Take the 'cxx11-abi' download, or a wheel >= 2.7.")
      string(CONCAT problem ${problem})
    endif()
  endif()
  set(${out} "${problem}" PARENT_SCOPE)
  set(KEEL_TORCH_VERSION "${version}" PARENT_SCOPE)
endfunction()

function(keel_import_library target location)
  if(NOT TARGET ${target})
    get_filename_component(soname "${location}" NAME)
    add_library(${target} SHARED IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${location}"
                                               IMPORTED_SONAME "${soname}")
  endif()
endfunction()

function(keel_import_torch dir)
  if(TARGET keel_torch)
    return()
  endif()
  foreach(library c10 torch_cpu)
    keel_import_library(keel_lib_${library} "${dir}/lib/lib${library}.so")
  endforeach()
  find_package(Threads REQUIRED)
  add_library(keel_torch INTERFACE IMPORTED GLOBAL)
  target_include_directories(keel_torch SYSTEM INTERFACE
    "${dir}/include" "${dir}/include/torch/csrc/api/include")
  target_compile_definitions(keel_torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
  target_link_libraries(keel_torch INTERFACE keel_lib_torch_cpu keel_lib_c10 Threads::Threads)
  # The libraries that a CUDA build of LibTorch needs lie beside it and are found through its own run
  # path; the linker need not see them. An RPATH (not RUNPATH) also serves what is loaded later.
  target_link_options(keel_torch INTERFACE "LINKER:--allow-shlib-undefined"
                                           "LINKER:--disable-new-dtags")
endfunction()

# keel_cuda_headers: CUDA's and NCCL's headers, in the wheels beside torch, or where the caller has a
# toolkit. Their libraries are those that LibTorch loads; nothing is linked with them.
function(keel_import_cuda_headers dir)
  set(beside "${dir}/../nvidia")
  # crt/ is what a folder of CUDA headers most often lacks: torch's own wheels do not bring it.
  find_path(KEEL_CUDA_INCLUDE crt/host_defines.h
            HINTS "${beside}/cu13/include" "${beside}/cuda_runtime/include"
            PATHS /usr/local/cuda/include)
  find_path(KEEL_NCCL_INCLUDE nccl.h HINTS "${beside}/nccl/include" PATHS /usr/local/cuda/include)
  mark_as_advanced(KEEL_CUDA_INCLUDE KEEL_NCCL_INCLUDE)
  if(TARGET keel_cuda_headers OR NOT KEEL_CUDA_INCLUDE OR NOT KEEL_NCCL_INCLUDE)
    return()
  endif()
  # torch's wheels bring some of CUDA's headers only; whether they are enough, the compiler knows.
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_INCLUDES "${KEEL_CUDA_INCLUDE}" "${KEEL_NCCL_INCLUDE}")
  check_cxx_source_compiles("#include <cuda_runtime_api.h>\n#include <nccl.h>\nint main() {}"
                            KEEL_NCCL_HEADERS_COMPILE)
  if(NOT KEEL_NCCL_HEADERS_COMPILE)
    message(STATUS "No NCCL module: CUDA's headers in ${KEEL_CUDA_INCLUDE} are not complete "
                   "(pip install nvidia-cuda-crt nvidia-cuda-cccl)")
    return()
  endif()
  add_library(keel_cuda_headers INTERFACE IMPORTED GLOBAL)
  target_include_directories(keel_cuda_headers SYSTEM INTERFACE
    "${KEEL_CUDA_INCLUDE}" "${KEEL_NCCL_INCLUDE}")
endfunction()
