# Files of a folder as a source of a module, so that the program finds them from anywhere.
#
#   penstock_embed_folder(cluster clusters cluster/library/shipped.h penstock::cluster ShippedFiles)
#
# Every clusters/*.toml becomes a base ShippedFile of what ShippedFiles() lists, by path ascending. As a script
# (cmake -DOUTPUT=... -DFILES="a.toml|b.toml" ... -P EmbedFolder.cmake) this file writes that source.

if(CMAKE_SCRIPT_MODE_FILE)
  string(REPLACE "|" ";" files "${FILES}")
  set(entries "")
  foreach(file ${files})
    get_filename_component(name ${file} NAME)
    file(READ ${file} text)
    string(FIND "${text}" ")~~~~\"" found)
    if(NOT found EQUAL -1)
      message(FATAL_ERROR "${file} holds the end of the literal that it is put in")
    endif()
    # Compilers need not take literals of more than 64 KiB: pieces at every table.
    string(REPLACE "\n[[" "\n)~~~~\" R\"~~~~([[" text "${text}")
    string(APPEND entries "    {\"${FOLDER}/${name}\", R\"~~~~(${text})~~~~\"},\n")
  endforeach()
  file(WRITE ${OUTPUT} "// Written by cmake/EmbedFolder.cmake.\n#include \"${HEADER}\"\n\n"
                       "namespace ${NAMESPACE} {\n\nstd::span<const ShippedFile> ${FUNCTION}() {\n"
                       "  static constexpr ShippedFile kFiles[] = {\n${entries}  };\n  return kFiles;\n}\n\n"
                       "}  // namespace ${NAMESPACE}\n")
  return()
endif()

function(penstock_embed_folder module folder header namespace function)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.toml)  # sorted by name
  list(JOIN files "|" joined)
  set(generated ${CMAKE_BINARY_DIR}/generated/shipped_${folder}.cc)
  set(script ${CMAKE_SOURCE_DIR}/cmake/EmbedFolder.cmake)
  add_custom_command(OUTPUT ${generated}
                     COMMAND ${CMAKE_COMMAND} -DOUTPUT=${generated} "-DFILES=${joined}" -DFOLDER=${folder}
                             -DHEADER=${header} -DNAMESPACE=${namespace} -DFUNCTION=${function} -P ${script}
                     DEPENDS ${files} ${script} VERBATIM COMMENT "Embedding ${folder}/*.toml")
  target_sources(penstock_${module} PRIVATE ${generated})
  set_source_files_properties(${generated} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
endfunction()

penstock_embed_folder(cluster clusters cluster/library/shipped.h penstock::cluster ShippedFiles)
penstock_embed_folder(session exam session/exam/shipped.h penstock::session ShippedExams)
