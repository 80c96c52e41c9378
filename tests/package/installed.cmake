# SPDX-License-Identifier: Apache-2.0
# Installs the build into an empty prefix, then configures, builds and runs a project that finds it
# there. Called by ctest with BUILD (the build folder), WORK (a scratch folder), CONSUMER, and the
# CXX and FLAGS of this build.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} -G Ninja -S ${CONSUMER} -B ${WORK}/build -Dmx_ROOT=${WORK}/prefix
  -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/consumer)

# The installed files must stand on their own.
file(GLOB_RECURSE texts ${WORK}/prefix/*.cmake ${WORK}/prefix/*.hpp)
foreach(text ${texts})
  file(READ ${text} content)
  foreach(tree ${BUILD} ${SOURCE}/)
    string(FIND "${content}" ${tree} at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${text} names ${tree}")
    endif()
  endforeach()
endforeach()
if(HAS_COMMAND)
  run(${WORK}/prefix/bin/mx version)
endif()
