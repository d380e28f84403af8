# One GoogleTest executable <module>_test per folder tests/<module>/ (all *_test.cc below it), linked with the module's
# closure; tests/<module>/deps.txt may name further modules, one a line. tests/issues/ -> issues_test links everything.
# One ctest entry per executable (discovery would start each of them at every build), labelled with the module; tests
# whose suite name starts with "Long" run only under the label `long` (make test-long).

find_package(GTest REQUIRED)

function(penstock_add_test name)
  cmake_parse_arguments(arg "" "" "MODULES;SOURCES;LABELS" ${ARGN})
  set(present "")
  foreach(m ${arg_MODULES})
    if(m IN_LIST PENSTOCK_MODULES)
      list(APPEND present ${m})
    endif()
  endforeach()
  penstock_add_executable(${name} MODULES ${present} SOURCES ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE GTest::gtest GTest::gtest_main penstock_dependencies)
  target_compile_definitions(${name} PRIVATE PENSTOCK_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                                             PENSTOCK_BINARY_DIR="${CMAKE_BINARY_DIR}")
  get_property(torch TARGET ${name} PROPERTY PENSTOCK_USES_TORCH)
  if(torch)
    penstock_use_torch(${name})
  endif()

  set(environment "")
  if(PENSTOCK_SANITIZE STREQUAL "thread")
    list(APPEND environment "TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/tsan.supp:halt_on_error=0:exitcode=66"
                            OMP_NUM_THREADS=1)
  elseif(PENSTOCK_SANITIZE STREQUAL "address")
    list(APPEND environment "LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/lsan.supp"
                            UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 OMP_NUM_THREADS=1)
  endif()
  add_test(NAME ${name} COMMAND ${name} --gtest_filter=-Long* --gtest_brief=1)
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" ENVIRONMENT "${environment}"
                                          WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} TIMEOUT 900)
  set(has_long OFF)
  foreach(source ${arg_SOURCES})
    file(STRINGS ${source} long REGEX "^TEST(_[FP])?\\(Long" LIMIT_COUNT 1)
    if(long)
      set(has_long ON)
    endif()
  endforeach()
  if(has_long)
    add_test(NAME ${name}_long COMMAND ${name} --gtest_filter=Long* --gtest_brief=1)
    set_tests_properties(${name}_long PROPERTIES LABELS "long" ENVIRONMENT "${environment}"
                                                 WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} TIMEOUT 14400)
  endif()
endfunction()

foreach(m ${PENSTOCK_MODULES})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${m}/*.cc ${CMAKE_SOURCE_DIR}/tests/${m}/*.h)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(tests)
    set(modules ${m})
    set(deps ${CMAKE_SOURCE_DIR}/tests/${m}/deps.txt)
    if(EXISTS ${deps})
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${deps})
      file(STRINGS ${deps} extra REGEX "^[a-z]+$")
      list(APPEND modules ${extra})
    endif()
    penstock_add_test(${m}_test MODULES ${modules} SOURCES ${sources} LABELS ${m})
  endif()
endforeach()

if(PENSTOCK_WITH_TORCH)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/issues/*.cc)
  if(sources)
    penstock_add_test(issues_test MODULES ${PENSTOCK_MODULES} SOURCES ${sources} LABELS issues)
  endif()
endif()
