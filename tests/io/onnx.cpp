// SPDX-License-Identifier: Apache-2.0
// ONNX files of the onnx package, and hostile ones. In builds without Protobuf: the refusal.
#include "libmx/io/no_product.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/writer.hpp"
#include "tests/io/fixture_values.hpp"
#include "tests/io/model_file.hpp"

using namespace mx;
using namespace mx::test;
using tensor::dtype;

namespace {

bool supported() { return !io::onnx_support().empty(); }

// A protobuf field: a varint, or bytes with their length.
std::string varint(std::uint64_t value) {
    std::string out;
    for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
    return out + static_cast<char>(value);
}
std::string field(unsigned number, std::uint64_t value) {
    return varint(number << 3) + varint(value);
}
std::string field(unsigned number, const std::string& bytes) {
    return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}

// A model with these initializers, each a TensorProto.
std::string model(const std::vector<std::string>& initializers) {
    std::string graph;
    for (const std::string& each : initializers) graph += field(5, each);
    return field(1, 8) + field(2, std::string("test")) + field(7, graph);
}

std::string described(const std::string& name, std::uint64_t type,
                      const std::vector<std::uint64_t>& extents) {
    std::string out;
    for (const std::uint64_t extent : extents) out += field(1, extent);
    return out + field(2, type) + field(8, name);
}

std::string raw(const std::string& bytes) { return field(9, bytes); }

std::string external(const std::string& key, const std::string& value) {
    return field(13, field(1, key) + field(2, value));
}

const std::vector<named_type> onnx_types{
    {"f4", dtype::f32}, {"f8", dtype::f64},   {"f2", dtype::f16},      {"bf16", dtype::bf16},
    {"i1", dtype::i8},  {"u1", dtype::u8},    {"i2", dtype::i16},      {"u2", dtype::u16},
    {"i4", dtype::i32}, {"u4", dtype::u32},   {"i8", dtype::i64},      {"u8", dtype::u64},
    {"c8", dtype::c64}, {"c16", dtype::c128}, {"bool", dtype::boolean}};

}  // namespace

TEST_CASE("ONNX without Protobuf says what to install", "[onnx]") {
    if (supported()) return;
    has(error_of(base::error_kind::unavailable, [] { io::open_model(fixture("onnx.onnx")); }),
        "install libprotobuf-dev");
}

TEST_CASE("ONNX of the onnx package: raw and typed values of every type", "[onnx]") {
    if (!supported()) return;
    const auto file = io::open_model(fixture("onnx.onnx"));
    for (const char* kind : {"raw.", "typed."}) {
        for (const named_type& each : onnx_types) {
            check_fixture(*file, std::string(kind) + each.name, each.type, {5, 7});
        }
        for (const char* name : {"e4m3", "e4m3fnuz", "e5m2", "e5m2fnuz"}) {
            INFO(kind << name);
            CHECK(values(*file, std::string(kind) + name) ==
                  values(*file, std::string("check.") + name));
        }
    }
    CHECK(find(*file, "raw.e4m3")->type == dtype::f8_e4m3);
    CHECK(find(*file, "raw.e5m2fnuz")->type == dtype::f8_e5m2fnuz);
    check_fixture(*file, "scalar", dtype::f32, {});
    check_fixture(*file, "empty", dtype::f32, {3, 0, 2});
    check_fixture(*file, "weights", dtype::f32, {5, 7});
    CHECK(find(*file, "inner") == nullptr);
}

TEST_CASE("ONNX: what is not read is listed with the reason", "[onnx]") {
    if (!supported()) return;
    const auto file = io::open_model(fixture("onnx.onnx"));
    const auto note = [&](const std::string& name) { return note_of(*file, name); };
    has(note("int4"), "ONNX's INT4 is not read");
    has(note("text"), "ONNX's STRING is not read");
    has(note("sparse"), "sparse tensors are not read");
    has(note("choice/then_branch"), "a subgraph of If");
    has(note("choice/else_branch"), "a subgraph of If");
}

TEST_CASE("ONNX: what the model says about itself is the metadata", "[onnx]") {
    if (!supported()) return;
    CHECK(io::open_model(fixture("onnx.onnx"))->metadata() ==
          io::metadata_map{{"graph", "fixture"},
                           {"ir_version", "10"},
                           {"opset.ai.onnx", "21"},
                           {"origin", "a fixture"},
                           {"producer_name", "mx-fixture"}});
}

TEST_CASE("ONNX: external data beside the model", "[onnx]") {
    if (!supported()) return;
    const auto file = io::open_model(fixture("onnx_external.onnx"));
    check_fixture(*file, "first", dtype::f32, {5, 7});
    check_fixture(*file, "second", dtype::f32, {5, 7});
    CHECK(find(*file, "second")->file == fixture("onnx_external.data"));
    REQUIRE(file->files().size() == 2);
    CHECK(file->files()[1] == std::pair(fixture("onnx_external.data"), std::uint64_t{280}));
}

TEST_CASE("ONNX: external data that is elsewhere or does not fit", "[onnx][hostile]") {
    if (!supported()) return;
    const scratch_dir dir;
    dir.file("data", std::string(64, '\1'));
    const auto with = [&](const std::string& entries) {
        return dir.file("m.onnx",
                        model({described("w", 1, {4}) + entries + field(14, std::uint64_t{1})}));
    };
    const auto at = [](const std::string& place) { return external("location", place); };
    CHECK(io::open_model(with(at("data") + external("offset", "48")))->tensors()[0].bytes == 16);
    for (const std::string& place :
         {std::string("../data"), std::string("/etc/passwd"), std::string("a/../../data"),
          std::string(), std::string("..\\data"), std::string("c:data"),
          std::string("data\0x", 6)}) {
        has(open_error(with(at(place))), "outside the model's folder");
    }
    has(open_error(with(at("missing"))), "missing: cannot open");
    has(open_error(with(at("data") + external("offset", "49"))), "go beyond 'data', which has 64");
    has(open_error(with(at("data") + external("offset", "18446744073709551615"))), "go beyond");
    has(open_error(with(at("data") + external("offset", "-1"))), "the offset '-1', not a number");
    has(open_error(with(at("data") + external("length", "15"))),
        "has 15 bytes, its shape takes 16");
}

TEST_CASE("ONNX: tensors with false sizes", "[onnx][hostile]") {
    if (!supported()) return;
    const scratch_dir dir;
    const auto opened = [&](const std::string& t) {
        return io::open_model(dir.file("m.onnx", model({t})));
    };
    const auto refused = [&](const std::string& t) {
        return error_of(base::error_kind::input, [&] { opened(t); });
    };
    const auto unreadable = [&](const std::string& t) {
        const auto file = opened(t);
        return error_of(base::error_kind::input, [&] { file->open(0); });
    };
    CHECK(opened(described("w", 1, {1}) + raw("1234"))->tensors().size() == 1);
    // Packed extents, and typed values one by one, are as good.
    CHECK(opened(field(1, varint(2) + varint(1)) + field(2, 3) + field(8, std::string("w")) +
                 field(5, 7) + field(5, ~std::uint64_t{0}))
              ->tensors()[0]
              .shape == tensor::shape{2, 1});
    CHECK(values(*opened(described("w", 3, {2}) + field(5, 7) + field(5, ~std::uint64_t{0})),
                 "w") == std::vector<float>{7, -1});

    has(refused(described("w", 1, {2}) + raw("1234")), "takes 8 bytes, raw_data has 4");
    has(refused(described("w", 1, {1})), "takes 4 bytes, its data has 0");
    has(refused(described("w", 1, {2}) + field(4, std::string("1234"))), "its data has 4");
    has(refused(described("w", 6, {1u << 30}) + field(5, varint(1))), "its data has 1");
    has(refused(described("w", 1, {~std::uint64_t{0}}) + raw("1234")), "a negative extent, -1");
    has(refused(described("w", 1, {1ull << 40, 1ull << 40})), "is too large");
    has(refused(described("", 1, {1}) + raw("1234")), "a tensor without a name");
    std::string axes;
    for (int i = 0; i < 65; ++i) axes += varint(1);
    has(refused(field(1, axes)), "more than 64 axes");
    has(refused(field(8, std::string(5000, 'x'))), "a text of 5000 bytes; at most 4096");
    has(unreadable(described("w", 77, {1}) + raw("1234")), "unknown ONNX type 77");
    has(unreadable(described("w", 2, {1}) + field(5, varint(256))),
        "has 256, which U8 does not have");
    has(unreadable(described("w", 3, {1}) + field(5, varint(128))),
        "has 128, which I8 does not have");
    has(unreadable(described("w", 9, {1}) + field(5, varint(2))),
        "has 2, which BOOL does not have");
    has(unreadable(described("w", 2, {1}) + field(5, varint(1) + varint(1))), "more values");
    has(unreadable(described("w", 2, {2}) + field(5, varint(300))), "which U8 does not have");
    has(unreadable(described("w", 6, {2}) + field(5, varint(300))), "fewer values");

    const std::string twice = described("w", 1, {1}) + raw("1234");
    has(open_error(dir.file("m.onnx", model({twice, twice}))), "two tensors of this name");
    has(open_error(dir.file("m.onnx", field(1, 8) + field(2, std::string("x")))), "has no graph");
}

namespace {

std::string whole_attribute(const std::string& name, std::uint64_t value) {
    return field(5, field(1, name) + field(3, value) + field(20, std::uint64_t{2}));
}
std::string numbers_attribute(const std::string& name, const std::vector<std::uint64_t>& values) {
    std::string packed;
    for (const std::uint64_t value : values) packed += varint(value);
    return field(5, field(1, name) + field(8, packed));
}
std::string text_attribute(const std::string& name, const std::string& text) {
    return field(5, field(1, name) + field(4, text));
}

struct graph_node {
    std::string operation;
    std::vector<std::string> inputs;
    std::string output;
    std::string attributes = {};

    std::string message() const {
        std::string out;
        for (const std::string& each : inputs) out += field(1, each);
        return out + field(2, output) + field(3, operation + "/" + output) + field(4, operation) +
               attributes;
    }
};

struct stored_table {
    std::string name;
    std::vector<std::uint64_t> extents;
    std::uint64_t type = 1;  // FLOAT
};

// What the graph says about its first initializer.
io::contraction stated(const std::vector<stored_table>& tensors,
                       const std::vector<graph_node>& nodes, const std::string& more = {}) {
    std::string graph;
    for (const graph_node& n : nodes) graph += field(1, n.message());
    for (const stored_table& t : tensors) {
        std::uint64_t bytes = t.type == 3 ? 1 : 4;
        for (const std::uint64_t n : t.extents) bytes *= n;
        graph += field(5, described(t.name, t.type, t.extents) + raw(std::string(bytes, '\0')));
    }
    const scratch_dir dir;
    const auto file = io::open_model(dir.file(
        "m.onnx",
        field(1, std::uint64_t{8}) + field(2, std::string("test")) + field(7, graph + more)));
    return file->tensors().front().sums_over;
}

// A tensor of int64, the argument of a Reshape.
std::string int64_tensor(const std::string& name, const std::vector<std::int64_t>& values) {
    std::string bytes;
    for (const std::int64_t v : values) {
        for (int i = 0; i < 8; ++i)
            bytes += static_cast<char>(static_cast<std::uint64_t>(v) >> 8 * i);
    }
    return field(5, described(name, 7, {values.size()}) + raw(bytes));
}

bool is(const io::contraction& c, int first, int last) {
    INFO(c.why << ": " << c.first << " to " << c.last);
    CHECK(c.first == first);
    CHECK(c.last == last);
    return c.first == first && c.last == last;
}

}  // namespace

TEST_CASE("ONNX: products say which axes of their operands they sum over", "[onnx]") {
    if (!supported()) return;
    const std::vector<stored_table> w{{"w", {64, 48}}};
    CHECK(is(stated(w, {{"MatMul", {"x", "w"}, "y"}}), 0, 1));
    CHECK(stated(w, {{"MatMul", {"x", "w"}, "y"}}).why == "MatMul node 'MatMul/y', second operand");
    CHECK(is(stated(w, {{"MatMul", {"w", "x"}, "y"}}), 1, 2));
    CHECK(is(stated({{"w", {8, 64, 48}}}, {{"MatMul", {"x", "w"}, "y"}}), 1, 2));
    CHECK(is(stated(w, {{"MatMulInteger", {"x", "w"}, "y"}}), 0, 1));
    CHECK(is(stated({{"w", {64, 48}, 3}},
                    {{"QLinearMatMul", {"x", "s", "z", "w", "s", "z", "s", "z"}, "y"}}),
             0, 1));
    CHECK(is(stated(w, {{"Gemm", {"x", "w", "b"}, "y"}}), 0, 1));
    CHECK(is(stated(w, {{"Gemm", {"x", "w"}, "y", whole_attribute("transB", 1)}}), 1, 2));
    CHECK(is(stated(w, {{"Gemm", {"w", "x"}, "y"}}), 1, 2));
    CHECK(is(stated(w, {{"Gemm", {"w", "x"}, "y", whole_attribute("transA", 1)}}), 0, 1));
    const std::vector<stored_table> kernel{{"w", {16, 8, 3, 3}}};
    CHECK(is(stated(kernel, {{"Conv", {"x", "w", "b"}, "y"}}), 1, 4));
    CHECK(is(stated(kernel, {{"ConvTranspose", {"x", "w"}, "y"}}), 0, 1));
    CHECK_FALSE(
        stated(kernel, {{"ConvTranspose", {"x", "w"}, "y", whole_attribute("group", 2)}}).known());
    for (const char* cell : {"LSTM", "GRU", "RNN"}) {
        CHECK(is(stated({{"w", {1, 64, 24}}}, {{cell, {"x", "w", "r", "b"}, "y"}}), 2, 3));
        CHECK(is(stated({{"r", {1, 64, 16}}}, {{cell, {"x", "w", "r", "b"}, "y"}}), 2, 3));
        CHECK(io::is_in_no_product(stated({{"b", {1, 128}}}, {{cell, {"x", "w", "r", "b"}, "y"}})));
    }
    CHECK(is(stated({{"w", {64, 4, 12}}},
                    {{"Einsum", {"x", "w"}, "y", text_attribute("equation", "abc, cde -> abde")}}),
             0, 1));
    CHECK(is(stated({{"w", {4, 12, 64}}},
                    {{"Einsum", {"x", "w"}, "y", text_attribute("equation", "abcd,cde->abe")}}),
             0, 2));
}

TEST_CASE("ONNX: axes are followed from a tensor to its product", "[onnx]") {
    if (!supported()) return;
    const std::vector<stored_table> w{{"w", {64, 48}}};
    const auto through = [&](const graph_node& n, const std::string& more = {}) {
        return stated(w, {n, {"MatMul", {"x", "t"}, "y"}}, more);
    };
    for (const char* same : {"Identity", "Cast", "DequantizeLinear"}) {
        CHECK(is(through({same, {"w", "scale"}, "t"}), 0, 1));
    }
    CHECK(is(through({"Transpose", {"w"}, "t"}), 1, 2));
    CHECK(is(through({"Transpose", {"w"}, "t", numbers_attribute("perm", {0, 1})}), 0, 1));
    CHECK(is(through({"Reshape", {"w", "shape"}, "t"}, int64_tensor("shape", {1, 64, -1})), 0, 1));
    CHECK(is(through({"Unsqueeze", {"w", "axes"}, "t"}, int64_tensor("axes", {0})), 0, 1));
    CHECK(is(stated({{"w", {1, 64, 48}}}, {{"Squeeze", {"w"}, "t", numbers_attribute("axes", {0})},
                                           {"MatMul", {"x", "t"}, "y"}}),
             1, 2));
    // Two merged axes, and the axes of a kernel in another order.
    CHECK(is(stated({{"w", {4, 16, 48}}},
                    {{"Reshape", {"w", "shape"}, "t"}, {"MatMul", {"x", "t"}, "y"}},
                    int64_tensor("shape", {64, 48})),
             0, 2));
    CHECK(is(stated({{"w", {3, 3, 8, 16}}},
                    {{"Transpose", {"w"}, "t", numbers_attribute("perm", {3, 2, 0, 1})},
                     {"Conv", {"x", "t"}, "y"}}),
             0, 3));
    // A part of an axis is not followed.
    const io::contraction part =
        through({"Reshape", {"w", "shape"}, "t"}, int64_tensor("shape", {8, 8, 48}));
    CHECK_FALSE(part.known());
    CHECK_FALSE(io::is_in_no_product(part));
    has(part.why, "cannot be followed");
    // What cannot be followed stays so, whatever comes behind it.
    const std::vector<stored_table> stack{{"w", {32, 4, 16}}};
    const std::vector<graph_node> turned{
        {"Reshape", {"w", "shape"}, "t"},
        {"Transpose", {"t"}, "u", numbers_attribute("perm", {1, 0})},
        {"MatMul", {"x", "u"}, "y"}};
    const io::contraction unknown = stated(stack, turned);
    CHECK_FALSE(unknown.known());
    has(unknown.why, "cannot be followed");
    // A shape of the graph itself.
    std::vector<graph_node> constant{
        {"Constant", {}, "shape", numbers_attribute("value_ints", {32, 64})}};
    constant.insert(constant.end(), turned.begin(), turned.end());
    CHECK(is(stated(stack, constant), 1, 3));
    // Quantized weights: dequantized, then transposed.
    CHECK(is(stated({{"w", {48, 64}, 3}}, {{"DequantizeLinear", {"w", "s", "z"}, "d"},
                                           {"Transpose", {"d"}, "t"},
                                           {"MatMul", {"x", "t"}, "y"}}),
             1, 2));
}

TEST_CASE("ONNX: scales of the columns of a square matrix are not those of its rows", "[onnx]") {
    if (!supported()) return;
    const auto layout_of = [](const graph_node& product) {
        const std::string codes(64 * 64, '\1');
        const graph_node scaled{
            "DequantizeLinear", {"W", "W_scale", "W_zero_point"}, "d", whole_attribute("axis", 1)};
        const std::string graph =
            field(1, scaled.message()) + field(1, product.message()) +
            field(5, described("W", 3, {64, 64}) + raw(codes)) +
            field(5, described("W_scale", 1, {64}) + raw(std::string(256, '\x3f'))) +
            field(5, described("W_zero_point", 3, {64}) + raw(std::string(64, '\0')));
        const scratch_dir dir;
        const engine::model m =
            model_of({dir.file("m.onnx", field(1, std::uint64_t{8}) +
                                             field(2, std::string("test")) + field(7, graph))});
        const io::tensor_info* const w = info_in(m, "W");
        REQUIRE(w != nullptr);
        return w->layout;
    };
    CHECK(layout_of({"MatMul", {"x", "d"}, "y"}).empty());
    CHECK(layout_of({"Gemm", {"x", "d"}, "y", whole_attribute("transB", 1)}) == "int8-rows");
}

TEST_CASE("ONNX: tensors of several nodes, and of no product", "[onnx]") {
    if (!supported()) return;
    const std::vector<stored_table> w{{"w", {64, 64}}};
    const io::contraction twice =
        stated(w, {{"MatMul", {"x", "w"}, "y"}, {"MatMul", {"y", "w"}, "z"}});
    CHECK(is(twice, 0, 1));
    has(twice.why, "and 1 more");
    const io::contraction both = stated(
        w, {{"MatMul", {"x", "w"}, "y"}, {"Gemm", {"y", "w"}, "z", whole_attribute("transB", 1)}});
    CHECK_FALSE(both.known());
    CHECK_FALSE(io::is_in_no_product(both));
    has(both.why, "products disagree");
    // A table that is the last product's weight, too.
    CHECK(is(stated(w, {{"Gather", {"w", "i"}, "e"},
                        {"Transpose", {"w"}, "t"},
                        {"MatMul", {"e", "t"}, "y"}}),
             1, 2));
    CHECK(stated(w, {{"Gather", {"w", "i"}, "e"}}).first == io::only_looked_up);
    CHECK(stated(w, {{"Add", {"x", "w"}, "y"}}).first == io::in_no_product);
    // No node: subgraphs are not read.
    CHECK(is(stated(w, {}), 0, 0));
    // Values that name each other end somewhere.
    CHECK(is(stated(w, {{"Identity", {"w"}, "a"}, {"Identity", {"a"}, "w"}}), 0, 0));
}

TEST_CASE("ONNX: every cut and changed byte is refused or read without harm", "[onnx][hostile]") {
    if (!supported()) return;
    const scratch_dir dir;
    const std::string sound = slurp(fixture("onnx.onnx"));
    int opened = 0;
    const auto try_bytes = [&](const std::string& bytes) {
        try {
            const auto file = io::open_model(dir.file("bad.onnx", bytes));
            ++opened;
            for (std::size_t i = 0; i < file->tensors().size(); ++i) {
                if (file->tensors()[i].note.empty()) content(*file, i);
            }
        } catch (const base::error& e) {
            CHECK(static_cast<int>(e.kind()) == static_cast<int>(base::error_kind::input));
        }
    };
    for (std::size_t length = 0; length < sound.size(); length += 61) {
        try_bytes(sound.substr(0, length));
    }
    for (std::size_t at = 0; at < sound.size(); at += 13) {
        std::string damaged = sound;
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
        try_bytes(damaged);
    }
    CHECK(opened > 0);
}
