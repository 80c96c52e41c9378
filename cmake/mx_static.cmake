# SPDX-License-Identifier: Apache-2.0
# MX_STATIC=FOLDER links the command statically, so that it runs on any Linux of the processor.
# FOLDER has the archives that scripts/static-libraries.sh builds; the distribution has the others.
# Sources are compiled exactly as for the shared libraries.
if(MX_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  list(PREPEND CMAKE_LIBRARY_PATH ${MX_STATIC}/lib)
  set(MX_MPI OFF)
  set(MX_REMOTE OFF)  # libcurl needs libraries that have no archives
  set(CMAKE_SKIP_RPATH ON)
endif()

# mx_link_archives(): called after the libraries are found; for libraries whose CMake packages name
# shared ones, and for dependencies of archives that shared libraries contain.
function(mx_link_archives)
  foreach(target fmt::fmt hwy::hwy NLopt::nlopt)
    string(REGEX REPLACE ".*::" "" name ${target})
    find_library(mx_archive_${name} ${name} REQUIRED)
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION_NONE ${mx_archive_${name}})
  endforeach()
  target_link_libraries(PkgConfig::libzip INTERFACE bz2 crypto z)
  target_link_libraries(PkgConfig::hdf5 INTERFACE crypto sz aec z m)
endfunction()
