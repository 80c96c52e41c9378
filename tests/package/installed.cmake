# SPDX-License-Identifier: Apache-2.0
# Installs the build into an empty prefix, then configures, builds and runs a project that finds it
# there, and examples/cpp. Called by ctest with BUILD (the build folder), WORK (a scratch folder), CONSUMER, and the
# CXX and FLAGS of this build.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
foreach(component core files)
  set(build ${WORK}/${component})
  run(${CMAKE_COMMAND} -G Ninja -S ${CONSUMER} -B ${build} -Dmx_ROOT=${WORK}/prefix
    -DMX_COMPONENT=${component} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${FLAGS})
  run(${CMAKE_COMMAND} --build ${build})
  execute_process(COMMAND ${build}/consumer WORKING_DIRECTORY ${build} OUTPUT_VARIABLE printed
    COMMAND_ERROR_IS_FATAL ANY)
  message(STATUS "${printed}")
endforeach()

set(examples ${WORK}/examples)
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/examples/cpp -B ${examples} -Dmx_ROOT=${WORK}/prefix
  -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${examples})

# The installed files must be usable without the source tree.
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
  # The consumer's figures are the command's.
  run(${WORK}/prefix/bin/mx analyze ${build}/two_floats.safetensors -r mxfp8:scale=floor --quiet
    --json ${WORK}/two_floats.json)
  file(READ ${WORK}/two_floats.json json)
  string(JSON rmse GET "${json}" results 0 rmse)
  string(JSON clamp_rate GET "${json}" results 0 clamp_rate)
  if(NOT printed MATCHES "norm.weight rmse ${rmse} clamp_rate ${clamp_rate}")
    message(FATAL_ERROR "mx analyze gives rmse ${rmse}, clamp_rate ${clamp_rate}")
  endif()

  # Every line of the examples agrees with mx analyze.
  run(${WORK}/prefix/bin/mx synth -o ${WORK}/synth.safetensors --quiet)
  run(${WORK}/prefix/bin/mx analyze ${WORK}/synth.safetensors -r mxfp4 --histograms --quiet
    --json ${WORK}/synth.json)
  foreach(example quickstart scale_entropy)
    execute_process(COMMAND ${examples}/${example} ${WORK}/synth.safetensors mxfp4
      OUTPUT_VARIABLE printed_${example} COMMAND_ERROR_IS_FATAL ANY)
    string(PREPEND printed_${example} "\n")
  endforeach()
  file(READ ${WORK}/synth.json json)
  string(JSON tensors LENGTH "${json}" results)
  math(EXPR last "${tensors} - 1")
  foreach(i RANGE ${last})
    string(JSON tensor GET "${json}" results ${i} tensor)
    string(JSON sqnr GET "${json}" results ${i} sqnr_db)
    string(JSON codes LENGTH "${json}" results ${i} scale_histogram)
    string(FIND "${printed_scale_entropy}" "\n${tensor}: ${codes} codes, " study)
    string(REGEX MATCH "^[0-9]+[.][0-9]" sqnr "${sqnr}")
    string(FIND "${printed_quickstart}" "\n${tensor}  ${sqnr}" quick)
    if(study EQUAL -1 OR quick EQUAL -1)
      message(FATAL_ERROR "${tensor}: mx analyze gives ${sqnr} dB and ${codes} scale codes; "
        "the examples print ${printed_quickstart}${printed_scale_entropy}")
    endif()
  endforeach()
endif()
