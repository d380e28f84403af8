# Language level, warnings, sanitizers, compiler cache. The same flags for every target: they share one precompiled
# header, and the bits of our arithmetic must not depend on where a file lives.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# No debug information in a release: it costs a quarter of the compile time of files that include libtorch. The
# sanitizer builds have line numbers.
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")

# No contraction of a*b+c into fma: numerics R2, R11. -pthread: ranks are threads.
add_compile_options(-Wall -Wextra -pthread -ffp-contract=off)
add_link_options(-pthread)
if(PENSTOCK_WERROR)  # on by default with the reference compiler only: others warn about other things
  add_compile_options(-Werror)
endif()

if(PENSTOCK_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=address,undefined)
elseif(PENSTOCK_SANITIZE STREQUAL "thread")
  # -Wno-tsan: gcc warns about atomic_thread_fence, which TSan does not model; none of ours relies on it alone.
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer -Wno-tsan -g1)
  add_link_options(-fsanitize=thread)
elseif(NOT PENSTOCK_SANITIZE STREQUAL "none")
  message(FATAL_ERROR "PENSTOCK_SANITIZE=${PENSTOCK_SANITIZE}: use none, address or thread")
endif()

# Without -fpch-preprocess and these sloppiness settings ccache calls every file that uses the precompiled header
# uncacheable. The inode cache keeps it from hashing that header (half a gigabyte) for every file.
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_INODECACHE=1 CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()

# Files named *_kernel.cc hold our own element-wise loops. Contraction stays off there too.
set(PENSTOCK_KERNEL_FLAGS -O3 -march=native -fno-math-errno -fno-trapping-math)
