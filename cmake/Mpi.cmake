# MPI, when there is one: PENSTOCK_WITH_MPI = AUTO (use it when found), ON (fail without), OFF. Its C interface alone is
# used, from C++.

set(PENSTOCK_WITH_MPI AUTO CACHE STRING "Ranks as processes over MPI: AUTO, ON or OFF")
set_property(CACHE PENSTOCK_WITH_MPI PROPERTY STRINGS AUTO ON OFF)
set(PENSTOCK_HAS_MPI OFF)
if(NOT PENSTOCK_WITH_MPI STREQUAL "OFF")
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS CXX)
  list(FILTER MPI_CXX_LIBRARIES EXCLUDE REGEX "mpi_cxx")  # the C++ interface, which MPI itself dropped
  if(MPI_CXX_FOUND)
    set(PENSTOCK_HAS_MPI ON)
    message(STATUS "MPI ${MPI_CXX_VERSION}: ${MPI_CXX_LIBRARIES}")
  elseif(PENSTOCK_WITH_MPI STREQUAL "ON")
    message(FATAL_ERROR "PENSTOCK_WITH_MPI=ON, but there is no MPI. Run `make setup`, or install libopenmpi-dev and "
                        "openmpi-bin (or another MPI), or name its compiler with -DMPI_CXX_COMPILER=...")
  else()
    message(STATUS "MPI: none found; ranks are threads (make setup installs one)")
  endif()
endif()

# Called on the module comm once it is there.
function(penstock_use_mpi target)
  target_compile_definitions(${target} PRIVATE PENSTOCK_WITH_MPI=$<BOOL:${PENSTOCK_HAS_MPI}>)
  if(PENSTOCK_HAS_MPI)
    # Not MPI::MPI_CXX, whose flags would make another precompiled header of it.
    target_include_directories(${target} SYSTEM PRIVATE ${MPI_CXX_INCLUDE_DIRS})
    target_compile_definitions(${target} PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
    target_link_libraries(${target} PUBLIC ${MPI_CXX_LIBRARIES})
  endif()
endfunction()
