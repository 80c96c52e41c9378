// SPDX-License-Identifier: Apache-2.0
// Files of one format that are nearly right. The input is a series of choices: tensors, and which
// fields of the file that holds them are wrong, and how. Only base::error may be thrown; a sound
// file must open with exactly the tensors that were written, and a tensor read in parts must be the
// tensor.
#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/files/onnx/onnx_types.hpp"
#include "libmx/files/pytorch/torch_dtypes.hpp"
#include "libmx/io/gguf/gguf_types.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/tensor/dtypes.hpp"
#include "tests/fuzz/author.hpp"
#include "tests/fuzz/choices.hpp"
#include "tests/fuzz/read_tensor.hpp"
#include "tests/fuzz/reader_target.hpp"

namespace mx::fuzz {
namespace {

using tensor::dtype, tensor::shape;

constexpr std::uint64_t largest_tensor =
    1 << 12;  // bytes, as written: small ones are tried more often
constexpr std::uint64_t largest_read = 1 << 18;  // bytes, of a tensor that is read whole

struct written_tensor {
    std::string name;
    dtype type;
    shape extents;
    std::string bytes;
    bool decoded = false;  // the reader gives other bytes than those stored
};

// A file in the making: its tensors, the files beside it, and what the user says of it.
struct model {
    author& by;
    std::vector<written_tensor> tensors;
    folder& place;
    io::open_options options;
};

std::string content(choices& from, std::uint64_t size) {
    std::string bytes(static_cast<std::size_t>(size), '\0');
    const std::uint64_t first = from.byte();
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(first + i * 73);
    return bytes;
}

written_tensor any_tensor(choices& from, std::string name, dtype type) {
    written_tensor t{std::move(name), type, {}, {}};
    std::uint64_t elements = 1;
    for (std::uint64_t axes = from.below(4); axes > 0; --axes) {
        const std::uint64_t extent = from.extent();
        if (elements * extent * 16 > largest_tensor) break;
        t.extents.push_back(extent);
        elements *= extent;
    }
    // A type of less than a byte needs whole bytes.
    const auto bits = static_cast<std::uint64_t>(tensor::row_of(type).bits);
    if (elements * bits % 8 != 0) t.extents.push_back(8);
    t.bytes = content(from, tensor::stored_bytes(type, *tensor::element_count(t.extents)));
    return t;
}

// --- safetensors

std::string safetensors(author& by, const std::vector<written_tensor>& tensors) {
    std::string header, data;
    for (const written_tensor& t : tensors) {
        std::vector<std::uint64_t> extents = t.extents;
        for (std::uint64_t& e : extents) e = by.number(e);
        const std::uint64_t begin = by.number(data.size());
        const std::uint64_t end = by.number(data.size() + t.bytes.size());
        header +=
            by.part(fmt::format(",{}:{{\"dtype\":{},\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                                json_text(by.text(t.name)),
                                json_text(by.text(std::string(tensor::row_of(t.type).name))),
                                fmt::join(extents, ","), begin, end));
        data += by.part(t.bytes);
    }
    header = by.text(fmt::format("{{\"__metadata__\":{{{}:{}}}{}}}", json_text(by.text("format")),
                                 json_text(by.text("pt")), header));
    return by.file(by.number_in<std::uint64_t>(header.size()) + header + data);
}

std::string write_safetensors(model& m) { return safetensors(m.by, m.tensors); }

std::string write_index(model& m) {
    std::string map;
    const std::size_t half = m.tensors.size() / 2;
    for (std::size_t i = 0; i < m.tensors.size(); ++i) {
        const std::string shard = i < half ? "a.safetensors" : "b.safetensors";
        map += m.by.part(fmt::format("{}{}:{}", map.empty() ? "" : ",",
                                     json_text(m.by.text(m.tensors[i].name)),
                                     json_text(m.by.text(shard))));
    }
    const auto middle = m.tensors.begin() + static_cast<std::ptrdiff_t>(half);
    m.place.write("a.safetensors", safetensors(m.by, {m.tensors.begin(), middle}));
    m.place.write("b.safetensors", safetensors(m.by, {middle, m.tensors.end()}));
    return m.by.file(fmt::format("{{\"metadata\":{{\"total_size\":{}}},{}:{{{}}}}}",
                                 m.by.number(99), json_text(m.by.text("weight_map")), map));
}

// --- NumPy

std::string npy(author& by, const written_tensor& t) {
    const auto bytes_each = static_cast<std::uint64_t>(tensor::row_of(t.type).bits) / 8;
    const char kind = t.type == dtype::boolean                                               ? 'b'
                      : t.type == dtype::f16 || t.type == dtype::f32 || t.type == dtype::f64 ? 'f'
                      : tensor::row_of(t.type).name.front() == 'U'                           ? 'u'
                                                                                             : 'i';
    std::string extents;
    for (const std::uint64_t e : t.extents) extents += fmt::format("{}, ", by.number(e));
    std::string header = by.text(fmt::format(
        "{{'descr': '{}', 'fortran_order': {}, 'shape': ({}), }}",
        by.text(fmt::format("{}{}{}", bytes_each == 1 ? '|' : '<', kind, by.number(bytes_each))),
        by.text("False"), extents));
    const std::uint64_t version = 1 + by.below(3);
    const std::size_t before = version == 1 ? 10 : 12;
    header.resize((before + header.size() + 64) / 64 * 64 - before, ' ');
    header.back() = '\n';
    const std::string size = version == 1 ? by.number_in<std::uint16_t>(header.size())
                                          : by.number_in<std::uint32_t>(header.size());
    return by.text("\x93NUMPY") + by.number_in<std::uint8_t>(version) +
           by.number_in<std::uint8_t>(0) + size + header + by.part(t.bytes);
}

std::string write_npy(model& m) {
    m.tensors.resize(1);
    m.tensors.front().name = "input";
    return m.by.file(npy(m.by, m.tensors.front()));
}

// --- zip archives

struct zip_entry {
    std::string name;
    std::string bytes;
};

std::string deflated(const std::string& bytes) {
    z_stream stream{};
    require(deflateInit2(&stream, 1, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib");
    std::string out(deflateBound(&stream, bytes.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    require(deflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib");
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

std::string zip(author& by, const std::vector<zip_entry>& entries, bool may_deflate) {
    std::string file, directory;
    std::uint64_t count = 0;
    for (const zip_entry& e : entries) {
        const bool small = may_deflate && by.either();
        const std::string stored = small ? deflated(e.bytes) : e.bytes;
        const auto sum = crc32(0, reinterpret_cast<const Bytef*>(e.bytes.data()),
                               static_cast<uInt>(e.bytes.size()));
        const std::string name = by.text(e.name);
        const auto described = [&] {
            return by.number_in<std::uint16_t>(0) + by.number_in<std::uint16_t>(small ? 8 : 0) +
                   by.number_in<std::uint32_t>(0) + by.number_in<std::uint32_t>(sum) +
                   by.number_in<std::uint32_t>(stored.size()) +
                   by.number_in<std::uint32_t>(e.bytes.size()) +
                   by.number_in<std::uint16_t>(name.size());
        };
        const std::uint64_t at = file.size();
        file += by.text("PK\3\4") + by.number_in<std::uint16_t>(20) + described() +
                by.number_in<std::uint16_t>(0) + name + by.part(stored);
        const std::string central =
            by.text("PK\1\2") + by.number_in<std::uint16_t>(20) + by.number_in<std::uint16_t>(20) +
            described() + by.number_in<std::uint16_t>(0) + by.number_in<std::uint16_t>(0) +
            by.number_in<std::uint16_t>(0) + by.number_in<std::uint16_t>(0) +
            by.number_in<std::uint32_t>(0) + by.number_in<std::uint32_t>(at) + name;
        const std::uint64_t times = by.times();
        for (std::uint64_t i = 0; i < times; ++i) directory += central;
        ++count;
    }
    return by.file(file + directory + by.text("PK\5\6") + by.number_in<std::uint16_t>(0) +
                   by.number_in<std::uint16_t>(0) + by.number_in<std::uint16_t>(count) +
                   by.number_in<std::uint16_t>(count) +
                   by.number_in<std::uint32_t>(directory.size()) +
                   by.number_in<std::uint32_t>(file.size()) + by.number_in<std::uint16_t>(0));
}

std::string write_npz(model& m) {
    std::vector<zip_entry> entries;
    for (const written_tensor& t : m.tensors) entries.push_back({t.name + ".npy", npy(m.by, t)});
    return zip(m.by, entries, true);
}

// --- pickles

class pickle {
  public:
    explicit pickle(author& by) : by_(by) {}

    std::string number(std::uint64_t n) {
        n = by_.number(n);
        if (n < 256) return "K" + little_endian(static_cast<std::uint8_t>(n));
        if (n < 1u << 31) return "J" + little_endian(static_cast<std::uint32_t>(n));
        return "\x8a\x08" + little_endian(n);
    }
    std::string text(const std::string& right) {
        const std::string t = by_.text(right);
        return "X" + by_.number_in<std::uint32_t>(t.size()) + t;
    }
    std::string global(const std::string& module, const std::string& name) {
        return "c" + by_.text(module) + "\n" + by_.text(name) + "\n";
    }
    std::string tuple(const std::string& items) { return "(" + by_.part(items) + "t"; }
    std::string list(const std::string& items) { return "](" + by_.part(items) + "e"; }
    std::string dictionary(const std::string& items) { return "}(" + by_.part(items) + "u"; }
    std::string numbers(const std::vector<std::uint64_t>& list) {
        std::string items;
        for (const std::uint64_t n : list) items += number(n);
        return tuple(items);
    }
    std::string call(const std::string& callee, const std::string& arguments) {
        return callee + tuple(arguments) + "R";
    }
    std::string object(const std::string& type, const std::string& members) {
        return type + ")\x81" + dictionary(members) + "b";
    }
    std::string file(const std::string& root) {
        return by_.file(by_.text("\x80") + by_.number_in<std::uint8_t>(2) + root + by_.text("."));
    }

  private:
    author& by_;
};

std::vector<std::uint64_t> strides_of(const shape& extents) {
    std::vector<std::uint64_t> strides(extents.size(), 1);
    for (std::size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * extents[i];
    return strides;
}

const io::torch_dtype& torch_type(dtype type) {
    for (const io::torch_dtype& t : io::torch_dtypes) {
        if (t.type == type) return t;
    }
    return io::torch_dtypes.front();
}

// torch.save of a tensor alone, or of a dictionary of tensors in one storage each.
std::string torch_archive(author& by, const std::vector<written_tensor>& tensors, bool alone) {
    pickle p(by);
    std::string root;
    std::vector<zip_entry> entries;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const written_tensor& t = tensors[i];
        const io::torch_dtype& type = torch_type(t.type);
        const std::string key = fmt::format("{}", i);
        const std::uint64_t elements = t.bytes.size() / type.width;
        const bool typed = !type.storage.empty();
        const std::string storage =
            p.tuple(p.text("storage") +
                    p.global("torch", typed ? std::string(type.storage) : "UntypedStorage") +
                    p.text(key) + p.text("cpu") + p.number(typed ? elements : t.bytes.size())) +
            "Q";
        std::string arguments = storage + p.number(0) + p.numbers(t.extents) +
                                p.numbers(strides_of(t.extents)) + "\x89" +
                                p.call(p.global("collections", "OrderedDict"), "");
        if (!typed) arguments += p.global("torch", std::string(type.name));
        const std::string described =
            p.call(p.global("torch._utils", typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3"),
                   arguments);
        root += by.part(alone ? described : p.text(t.name) + described);
        entries.push_back({"archive/data/" + key, t.bytes});
    }
    entries.insert(entries.begin(),
                   {"archive/data.pkl", p.file(alone ? root : p.dictionary(root))});
    entries.push_back({"archive/byteorder", by.text("little")});
    entries.push_back({"archive/version", by.text("3\n")});
    return zip(by, entries, false);
}

std::string write_pytorch(model& m) { return torch_archive(m.by, m.tensors, false); }

// --- torch.distributed.checkpoint

std::string write_distributed(model& m) {
    pickle p(m.by);
    const std::string package = "torch.distributed.checkpoint.metadata";
    const auto extents = [&](const std::vector<std::uint64_t>& e) {
        return p.call(p.global("torch", "Size"), p.numbers(e));
    };
    std::string described, places, data;
    for (const written_tensor& t : m.tensors) {
        // One or two shards, of the rows.
        const std::uint64_t rows = t.extents.empty() ? 1 : t.extents.front();
        const std::uint64_t first = rows > 1 && m.by.either() ? rows / 2 : rows;
        std::string chunks;
        for (std::uint64_t at = 0; at < rows; at += first) {
            written_tensor shard = t;
            std::vector<std::uint64_t> origin(t.extents.size());
            if (!t.extents.empty()) {
                origin.front() = at;
                shard.extents.front() = std::min(first, rows - at);
                const std::uint64_t row = t.bytes.size() / rows;
                shard.bytes = t.bytes.substr(static_cast<std::size_t>(at * row),
                                             static_cast<std::size_t>(shard.extents.front() * row));
            }
            chunks += m.by.part(p.object(
                p.global(package, "ChunkStorageMetadata"),
                p.text("offsets") + extents(origin) + p.text("sizes") + extents(shard.extents)));
            const std::string archive = torch_archive(m.by, {shard}, true);
            places += m.by.part(
                p.object(p.global(package, "MetadataIndex"),
                         p.text("fqn") + p.text(t.name) + p.text("offset") + extents(origin)) +
                p.object(p.global("torch.distributed.checkpoint.filesystem", "_StorageInfo"),
                         p.text("relative_path") + p.text("__0_0.distcp") + p.text("offset") +
                             p.number(data.size()) + p.text("length") + p.number(archive.size())));
            data += archive;
        }
        const std::string properties =
            p.global(package, "TensorProperties") + ")\x81" +
            p.tuple(p.global("torch", std::string(torch_type(t.type).name))) + "b";
        described += m.by.part(p.text(t.name) + p.object(p.global(package, "TensorStorageMetadata"),
                                                         p.text("properties") + properties +
                                                             p.text("size") + extents(t.extents) +
                                                             p.text("chunks") + p.list(chunks)));
    }
    m.place.write("__0_0.distcp", m.by.file(data));
    return p.file(p.object(p.global(package, "Metadata"),
                           p.text("state_dict_metadata") + p.dictionary(described) +
                               p.text("storage_data") + p.dictionary(places)));
}

// --- GGUF

std::string write_gguf(model& m) {
    author& by = m.by;
    const auto text = [&](const std::string& right) {
        const std::string t = by.text(right);
        return by.number_in<std::uint64_t>(t.size()) + t;
    };
    constexpr std::uint64_t alignment = 32;
    const auto aligned = [](std::string bytes) {
        bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
        return bytes;
    };
    std::string infos, data;
    for (written_tensor& t : m.tensors) {
        const io::gguf_type* type = nullptr;
        for (const io::gguf_type& g : io::gguf_types) {
            if (g.decode == nullptr && g.read_as == t.type) type = &g;
        }
        // Mostly a type of blocks, if blocks fit the rows.
        const io::gguf_type& blocks = io::gguf_types[by.below(io::gguf_types.size())];
        if (blocks.decode != nullptr && !t.extents.empty()) {
            t.extents.back() = blocks.block_elements;
            const std::uint64_t count = *tensor::element_count(t.extents) / blocks.block_elements;
            t.bytes.resize(static_cast<std::size_t>(count * blocks.block_bytes), 'x');
            t.type = *blocks.read_as;
            t.decoded = true;
            type = &blocks;
        }
        require(type != nullptr, "a type of GGUF");
        if (t.extents.empty()) t.extents = {1};
        std::string extents;
        for (std::size_t i = t.extents.size(); i-- > 0;) {
            extents += by.number_in<std::uint64_t>(t.extents[i]);
        }
        infos += by.part(text(t.name) + by.number_in<std::uint32_t>(t.extents.size()) + extents +
                         by.number_in<std::uint32_t>(type->id) +
                         by.number_in<std::uint64_t>(data.size()));
        data = aligned(data + t.bytes);
    }
    constexpr std::uint64_t of_u32 = 4, of_text = 8, of_array = 9;
    const std::string facts =
        by.part(text("general.architecture") + by.number_in<std::uint32_t>(of_text) +
                text("llama")) +
        by.part(text("general.alignment") + by.number_in<std::uint32_t>(of_u32) +
                by.number_in<std::uint32_t>(alignment)) +
        by.part(text("tokenizer.ggml.tokens") + by.number_in<std::uint32_t>(of_array) +
                by.number_in<std::uint32_t>(of_text) + by.number_in<std::uint64_t>(2) + text("a") +
                text("b"));
    return by.file(aligned(by.text("GGUF") + by.number_in<std::uint32_t>(3) +
                           by.number_in<std::uint64_t>(m.tensors.size()) +
                           by.number_in<std::uint64_t>(3) + facts + infos) +
                   data);
}

// --- ONNX

class message {
  public:
    explicit message(author& by) : by_(by) {}

    message& number(std::uint64_t field, std::uint64_t value) {
        bytes_ += by_.part(varint(by_.number(field) << 3) + varint(by_.number(value)));
        return *this;
    }
    message& text(std::uint64_t field, const std::string& value) {
        const std::string t = by_.text(value);
        return bytes(field, t);
    }
    message& bytes(std::uint64_t field, const std::string& value) {
        bytes_ +=
            by_.part(varint(by_.number(field) << 3 | 2) + varint(by_.number(value.size())) + value);
        return *this;
    }
    const std::string& all() const { return bytes_; }

  private:
    static std::string varint(std::uint64_t n) {
        std::string out;
        for (; n >= 0x80; n >>= 7) out += static_cast<char>(n | 0x80);
        return out + static_cast<char>(n);
    }

    author& by_;
    std::string bytes_;
};

std::string write_onnx(model& m) {
    author& by = m.by;
    std::string outside;
    message graph(by);
    for (const written_tensor& t : m.tensors) {
        const auto type =
            std::ranges::find_if(io::onnx_types, [&](auto& o) { return o.type == t.type; });
        message tensor(by);
        for (const std::uint64_t e : t.extents) tensor.number(1, e);
        tensor.number(2, type->id).text(8, t.name);
        if (by.either()) {
            const auto entry = [&](const char* key, const std::string& value) {
                tensor.bytes(13, message(by).text(1, key).text(2, value).all());
            };
            entry("location", "weights.data");
            entry("offset", fmt::format("{}", by.number(outside.size())));
            entry("length", fmt::format("{}", by.number(t.bytes.size())));
            tensor.number(14, 1);
            outside += t.bytes;
        } else {
            tensor.bytes(9, t.bytes);
        }
        graph.bytes(5, tensor.all());
        graph.bytes(1, message(by)
                           .text(1, "x")
                           .text(1, t.name)
                           .text(2, "y" + t.name)
                           .text(4, by.either() ? "MatMul" : "Gemm")
                           .all());
    }
    graph.text(2, "g");
    m.place.write("weights.data", by.file(outside));
    return by.file(message(by)
                       .number(1, 8)
                       .bytes(8, message(by).text(1, "").number(2, 18).all())
                       .bytes(7, graph.all())
                       .all());
}

// --- raw binary

std::string write_raw(model& m) {
    m.tensors.resize(1);
    written_tensor& t = m.tensors.front();
    t.name = "input";
    std::vector<std::uint64_t> extents = t.extents;
    for (std::uint64_t& e : extents) e = m.by.number(e);
    m.options.shape = m.by.text(extents.empty() ? "-" : fmt::format("{}", fmt::join(extents, "x")));
    m.options.dtype = m.by.text(std::string(tensor::row_of(t.type).name));
    const std::uint64_t before = m.by.below(20);
    m.options.offset = m.by.number(before);
    return m.by.file(std::string(static_cast<std::size_t>(before), 'x') + m.by.part(t.bytes));
}

/// THE LIST of these programs; CMakeLists.txt reads the names. HDF5 and Keras files are read by a
/// child process, which only reader_target.cpp tries.
struct writer {
    std::string_view name;
    std::string (*write)(model& m);
    std::vector<dtype> types;
    std::string_view file;
};
const std::vector<writer> writers{
    writer{"npy",
           write_npy,
           {dtype::f32, dtype::f64, dtype::f16, dtype::u8, dtype::i8, dtype::i16, dtype::u32,
            dtype::i64, dtype::boolean},
           "input.npy"},
    writer{"npz", write_npz, {dtype::f32, dtype::f16, dtype::u16, dtype::i64}, "input.npz"},
    writer{"pytorch",
           write_pytorch,
           {dtype::f32, dtype::bf16, dtype::f16, dtype::u8, dtype::i64, dtype::boolean, dtype::u16,
            dtype::f8_e4m3, dtype::c64},
           "input.pt"},
    writer{"pytorch distributed",
           write_distributed,
           {dtype::f32, dtype::bf16, dtype::f64, dtype::f8_e5m2},
           ".metadata"},
    writer{"gguf",
           write_gguf,
           {dtype::f32, dtype::f16, dtype::bf16, dtype::i8, dtype::i32},
           "input.gguf"},
    writer{"safetensors index",
           write_index,
           {dtype::f32, dtype::bf16, dtype::f4, dtype::i64},
           "model.safetensors.index.json"},
    writer{"safetensors",
           write_safetensors,
           {dtype::f32, dtype::bf16, dtype::f4, dtype::f6_e2m3, dtype::f8_e8m0, dtype::i64,
            dtype::c64},
           "input.safetensors"},
    writer{"onnx",
           write_onnx,
           {dtype::f32, dtype::f16, dtype::bf16, dtype::i8, dtype::f4, dtype::f8_e4m3, dtype::i64},
           "input.onnx"},
    writer{"raw",
           write_raw,
           {dtype::f32, dtype::bf16, dtype::f4, dtype::f6_e3m2, dtype::f8_e4m3, dtype::i64,
            dtype::c64},
           "input.bin"},
};

// A sound file has the tensors that were written.
void compare(choices& from, const io::reader& found, const std::vector<written_tensor>& written) {
    require(found.tensors().size() == written.size(), "as many tensors as were written");
    for (const written_tensor& t : written) {
        const auto at =
            std::ranges::find_if(found.tensors(), [&](auto& i) { return i.name == t.name; });
        require(at != found.tensors().end(), "a tensor of this name");
        require(at->shape == t.extents && at->type == t.type, "its shape and dtype");
        const std::string bytes = read_tensor(
            from, found, static_cast<std::size_t>(at - found.tensors().begin()), largest_read);
        require(t.decoded || bytes == t.bytes, "its bytes");
    }
}

}  // namespace

bool belongs(const std::string&) { return true; }

void try_input(const std::uint8_t* data, std::size_t size) {
    static folder place;
    choices from(data, size);
    author by(from);
    const auto as = std::ranges::find_if(writers, [](const writer& w) { return w.name == format; });
    require(as != writers.end(), "a writer of this format");
    model m{by, {}, place, {}};
    for (std::uint64_t left = 1 + from.below(4); left > 0; --left) {
        m.tensors.push_back(any_tensor(from, fmt::format("w{}.weight", left), from.of(as->types)));
    }
    const std::string path = place.write(std::string(as->file), as->write(m));
    const auto reader =
        std::ranges::find_if(io::reader_formats, [](auto& f) { return f.name == format; });
    std::unique_ptr<io::reader> opened;
    try {
        opened = reader->open(io::input_file::open(path), m.options);
    } catch (const base::error& e) {  // refused, which is an answer
        if (by.sound()) fmt::print(stderr, "{}\n", e.message());
        require(!by.sound(), "a sound file is read");
        return;
    }
    check_occupied(*opened);
    if (by.sound()) return compare(from, *opened, m.tensors);
    for (std::size_t i = 0; i < std::min<std::size_t>(opened->tensors().size(), 64); ++i) {
        try {
            read_tensor(from, *opened, i, largest_read);
        } catch (const base::error&) {  // likewise
        }
    }
}

}  // namespace mx::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    mx::fuzz::try_input(data, size);
    return 0;
}
