// SPDX-License-Identifier: Apache-2.0
// Writes what the readers read from a file, for scripts to compare with what was written.
// Usage: mx_interop_dump FILE OUT [AS]     AS: the type of raw bytes, as for --as
// OUT receives for each tensor the stored bytes (C order, little-endian) and, for numbers, the
// values as float32. Standard output is JSON: the properties of each tensor, and its numbers of
// bytes in OUT.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "libmx/io/reader.hpp"
#include "libmx/io/widen.hpp"

namespace {

using namespace mx;

// Odd, so that pieces end inside elements.
constexpr std::uint64_t piece = 65521;

std::vector<std::byte> bytes_of(const io::byte_source& source, const io::tensor_info& info) {
    std::vector<std::byte> all(static_cast<std::size_t>(info.bytes));
    for (std::uint64_t at = 0; at < info.bytes; at += piece) {
        source.read(
            at, std::span(all).subspan(static_cast<std::size_t>(at),
                                       static_cast<std::size_t>(std::min(piece, info.bytes - at))));
    }
    return all;
}

nlohmann::json describe(const io::reader& file, std::size_t index, std::ofstream& out) {
    const io::tensor_info& info = file.tensors()[index];
    nlohmann::json entry{
        {"name", info.name},   {"dtype", std::string(tensor::row_of(info.type).name)},
        {"shape", info.shape}, {"note", info.note},
        {"bytes", 0},          {"values", 0}};
    if (!info.note.empty()) return entry;
    const auto source = file.open(index);
    const std::vector<std::byte> stored = bytes_of(*source, info);
    out.write(reinterpret_cast<const char*>(stored.data()),
              static_cast<std::streamsize>(stored.size()));
    entry["bytes"] = stored.size();
    if (tensor::row_of(info.type).to_f32 == tensor::widening::none) return entry;
    std::vector<float> values(static_cast<std::size_t>(info.elements));
    std::vector<std::byte> scratch;
    io::read_f32(*source, info.type, 0, values, scratch);
    const std::size_t width = values.size() * sizeof(float);
    out.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(width));
    entry["values"] = width;
    return entry;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3 && argc != 4) {
        std::cerr << "usage: mx_interop_dump FILE OUT [AS]\n";
        return 2;
    }
    try {
        io::open_options options;
        if (argc == 4) options.as = argv[3];
        const auto file = io::open_model(argv[1], options);
        std::ofstream out(argv[2], std::ios::binary);
        nlohmann::json all = nlohmann::json::array();
        for (std::size_t i = 0; i < file->tensors().size(); ++i) {
            all.push_back(describe(*file, i, out));
        }
        out.close();
        if (!out) throw std::runtime_error(std::string("cannot write ") + argv[2]);
        std::cout << all.dump() << "\n";
        return 0;
    } catch (const std::exception& e) {
        std::cerr << e.what() << "\n";
        return 3;
    }
}
