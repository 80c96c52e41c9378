# SPDX-License-Identifier: Apache-2.0
# fish: install this file as share/fish/vendor_completions.d/mx.fish, or source it.
function __mx_complete
    set -l words (commandline -opc) (commandline -ct)
    $words[1] --complete $words[2..-1] 2>/dev/null
end
complete -c mx -f -a '(__mx_complete)'
complete -c mx -n 'not count (__mx_complete) >/dev/null' -F
