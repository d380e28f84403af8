# bench/<name>_bench.cc -> build/<name>_bench, linked with everything and Google Benchmark. Not part of the tests: figures that
# depend on the machine are judged there, by their own exit status.

find_package(benchmark QUIET)
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/*_bench.cc)
if(benchmark_FOUND AND PENSTOCK_WITH_TORCH)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    penstock_add_executable(${name} MODULES ${PENSTOCK_MODULES} SOURCES ${source})
    target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(${name} PRIVATE benchmark::benchmark)
    penstock_use_torch(${name})
    set_property(TARGET ${name} PROPERTY EXCLUDE_FROM_ALL ON)
    list(APPEND benches ${name})
  endforeach()
  if(benches)
    add_custom_target(benches DEPENDS ${benches})
  endif()
endif()
