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
foreach(needed TOMLPLUSPLUS_INCLUDE XXHASH_INCLUDE XXHASH_LIBRARY)
  if(NOT ${needed})
    message(FATAL_ERROR "${needed} was not found; run `make setup`, which installs what is missing")
  endif()
endforeach()

add_library(penstock_dependencies INTERFACE)
target_include_directories(penstock_dependencies SYSTEM INTERFACE ${TOMLPLUSPLUS_INCLUDE} ${XXHASH_INCLUDE})
target_link_libraries(penstock_dependencies INTERFACE fmt::fmt spdlog::spdlog nlohmann_json::nlohmann_json CLI11::CLI11
                                                      ${XXHASH_LIBRARY})
