# cmake -DIN=file -DOUT=file.cc -DHEADER=include -DNAMESPACE=a::b -DNAME=kName -P Embed.cmake: a text file as a
# std::string_view in a source file.
file(READ ${IN} text)
string(FIND "${text}" ")embed\"" found)
if(NOT found EQUAL -1)
  message(FATAL_ERROR "${IN} holds the end of the literal that it is put in")
endif()
file(WRITE ${OUT} "// Made from ${IN} by cmake/Embed.cmake.\n#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n
const std::string_view ${NAME} = R\"embed(${text})embed\";\n
}  // namespace ${NAMESPACE}\n")
