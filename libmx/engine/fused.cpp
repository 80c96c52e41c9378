// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/fused.hpp"

#include <algorithm>
#include <array>

namespace mx::engine {
namespace {

// One word of a name, and the word of all that are fused with it.
struct fused_word {
    std::string_view word, fused;
};
constexpr std::array fused_words{
    fused_word{"q_proj", "{q,k,v}_proj"},
    fused_word{"k_proj", "{q,k,v}_proj"},
    fused_word{"v_proj", "{q,k,v}_proj"},
    fused_word{"attn_q", "attn_{q,k,v}"},
    fused_word{"attn_k", "attn_{q,k,v}"},
    fused_word{"attn_v", "attn_{q,k,v}"},
    fused_word{"wq", "w{q,k,v}"},
    fused_word{"wk", "w{q,k,v}"},
    fused_word{"wv", "w{q,k,v}"},
    fused_word{"gate_proj", "{gate,up}_proj"},
    fused_word{"up_proj", "{gate,up}_proj"},
    fused_word{"ffn_gate", "ffn_{gate,up}"},
    fused_word{"ffn_up", "ffn_{gate,up}"},
    fused_word{"w1", "w{1,3}"},
    fused_word{"w3", "w{1,3}"},
    fused_word{"ffn_gate_exps", "ffn_*_exps"},
    fused_word{"ffn_up_exps", "ffn_*_exps"},
    fused_word{"ffn_down_exps", "ffn_*_exps"},
};

}  // namespace

std::string fused_name(std::string_view name, expert_fusion experts) {
    std::string fused;
    for (std::size_t begin = 0; begin <= name.size();) {
        const std::size_t end = std::min(name.find('.', begin), name.size());
        const std::string_view word = name.substr(begin, end - begin);
        if (begin > 0) fused += '.';
        if (experts == expert_fusion::together && word == "experts" && end < name.size()) {
            return fused + "experts.*";
        }
        const auto* const at = std::ranges::find(fused_words, word, &fused_word::word);
        fused += at == fused_words.end() ? word : at->fused;
        begin = end + 1;
    }
    return fused;
}

}  // namespace mx::engine
