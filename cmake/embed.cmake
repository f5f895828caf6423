# Writes a C++ source that contains the bytes of some files. sinew_embed() (cmake/SinewRooms.cmake) runs it as a script:
#   cmake -DOUTPUT=OUT.cpp -DHEADER=HEADER -DNAMESPACE=NS -DFILES="FILE=NAME;..." -P embed.cmake
# HEADER declares `extern const std::string_view NAME` in NS for each file.
set(text "// Made by cmake/embed.cmake.\n#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n")
foreach(entry IN LISTS FILES)
  string(REGEX MATCH "^(.*)=([A-Za-z0-9_]+)$" matched "${entry}")
  set(file "${CMAKE_MATCH_1}")
  set(name "${CMAKE_MATCH_2}")
  file(READ "${file}" bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND text "static constexpr char ${name}Bytes[] = {${bytes}};\n")
  string(APPEND text "const std::string_view ${name}(${name}Bytes, sizeof ${name}Bytes);\n")
endforeach()
string(APPEND text "}  // namespace ${NAMESPACE}\n")
file(WRITE "${OUTPUT}" "${text}")
