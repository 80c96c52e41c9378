// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/onnx/onnx_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "libmx/files/onnx/onnx_wire.hpp"
#include "libmx/io/read_budget.hpp"

namespace mx::io {
namespace {

constexpr std::size_t onnx_tensors_limit = 1 << 18;
constexpr std::uint64_t name_limit = 4096;
constexpr std::uint64_t text_limit = 64 << 10;
constexpr std::size_t metadata_limit = 4096;

// Numbers of fields, from onnx/onnx, onnx/onnx.proto.
namespace model_field {
enum : std::uint32_t {
    ir_version = 1,
    producer_name = 2,
    producer_version = 3,
    domain = 4,
    model_version = 5,
    doc_string = 6,
    graph = 7,
    opset_import = 8,
    metadata_props = 14,
};
}
namespace graph_field {
enum : std::uint32_t { node = 1, name = 2, initializer = 5, sparse_initializer = 15 };
}
namespace node_field {
enum : std::uint32_t { input = 1, output = 2, name = 3, op_type = 4, attribute = 5 };
}
namespace attribute_field {
enum : std::uint32_t { name = 1, i = 3, s = 4, tensor = 5, graph = 6, ints = 8, graphs = 11 };
}
namespace tensor_field {
enum : std::uint32_t {
    dims = 1,
    data_type = 2,
    segment = 3,
    name = 8,
    external_data = 13,
    data_location = 14,
};
}
namespace sparse_field {
enum : std::uint32_t { values = 1, dims = 3 };
}
namespace entry_field {  // of StringStringEntryProto, and of OperatorSetIdProto
enum : std::uint32_t { key = 1, value = 2 };
}

class model_walk {
  public:
    explicit model_walk(const shared_file& file) : at_(file, 0, file->size()) {}

    onnx_model model() {
        bool has_graph = false;
        while (at_.next()) {
            const std::uint32_t field = at_.field();
            if (field == model_field::ir_version) keep("ir_version", std::to_string(number()));
            if (field == model_field::producer_name) keep_text("producer_name");
            if (field == model_field::producer_version) keep_text("producer_version");
            if (field == model_field::domain) keep_text("domain");
            if (field == model_field::model_version) {
                keep("model_version", std::to_string(number()));
            }
            if (field == model_field::doc_string && at_.size() <= text_limit) {
                keep_text("doc_string");
            }
            if (field == model_field::graph) {
                has_graph = true;
                graph();
            }
            if (field == model_field::opset_import) opset();
            if (field == model_field::metadata_props) {
                auto [key, value] = entry();
                keep(key, std::move(value));
            }
        }
        if (!has_graph) at_.fail("is not an ONNX model: it has no graph");
        for (onnx_tensor& constant : constants_) add(model_.tensors, std::move(constant));
        check_names();
        return std::move(model_);
    }

  private:
    std::uint64_t number() {
        if (at_.is_bytes() || at_.size() != 0) {
            at_.fail(fmt::format("field {} is not a whole number", at_.field()));
        }
        return at_.value();
    }

    void keep(const std::string& key, std::string value) {
        if (value.empty()) return;
        if (model_.metadata.size() == metadata_limit) {
            at_.fail(fmt::format("more than {} metadata entries", metadata_limit));
        }
        model_.metadata.emplace(key, std::move(value));
    }

    void keep_text(const char* key) { keep(key, at_.text(text_limit)); }

    // Calls `body` with the number of each field of the message at hand.
    template <class Body>
    void for_each_field(Body&& body) {
        at_.enter();
        while (at_.next()) body(at_.field());
        at_.leave();
    }

    void add(std::vector<onnx_tensor>& to, onnx_tensor tensor) {
        if (model_.tensors.size() + constants_.size() >= 2 * onnx_tensors_limit) {
            at_.fail(fmt::format("lists more than {} tensors", onnx_tensors_limit));
        }
        to.push_back(std::move(tensor));
    }

    std::pair<std::string, std::string> entry() {
        std::pair<std::string, std::string> both;
        for_each_field([&](std::uint32_t field) {
            if (field == entry_field::key) both.first = at_.text(name_limit);
            if (field == entry_field::value) {
                both.second = at_.size() > text_limit
                                  ? fmt::format("({} bytes of text)", at_.size())
                                  : at_.text(text_limit);
            }
        });
        return both;
    }

    void opset() {
        std::string domain;
        std::uint64_t version = 0;
        for_each_field([&](std::uint32_t field) {
            if (field == entry_field::key) domain = at_.text(name_limit);
            if (field == entry_field::value) version = number();
        });
        keep("opset." + (domain.empty() ? "ai.onnx" : domain), std::to_string(version));
    }

    void graph() {
        for_each_field([&](std::uint32_t field) {
            if (field == graph_field::node) node();
            if (field == graph_field::name) keep_text("graph");
            if (field == graph_field::initializer) add(model_.tensors, tensor());
            if (field == graph_field::sparse_initializer) add(model_.tensors, sparse());
        });
    }

    // Only a Constant's tensor is one of the model's weights; other operators' are arguments.
    void node() {
        onnx_node n;
        std::vector<onnx_tensor> values;
        std::vector<std::string> subgraphs;
        for_each_field([&](std::uint32_t field) {
            if (field == node_field::input) n.inputs.push_back(at_.text(name_limit));
            if (field == node_field::output) n.outputs.push_back(at_.text(name_limit));
            if (field == node_field::name) n.name = at_.text(name_limit);
            if (field == node_field::op_type) n.operation = at_.text(name_limit);
            if (field == node_field::attribute) attribute(n, values, subgraphs);
        });
        const std::string output = n.outputs.empty() ? std::string() : n.outputs.front();
        if (n.operation == "Constant" && values.size() == 1) {
            values.front().name = output;
            add(constants_, std::move(values.front()));
        }
        for (const std::string& each : subgraphs) {
            onnx_tensor listed;
            listed.name = fmt::format("{}/{}", n.name.empty() ? output : n.name, each);
            listed.shape = {0};
            listed.note = fmt::format("a subgraph of {}, whose tensors are not read", n.operation);
            add(constants_, std::move(listed));
        }
        if (++nodes_ <= onnx_nodes_limit) {
            model_.nodes.push_back(std::move(n));
        } else {
            model_.nodes.clear();
        }
    }

    void attribute(onnx_node& of, std::vector<onnx_tensor>& values,
                   std::vector<std::string>& subgraphs) {
        std::string name, text;
        std::size_t graphs = 0;
        std::vector<onnx_tensor> found;
        std::vector<std::int64_t> numbers;
        for_each_field([&](std::uint32_t field) {
            if (field == attribute_field::name) name = at_.text(name_limit);
            if (field == attribute_field::i) numbers.push_back(static_cast<std::int64_t>(number()));
            if (field == attribute_field::s && at_.is_bytes() && at_.size() <= name_limit) {
                text = at_.text(name_limit);
            }
            if (field == attribute_field::tensor) {
                if (!found.empty()) at_.fail("an attribute with two tensors");
                found.push_back(tensor());
            }
            if (field == attribute_field::ints) whole_numbers(numbers);
            if (field == attribute_field::graph || field == attribute_field::graphs) ++graphs;
        });
        if (name == "value" && !found.empty()) values.push_back(std::move(found.front()));
        if (name == "equation") of.equation = std::move(text);
        if (!numbers.empty()) of.numbers[name] = std::move(numbers);
        if (graphs == 1) subgraphs.push_back(name);
        if (graphs > 1) subgraphs.push_back(fmt::format("{} ({} of them)", name, graphs));
    }

    // Packed or one by one; of axes, no more than a tensor can have are kept.
    void whole_numbers(std::vector<std::int64_t>& to) {
        const auto keep_one = [&](std::uint64_t value) {
            if (to.size() < axes_limit) to.push_back(static_cast<std::int64_t>(value));
        };
        if (!at_.is_bytes()) return keep_one(number());
        at_.enter();
        for (std::uint64_t value = 0; at_.packed_varint(value);) keep_one(value);
        at_.leave();
    }

    void extent(tensor::shape& shape, std::uint64_t value) {
        if (shape.size() == axes_limit) at_.fail(fmt::format("more than {} axes", axes_limit));
        if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
            at_.fail(fmt::format("a negative extent, {}", static_cast<std::int64_t>(value)));
        }
        shape.push_back(value);
    }

    // Packed or one by one: readers of protobuf take both.
    void extents(tensor::shape& shape) {
        if (!at_.is_bytes()) return extent(shape, number());
        at_.enter();
        for (std::uint64_t value = 0; at_.packed_varint(value);) extent(shape, value);
        at_.leave();
    }

    onnx_tensor tensor() {
        onnx_tensor t;
        t.message = {at_.begin(), at_.size()};
        for_each_field([&](std::uint32_t field) {
            if (field == tensor_field::dims) extents(t.shape);
            if (field == tensor_field::data_type) t.type_id = number();
            if (field == tensor_field::segment) t.note = "tensors in segments are not read";
            if (field == tensor_field::name) t.name = at_.text(name_limit);
            if (field == tensor_field::external_data) {
                const auto [key, value] = entry();
                if (key == "location") t.external.location = value;
                if (key == "offset") t.external.offset = value;
                if (key == "length") t.external.length = value;
            }
            if (field == tensor_field::data_location) t.is_external = number() == 1;
            hold_values(t, static_cast<onnx_field>(field));
        });
        return t;
    }

    void hold_values(onnx_tensor& t, onnx_field field) {
        if (field == onnx_field::raw_data) {
            if (!at_.is_bytes()) at_.fail("raw_data is not bytes");
            t.raw = byte_range{at_.begin(), at_.size()};
        } else if (field == onnx_field::float_data || field == onnx_field::int32_data ||
                   field == onnx_field::string_data || field == onnx_field::int64_data ||
                   field == onnx_field::double_data || field == onnx_field::uint64_data) {
            // A varint by itself takes at least one byte.
            t.held[field] += at_.is_bytes() ? at_.size() : std::max<std::uint64_t>(at_.size(), 1);
        }
    }

    onnx_tensor sparse() {
        onnx_tensor t;
        tensor::shape shape;
        for_each_field([&](std::uint32_t field) {
            if (field == sparse_field::values) t = tensor();
            if (field == sparse_field::dims) extents(shape);
        });
        t.shape = std::move(shape);
        t.note = "sparse tensors are not read";
        return t;
    }

    void check_names() {
        std::set<std::string_view> names;
        for (const onnx_tensor& t : model_.tensors) {
            if (!t.note.empty()) continue;
            if (t.name.empty()) at_.fail("a tensor without a name");
            if (!names.insert(t.name).second) at_.fail("two tensors of this name", t.name);
        }
    }

    wire_reader at_;
    onnx_model model_;
    std::vector<onnx_tensor> constants_;
    std::size_t nodes_ = 0;
};

}  // namespace

onnx_model read_onnx_model(const shared_file& file) { return model_walk(file).model(); }

}  // namespace mx::io
