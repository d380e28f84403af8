# The files clusters/*.toml as a source of module cluster, so that the program finds them from anywhere.
# As a script (cmake -DOUTPUT=... -DFILES="a.toml|b.toml" -P Clusters.cmake) it writes that source.

if(CMAKE_SCRIPT_MODE_FILE)
  string(REPLACE "|" ";" files "${FILES}")
  set(entries "")
  foreach(file ${files})
    get_filename_component(name ${file} NAME_WLE)
    file(READ ${file} text)
    string(APPEND entries "    {\"${name}\", R\"~~~~(${text})~~~~\"},\n")
  endforeach()
  file(WRITE ${OUTPUT} "// Written by cmake/Clusters.cmake.\n#include \"cluster/library/shipped.h\"\n\n"
                       "namespace penstock::cluster {\n\nstd::span<const ShippedFile> ShippedFiles() {\n"
                       "  static constexpr ShippedFile kFiles[] = {\n${entries}  };\n  return kFiles;\n}\n\n"
                       "}  // namespace penstock::cluster\n")
  return()
endif()

file(GLOB cluster_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/clusters/*.toml)  # sorted by name
list(JOIN cluster_files "|" joined)
set(generated ${CMAKE_BINARY_DIR}/generated/shipped_clusters.cc)
add_custom_command(OUTPUT ${generated}
                   COMMAND ${CMAKE_COMMAND} -DOUTPUT=${generated} "-DFILES=${joined}" -P ${CMAKE_CURRENT_LIST_FILE}
                   DEPENDS ${cluster_files} ${CMAKE_CURRENT_LIST_FILE} VERBATIM COMMENT "Embedding clusters/*.toml")
target_sources(penstock_cluster PRIVATE ${generated})
set_source_files_properties(${generated} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
