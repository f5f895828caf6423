# A room is a folder under src/. Its *.cpp belong to one of the two halves. Its *_test.cpp make one test program,
# <room>_test, its *_bench.cpp one program <room>_bench, and each *_fuzz.cpp makes a libFuzzer program.

set(SINEW_WARNINGS -Wall -Wextra $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local> -Wnon-virtual-dtor -Woverloaded-virtual
  # A designated initialiser may leave out members, because members have default initialisers.
  -Wno-missing-field-initializers
  $<$<CXX_COMPILER_ID:Clang>:-Wno-unknown-pragmas>  # clang does not know `#pragma GCC ivdep`
  -Werror=return-type $<$<BOOL:${SINEW_WERROR}>:-Werror>)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 believes that moving a short string reads beyond it (GCC bug 105651).
  list(APPEND SINEW_WARNINGS -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
endif()

# The headers of the plain half that take longest to parse. They are precompiled, so that the compiler parses them once
# and not once for each source.
set(SINEW_PLAIN_HEADERS <algorithm> <filesystem> <functional> <map> <memory> <nlohmann/json.hpp> <optional> <sstream>
  <string> <thread> <vector>)

# The compiler must not fuse multiplications and additions, because that would change the bits of a result.
set(SINEW_NUMERICS -ffp-contract=off)

# Templates in headers (libtorch, nlohmann/json, the standard library) take most of a source's compile time, even with a
# precompiled header. So a release build compiles eight sources of a room as one, in a third of the time. Names in the
# anonymous namespaces of one room must therefore differ. The other presets compile each source by itself.
function(sinew_compile_together target)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # One file includes all sources of a group. The compiler takes them for headers and would warn.
  target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  foreach(source IN LISTS ARGN)
    get_filename_component(room ${source} DIRECTORY)
    get_filename_component(room ${room} NAME)
    if(NOT DEFINED number_in_${room})
      set(number_in_${room} 0)
    endif()
    math(EXPR group "${number_in_${room}} / 8")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${room}_${group})
    math(EXPR number_in_${room} "${number_in_${room}} + 1")
  endforeach()
endfunction()

function(sinew_rooms library half)
  add_library(${library} STATIC)
  target_include_directories(${library} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_compile_options(${library} PRIVATE ${SINEW_WARNINGS} ${SINEW_NUMERICS})
  if(half STREQUAL PLAIN)
    target_precompile_headers(${library} PRIVATE ${SINEW_PLAIN_HEADERS})
  endif()
  foreach(room IN LISTS ARGN)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${room}/*.cpp)
    set(tests ${sources})
    set(benches ${sources})
    set(fuzzers ${sources})
    list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
    list(FILTER benches INCLUDE REGEX "_bench\\.cpp$")
    list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cpp$")
    list(FILTER sources EXCLUDE REGEX "(_(test|bench|fuzz)|/main)\\.cpp$")
    target_sources(${library} PRIVATE ${sources})
    list(APPEND library_sources ${sources})
    if(tests)
      sinew_test(${room}_test ${library} ${half} ${tests})
    endif()
    if(benches AND SINEW_TESTS AND NOT SINEW_FUZZ AND NOT SINEW_SANITIZE)
      find_package(benchmark REQUIRED)
      add_executable(${room}_bench ${benches})
      target_link_libraries(${room}_bench PRIVATE ${library} benchmark::benchmark_main)
    endif()
    if(SINEW_FUZZ)
      foreach(fuzzer IN LISTS fuzzers)
        get_filename_component(name ${fuzzer} NAME_WE)
        add_executable(${name} ${fuzzer})
        target_link_libraries(${name} PRIVATE ${library})
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
      endforeach()
    endif()
  endforeach()
  if(NOT library STREQUAL sinew_cli)  # the sources of the commands use the same names as each other
    sinew_compile_together(${library} ${library_sources})
  endif()
endfunction()

# Adds files to a library as constants: for each argument FILE=NAME, `header` declares a std::string_view NAME in
# `namespace`. FILE is relative to src/, or absolute.
function(sinew_embed library header namespace)
  string(REPLACE "." "_" output "${header}")
  set(output ${CMAKE_BINARY_DIR}/embedded/${output}.cpp)
  foreach(entry IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH entry BASE_DIRECTORY ${CMAKE_SOURCE_DIR}/src)
    string(REGEX REPLACE "=.*" "" file "${entry}")
    list(APPEND files ${file})
    list(APPEND entries ${entry})
  endforeach()
  set(script ${CMAKE_SOURCE_DIR}/cmake/embed.cmake)
  add_custom_command(OUTPUT ${output} DEPENDS ${files} ${script} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DHEADER=${header} -DNAMESPACE=${namespace} "-DFILES=${entries}"
            -P ${script})
  target_sources(${library} PRIVATE ${output})
endfunction()

# Adds a GoogleTest program. Its tests are registered as <program>.<Suite>.<Test> with the label core.
function(sinew_test name library half)
  if(SINEW_FUZZ OR NOT SINEW_TESTS)
    return()
  endif()
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE ${library} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${SINEW_WARNINGS} ${SINEW_NUMERICS})
  if(half STREQUAL TENSOR)  # the precompiled header is valid only without further definitions
    target_precompile_headers(${name} REUSE_FROM ${library})
  else()
    # The code under test is in the library, so the test itself needs no optimisation, which took most of its compile
    # time.
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-Og>)
    target_compile_definitions(${name} PRIVATE SINEW_SOURCE_DIR="${CMAKE_SOURCE_DIR}" SINEW_BINARY_DIR="${CMAKE_BINARY_DIR}")
    # The first test program makes the precompiled header that all others use.
    get_property(first GLOBAL PROPERTY SINEW_FIRST_PLAIN_TEST)
    if(first)
      target_precompile_headers(${name} REUSE_FROM ${first})
    else()
      target_precompile_headers(${name} PRIVATE ${SINEW_PLAIN_HEADERS} <gmock/gmock.h> <gtest/gtest.h>)
      set_property(GLOBAL PROPERTY SINEW_FIRST_PLAIN_TEST ${name})
    endif()
  endif()
  sinew_compile_together(${name} ${ARGN})
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
  set_tests_properties(${name} PROPERTIES LABELS core TIMEOUT 600)
endfunction()

function(sinew_program name folder library half)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_(test|bench|fuzz)\\.cpp$")
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${library})
  target_compile_options(${name} PRIVATE ${SINEW_WARNINGS} ${SINEW_NUMERICS})
  if(half STREQUAL TENSOR)
    sinew_compile_together(${name} ${sources})
  endif()
  target_precompile_headers(${name} REUSE_FROM ${library})
endfunction()
