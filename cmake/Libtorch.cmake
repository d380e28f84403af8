# libtorch without find_package(Torch): that stops with an error for a CUDA build when no CUDA toolkit is installed, and
# gives nothing that a direct link does not. LIBTORCH is a folder that holds include/ and lib/: from the cache variable,
# the environment, the file that scripts/setup.sh leaves, or an importable torch.

set(LIBTORCH "$ENV{LIBTORCH}" CACHE PATH "Folder of libtorch (holds include/ and lib/)")
if(NOT LIBTORCH)
  execute_process(COMMAND bash ${CMAKE_SOURCE_DIR}/scripts/find_libtorch.sh OUTPUT_VARIABLE found
                  OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(NOT failed)
    set(LIBTORCH ${found} CACHE PATH "Folder of libtorch (holds include/ and lib/)" FORCE)
  endif()
endif()
if(NOT EXISTS ${LIBTORCH}/include/torch/csrc/api/include/torch/version.h AND NOT EXISTS ${LIBTORCH}/include/torch/version.h)
  message(FATAL_ERROR "There is no libtorch at LIBTORCH='${LIBTORCH}'. Run `make setup` (installs torch 2.13.0 into a cached "
                      "virtual environment), or set LIBTORCH to a folder that holds include/ and lib/, or configure "
                      "with -DPENSTOCK_WITH_TORCH=OFF for the planning half alone.")
endif()

set(version_header ${LIBTORCH}/include/torch/csrc/api/include/torch/version.h)
if(NOT EXISTS ${version_header})
  set(version_header ${LIBTORCH}/include/torch/version.h)
endif()
set(versions "")
foreach(h ${LIBTORCH}/include/torch/version.h ${LIBTORCH}/include/torch/headeronly/version.h
        ${LIBTORCH}/include/torch/csrc/api/include/torch/version.h)
  if(EXISTS ${h})
    file(STRINGS ${h} lines REGEX "#define TORCH_VERSION_(MAJOR|MINOR) ")
    list(APPEND versions ${lines})
  endif()
endforeach()
string(REGEX MATCH "TORCH_VERSION_MAJOR ([0-9]+)" _ "${versions}")
set(LIBTORCH_MAJOR ${CMAKE_MATCH_1})
string(REGEX MATCH "TORCH_VERSION_MINOR ([0-9]+)" _ "${versions}")
set(LIBTORCH_MINOR ${CMAKE_MATCH_1})
if("${LIBTORCH_MAJOR}.${LIBTORCH_MINOR}" VERSION_LESS 2.9)
  message(FATAL_ERROR "libtorch at ${LIBTORCH} is ${LIBTORCH_MAJOR}.${LIBTORCH_MINOR}; Penstock needs 2.9 or later")
endif()
message(STATUS "libtorch ${LIBTORCH_MAJOR}.${LIBTORCH_MINOR}: ${LIBTORCH}")

# A CUDA build of libtorch_cpu.so itself needs libcudart and libcupti (its profiler). They come as two small wheels that
# lie beside torch; without a driver or toolkit everything on the CPU works once their folders are on the run path.
file(GLOB vendor_libs ${LIBTORCH}/../nvidia/*/lib)
execute_process(COMMAND ${CMAKE_COMMAND} -E env "LD_LIBRARY_PATH=$ENV{LD_LIBRARY_PATH}" ldd ${LIBTORCH}/lib/libtorch_cpu.so
                OUTPUT_VARIABLE ldd_output ERROR_QUIET)
string(REGEX MATCHALL "[^ \t\n]+ => not found" missing "${ldd_output}")
set(unresolved "")
foreach(entry ${missing})
  string(REPLACE " => not found" "" library ${entry})
  set(here "")
  foreach(folder ${vendor_libs})
    if(EXISTS ${folder}/${library})
      set(here ${folder})
    endif()
  endforeach()
  if(NOT here)
    list(APPEND unresolved ${library})
  endif()
endforeach()
if(unresolved)
  list(JOIN unresolved ", " unresolved)
  message(FATAL_ERROR
    "This libtorch is a CUDA build and ${unresolved} is not on this machine. Either install the runtime wheels into the same "
    "environment (pip install nvidia-cuda-runtime-cu12 nvidia-cuda-cupti-cu12; tens of megabytes, no driver or toolkit "
    "needed; -cu13 names have no suffix), or point LIBTORCH at a CPU build.")
endif()

add_library(penstock_libtorch INTERFACE)
# -idirafter: the wheel carries copies of other libraries' headers (fmt 12 among them); the system's, which we link, come
# first.
target_compile_options(penstock_libtorch INTERFACE "SHELL:-idirafter ${LIBTORCH}/include"
                                                   "SHELL:-idirafter ${LIBTORCH}/include/torch/csrc/api/include")
# libtorch.so is an empty stub; these two are what we call.
target_link_libraries(penstock_libtorch INTERFACE ${LIBTORCH}/lib/libtorch_cpu.so ${LIBTORCH}/lib/libc10.so)
target_link_options(penstock_libtorch INTERFACE -Wl,-rpath,${LIBTORCH}/lib -Wl,--allow-shlib-undefined)
foreach(folder ${vendor_libs})
  target_link_options(penstock_libtorch INTERFACE -Wl,-rpath,${folder})
endforeach()

# -O1 where libtorch is used: this code dispatches, the arithmetic is libtorch's or in *_kernel.cc (-O3), and -O2 more
# than doubles the time to compile a file that includes libtorch's headers (docs/decisions.md).
target_compile_options(penstock_libtorch INTERFACE $<$<CONFIG:Release>:-O1>)
# Every torch target reuses this header, so all are compiled with the same flags. It is large (about 400 MB): loading it
# takes 3 s of the 6 that a file takes. Autograd's headers stay outside: custom_function.h instantiates templates that
# cost every user of the header 2 s, and few files need it.
penstock_add_pch(penstock_pch LIBRARIES penstock_libtorch penstock_dependencies
                 HEADERS <ATen/ATen.h> <ATen/Parallel.h> <fmt/format.h>)
