# SPDX-License-Identifier: Apache-2.0
# Configures a project that adds mx as a subdirectory: every target that mx::mx leads to must be
# visible there. Compiling one source of it shows that the headers are found.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} -G Ninja -S ${CONSUMER} -B ${WORK} -DMX_SUBDIRECTORY=${SOURCE}
  -DCMAKE_CXX_COMPILER=${CXX})
run(${CMAKE_COMMAND} --build ${WORK} --target CMakeFiles/consumer.dir/main.cpp.o)
