# The files exam/*.toml as a source of module session, so that `penstock exam` finds them from anywhere.
# As a script (cmake -DOUTPUT=... -DFILES="a.toml|b.toml" -P Exam.cmake) it writes that source.

if(CMAKE_SCRIPT_MODE_FILE)
  string(REPLACE "|" ";" files "${FILES}")
  set(entries "")
  foreach(file ${files})
    get_filename_component(name ${file} NAME)
    file(READ ${file} text)
    # Compilers need not take literals of more than 64 KiB: pieces at every table.
    string(REPLACE "\n[[" "\n)~~~~\" R\"~~~~([[" text "${text}")
    string(APPEND entries "    {\"exam/${name}\", R\"~~~~(${text})~~~~\"},\n")
  endforeach()
  file(WRITE ${OUTPUT} "// Written by cmake/Exam.cmake.\n#include \"session/exam/shipped.h\"\n\n"
                       "namespace penstock::session {\n\nstd::span<const ShippedExamFile> ShippedExams() {\n"
                       "  static constexpr ShippedExamFile kFiles[] = {\n${entries}  };\n  return kFiles;\n}\n\n"
                       "}  // namespace penstock::session\n")
  return()
endif()

file(GLOB exam_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/exam/*.toml)  # sorted by name
list(JOIN exam_files "|" joined)
set(generated ${CMAKE_BINARY_DIR}/generated/shipped_exams.cc)
add_custom_command(OUTPUT ${generated}
                   COMMAND ${CMAKE_COMMAND} -DOUTPUT=${generated} "-DFILES=${joined}" -P ${CMAKE_CURRENT_LIST_FILE}
                   DEPENDS ${exam_files} ${CMAKE_CURRENT_LIST_FILE} VERBATIM COMMENT "Embedding exam/*.toml")
target_sources(penstock_session PRIVATE ${generated})
set_source_files_properties(${generated} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
