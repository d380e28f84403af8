# One GoogleTest executable <module>_test per folder tests/<module>/ (all *_test.cc below it), linked with the module's
# closure; tests/<module>/deps.txt may name further modules, one a line. tests/issues/ -> issues_test links everything.
# One ctest entry per executable (discovery would start each of them at every build), labelled with the module; tests
# whose suite name starts with "Long" run only under the label `long` (make test-long).

find_package(GTest REQUIRED)
penstock_add_pch(penstock_pch_test LIBRARIES penstock_dependencies GTest::gtest
                 HEADERS <gtest/gtest.h> <fmt/format.h> <nlohmann/json.hpp> <algorithm> <functional> <map> <memory>
                         <optional> <set> <string> <vector>)

add_library(penstock_test_paths OBJECT ${CMAKE_SOURCE_DIR}/tests/paths.cc)
target_include_directories(penstock_test_paths PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_compile_definitions(penstock_test_paths PRIVATE PENSTOCK_SOURCE_DIR="${CMAKE_SOURCE_DIR}")

# A macro: uses `launcher` and `environment` of the caller.
macro(penstock_add_ctest executable test filter labels timeout)
  add_test(NAME ${test} COMMAND ${launcher} $<TARGET_FILE:${executable}> --gtest_filter=${filter} --gtest_brief=1
                                --gtest_output=xml:${CMAKE_BINARY_DIR}/test-results/${test}.xml)
  set_tests_properties(${test} PROPERTIES LABELS "${labels}" ENVIRONMENT "${environment}" TIMEOUT ${timeout}
                                          WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
endmacro()

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
  target_link_libraries(${name} PRIVATE penstock_test_paths)
  get_property(torch TARGET ${name} PROPERTY PENSTOCK_USES_TORCH)
  if(torch)
    penstock_use_torch(${name})
  else()
    penstock_reuse_pch(${name} penstock_pch_test)
  endif()

  set(environment ${arg_ENVIRONMENT})
  set(launcher "")
  if(PENSTOCK_SANITIZE STREQUAL "thread")
    list(APPEND environment "TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/tsan.supp:exitcode=66:second_deadlock_stack=1"
                            OMP_NUM_THREADS=1)
    # Kernels that randomise 32 bits of mmap addresses leave no room for the shadow of gcc 12's TSan.
    find_program(SETARCH setarch)
    if(SETARCH)
      set(launcher ${SETARCH} -R)
    endif()
  elseif(PENSTOCK_SANITIZE STREQUAL "address")
    list(APPEND environment "LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/lsan.supp" OMP_NUM_THREADS=1
                            UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1)
  endif()
  penstock_add_ctest(${name} ${name} "-Long*" "${arg_LABELS}" 900)
  set(has_long OFF)
  foreach(source ${arg_SOURCES})
    file(STRINGS ${source} long REGEX "^TEST(_[FP])?\\(Long" LIMIT_COUNT 1)
    if(long)
      set(has_long ON)
    endif()
  endforeach()
  if(has_long)
    penstock_add_ctest(${name} ${name}_long "Long*" long 14400)
  endif()
endfunction()

foreach(m ${PENSTOCK_MODULES})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${m}/*.cc ${CMAKE_SOURCE_DIR}/tests/${m}/*.h)
  if(NOT PENSTOCK_WITH_TORCH)
    list(FILTER sources EXCLUDE REGEX "/tests/${m}/run/")  # of src/<module>/run/
  endif()
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

# Cases that the planning half answers alone are in tests/issues/plan/ and run without libtorch too.
set(folder ${CMAKE_SOURCE_DIR}/tests/issues)
if(NOT PENSTOCK_WITH_TORCH)
  set(folder ${folder}/plan)
endif()
file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cc)
penstock_add_test(issues_test MODULES ${PENSTOCK_MODULES} SOURCES ${sources} LABELS issues)

# The program itself is what some tests start (exit codes, kill and resume).
if(TARGET penstock)
  foreach(t session_test cli_test issues_test)
    if(TARGET ${t})
      add_dependencies(${t} penstock)
    endif()
  endforeach()
endif()

find_program(PYTHON3 python3 REQUIRED)
add_test(NAME include_table COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/scripts/check_includes.py ${CMAKE_SOURCE_DIR})
add_test(NAME hygiene COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/scripts/check_hygiene.py ${CMAKE_SOURCE_DIR})
add_test(NAME checks_of_the_checks COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tests/scripts/checks_test.py)
set_tests_properties(include_table hygiene checks_of_the_checks PROPERTIES LABELS project)

# The program as a whole: scripts that start it.
if(TARGET penstock AND PENSTOCK_WITH_TORCH AND PENSTOCK_SANITIZE STREQUAL "none")
  add_test(NAME kill_and_resume COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tests/program/kill_and_resume.py $<TARGET_FILE:penstock>)
  add_test(NAME bad_input COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tests/program/bad_input.py $<TARGET_FILE:penstock>)
  set_tests_properties(kill_and_resume bad_input PROPERTIES LABELS program TIMEOUT 900)
endif()
# Weights of the reference library in and out; skipped (exit status 77) where it is not installed.
if(TARGET penstock AND PENSTOCK_WITH_TORCH AND PENSTOCK_SANITIZE STREQUAL "none")
  penstock_add_executable(logits_probe MODULES session SOURCES ${CMAKE_SOURCE_DIR}/tests/program/logits_probe.cc)
  target_include_directories(logits_probe PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(logits_probe PRIVATE penstock_dependencies)
  penstock_use_torch(logits_probe)
  add_test(NAME huggingface COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tests/program/huggingface.py $<TARGET_FILE:penstock>
                                    $<TARGET_FILE:logits_probe>)
  add_test(NAME pretrained COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tests/program/pretrained.py $<TARGET_FILE:penstock>
                                   $<TARGET_FILE:logits_probe>)
  set_tests_properties(huggingface pretrained PROPERTIES LABELS program TIMEOUT 900 SKIP_RETURN_CODE 77)
endif()
# Ranks as processes; skipped (exit status 77) where there is no MPI.
if(PENSTOCK_WITH_TORCH AND PENSTOCK_SANITIZE STREQUAL "none")
  penstock_add_executable(mpi_contract MODULES comm SOURCES ${CMAKE_SOURCE_DIR}/tests/program/mpi_contract.cc)
  target_include_directories(mpi_contract PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(mpi_contract PRIVATE penstock_dependencies)
  penstock_use_torch(mpi_contract)
  add_test(NAME mpi COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tests/program/mpi.py $<TARGET_FILE:mpi_contract>
                            --results ${CMAKE_BINARY_DIR}/test-results/mpi.xml)
  set_tests_properties(mpi PROPERTIES LABELS program TIMEOUT 600 SKIP_RETURN_CODE 77)
endif()
if(TARGET penstock AND PENSTOCK_SANITIZE STREQUAL "none")
  add_test(NAME tokenize_resume COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tests/program/tokenize_resume.py $<TARGET_FILE:penstock>)
  set(without_torch "")
  if(NOT PENSTOCK_WITH_TORCH)
    set(without_torch --without-torch)
  endif()
  add_test(NAME train_tokenizer COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tests/program/train_tokenizer.py $<TARGET_FILE:penstock> ${without_torch})
  set_tests_properties(tokenize_resume train_tokenizer PROPERTIES LABELS program TIMEOUT 300)
  if(PENSTOCK_WITH_TORCH)
    add_test(NAME train_on_tokens COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tests/program/train_on_tokens.py $<TARGET_FILE:penstock>)
    set_tests_properties(train_on_tokens PROPERTIES LABELS program TIMEOUT 300)
  endif()
endif()

# report.html in a browser; skipped (exit status 77) where there is none.
penstock_add_executable(report_sample MODULES report simulate SOURCES ${CMAKE_SOURCE_DIR}/tests/program/report_sample.cc)
target_include_directories(report_sample PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(report_sample PRIVATE penstock_dependencies)
if(PENSTOCK_SANITIZE STREQUAL "none")
  add_test(NAME html_report COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tests/program/html_report.py $<TARGET_FILE:report_sample>
                                    --results ${CMAKE_BINARY_DIR}/test-results/html_report.xml)
  set_tests_properties(html_report PROPERTIES LABELS program TIMEOUT 300 SKIP_RETURN_CODE 77)
endif()
