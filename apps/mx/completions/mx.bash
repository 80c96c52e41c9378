# SPDX-License-Identifier: Apache-2.0
# bash: source this file, or install it as share/bash-completion/completions/mx.
_mx() {
    local line=${COMP_LINE:0:COMP_POINT} word typed start
    local -a words
    # Words as people see them; bash would split recipes at ':' and '='.
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=('')
    typed=${words[-1]}
    COMPREPLY=()
    # bash replaces what follows its last break only.
    start=${typed%"${typed##*[:=]}"}
    [[ $COMP_WORDBREAKS == *[:=]* ]] || start=''
    while IFS=$'\t' read -r word _; do
        COMPREPLY+=("${word#"$start"}")
        [[ $word == *[:,=] ]] && compopt -o nospace 2>/dev/null
    done < <("${words[0]}" --complete "${words[@]:1}" 2>/dev/null)
    ((${#COMPREPLY[@]})) || compopt -o default 2>/dev/null
    return 0
}
complete -F _mx mx
