# SPDX-License-Identifier: Apache-2.0
# ctest reads this first: settings of whoever runs the tests do not reach them.
foreach(variable MX_BACKEND MX_THREADS MX_COLOR MX_PAGER PAGER LESS NO_COLOR CLICOLOR_FORCE COLUMNS
    XDG_CONFIG_HOME LANGUAGE CDPATH POSIXLY_CORRECT PYTEST_ADDOPTS)
  unset(ENV{${variable}})
endforeach()
set(ENV{MX_CONFIG} "")
set(ENV{LC_ALL} C)
set(ENV{no_proxy} 127.0.0.1,localhost)
