// SPDX-License-Identifier: Apache-2.0
// Pickles and PyTorch archives written by hand, sound and otherwise.
#pragma once

#include <string>
#include <vector>

#include "tests/io/zip_members.hpp"

namespace mx::test {

inline std::string big_endian(std::uint64_t value, int bytes) {
    const std::string text = little(value, bytes);
    return {text.rbegin(), text.rend()};
}

inline std::string p_text(const std::string& text) { return "X" + little(text.size(), 4) + text; }
inline std::string p_int(std::int64_t value) {
    return std::string("\x8a\x08") + little(static_cast<std::uint64_t>(value), 8);
}
inline std::string p_global(const std::string& module, const std::string& name) {
    return "c" + module + "\n" + name + "\n";
}
inline std::string p_tuple(const std::vector<std::string>& items) {
    std::string out = "(";
    for (const std::string& item : items) out += item;
    return out + "t";
}
inline std::string p_ints(const std::vector<std::int64_t>& values) {
    std::vector<std::string> items;
    for (const std::int64_t value : values) items.push_back(p_int(value));
    return p_tuple(items);
}
inline std::string p_dict(const std::vector<std::pair<std::string, std::string>>& items) {
    std::string out = "}(";
    for (const auto& [key, value] : items) out += p_text(key) + value;
    return out + "u";
}
inline std::string p_call(const std::string& callee, const std::vector<std::string>& arguments) {
    return callee + p_tuple(arguments) + "R";
}
inline std::string p_pickle(const std::string& root) { return "\x80\x02" + root + "."; }

/// A storage of PyTorch: record `key` with `elements` of class `made`.
inline std::string p_storage(const std::string& key, std::int64_t elements,
                             const std::string& made = "FloatStorage") {
    return p_tuple({p_text("storage"), p_global("torch", made), p_text(key), p_text("cpu"),
                    p_int(elements)}) +
           "Q";
}
inline std::string p_tensor(const std::string& storage, std::int64_t offset,
                            const std::vector<std::int64_t>& shape,
                            const std::vector<std::int64_t>& strides) {
    return p_call(p_global("torch._utils", "_rebuild_tensor_v2"),
                  {storage, p_int(offset), p_ints(shape), p_ints(strides), "\x89",
                   p_call(p_global("collections", "OrderedDict"), {})});
}
/// A tensor of 4 values, the storage "0" of torch_zip.
inline std::string p_four() { return p_tensor(p_storage("0", 4), 0, {4}, {1}); }

/// 1, 2, 3, 4 as float32.
inline const std::string four_floats =
    std::string("\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40", 16);

/// The output of torch.save: the pickle of `root`, and `four_floats` as storage "0".
inline std::string torch_zip(const std::string& path, const std::string& root,
                             bool packed = false) {
    return write_zip(path, {{"archive/data.pkl", p_pickle(root), packed},
                            {"archive/byteorder", "little"},
                            {"archive/data/0", four_floats, packed},
                            {"archive/version", "3\n"}});
}

}  // namespace mx::test
