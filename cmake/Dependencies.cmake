# What comes from the system (scripts/setup.sh installs it; docs/decisions.md says why each). One interface target
# holds them: all are small, and header-only or shared.

find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Threads REQUIRED)

# toml++ is header-only; Ubuntu 22.04 has no package, there setup.sh fetches a pinned release into the cache.
find_path(TOMLPLUSPLUS_INCLUDE toml++/toml.h
          HINTS $ENV{PENSTOCK_CACHE}/tomlplusplus/include $ENV{HOME}/.cache/penstock/tomlplusplus/include)
find_path(XXHASH_INCLUDE xxhash.h)
find_library(XXHASH_LIBRARY xxhash)
find_path(PCRE2_INCLUDE pcre2.h)
find_library(PCRE2_LIBRARY pcre2-8)
find_path(UTF8PROC_INCLUDE utf8proc.h)
find_library(UTF8PROC_LIBRARY utf8proc)
find_path(SENTENCEPIECE_INCLUDE sentencepiece_processor.h)
find_library(SENTENCEPIECE_LIBRARY sentencepiece)
find_package(PNG REQUIRED)
find_package(ZLIB REQUIRED)
foreach(needed TOMLPLUSPLUS_INCLUDE XXHASH_INCLUDE XXHASH_LIBRARY PCRE2_INCLUDE PCRE2_LIBRARY UTF8PROC_INCLUDE
        UTF8PROC_LIBRARY SENTENCEPIECE_INCLUDE SENTENCEPIECE_LIBRARY)
  if(NOT ${needed})
    message(FATAL_ERROR "${needed} was not found; run `make setup`, which installs what is missing")
  endif()
endforeach()

add_library(penstock_dependencies INTERFACE)
target_include_directories(penstock_dependencies SYSTEM INTERFACE ${TOMLPLUSPLUS_INCLUDE} ${XXHASH_INCLUDE})
target_link_libraries(penstock_dependencies INTERFACE fmt::fmt spdlog::spdlog nlohmann_json::nlohmann_json CLI11::CLI11
                                                      ${XXHASH_LIBRARY} ${PCRE2_LIBRARY} ${UTF8PROC_LIBRARY}
                                                      ${SENTENCEPIECE_LIBRARY} PNG::PNG ZLIB::ZLIB)

# Precompiled headers. They are given to the compiler, not to the sources: every file still includes what it uses, and
# -DPENSTOCK_PCH=OFF (preset plan) shows where one does not.
option(PENSTOCK_PCH "Precompile headers" ON)

# penstock_add_pch(target LIBRARIES l... HEADERS h...): an OBJECT library whose header others reuse.
function(penstock_add_pch target)
  cmake_parse_arguments(arg "" "" "LIBRARIES;HEADERS" ${ARGN})
  file(WRITE ${CMAKE_BINARY_DIR}/${target}.cc "// Exists to carry the precompiled header.\n")
  add_library(${target} OBJECT ${CMAKE_BINARY_DIR}/${target}.cc)
  target_link_libraries(${target} PUBLIC ${arg_LIBRARIES})
  if(PENSTOCK_PCH)
    target_precompile_headers(${target} PRIVATE ${arg_HEADERS})
  endif()
endfunction()
function(penstock_reuse_pch target pch)
  if(PENSTOCK_PCH)
    target_precompile_headers(${target} REUSE_FROM ${pch})
  endif()
endfunction()

# Of everything that does without libtorch. Parsing these takes 2 to 4 s a file.
penstock_add_pch(penstock_pch_plain LIBRARIES penstock_dependencies
                 HEADERS <fmt/format.h> <nlohmann/json.hpp> <algorithm> <functional> <map> <memory> <optional> <set>
                         <string> <vector>)
