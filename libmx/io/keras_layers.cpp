// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/keras_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "libmx/io/no_product.hpp"

namespace mx::io {
namespace {

struct keras_layer {
    std::string type;      // lower case, without underscores
    std::string equation;  // of EinsumDense
};

// What a variable of a layer sums over: from axis `first` (negative: from the end) to `behind` axes
// before the end.
struct keras_variable {
    std::string_view types;  // separated by spaces
    std::string_view name;
    std::string_view number;  // its place in vars/ of Keras 3
    int first, behind;
};

// THE VARIABLES of Keras layers that are multiplied.
constexpr std::array keras_variables{
    keras_variable{"dense conv1d conv2d conv3d lstm gru simplernn cudnnlstm cudnngru lstmcell "
                   "grucell simplernncell cell convlstm1d convlstm2d convlstm3d",
                   "kernel", "0", 0, 1},
    keras_variable{"lstm gru simplernn cudnnlstm cudnngru lstmcell grucell simplernncell cell "
                   "convlstm1d convlstm2d convlstm3d",
                   "recurrent_kernel", "1", 0, 1},
    keras_variable{"conv1dtranspose conv2dtranspose conv3dtranspose", "kernel", "0", -1, 0},
    keras_variable{"depthwiseconv1d depthwiseconv2d", "depthwise_kernel", "0", 0, 2},
    keras_variable{"depthwiseconv1d depthwiseconv2d", "kernel", "0", 0, 2},
    keras_variable{"separableconv1d separableconv2d", "depthwise_kernel", "0", 0, 2},
    keras_variable{"separableconv1d separableconv2d", "pointwise_kernel", "1", 0, 1},
    keras_variable{"querydense keydense valuedense query key value", "kernel", "0", 0, 2},
    keras_variable{"outputdense attentionoutput", "kernel", "0", 0, 1},
};

std::string plain_type(std::string_view name) {
    std::string type;
    for (const char c : name) {
        if (c != '_') type += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return type;
}

bool lists_type(std::string_view types, std::string_view type) {
    for (std::size_t at = types.find(type); at != std::string_view::npos;
         at = types.find(type, at + 1)) {
        const std::size_t end = at + type.size();
        if ((at == 0 || types[at - 1] == ' ') && (end == types.size() || types[end] == ' ')) {
            return true;
        }
    }
    return false;
}

bool is_digits(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// dense_12: dense. The number counts layers of a class.
std::string_view without_number(std::string_view name) {
    const std::size_t line = name.rfind('_');
    return line != std::string_view::npos && is_digits(name.substr(line + 1)) ? name.substr(0, line)
                                                                              : name;
}

// The layers of a configuration by name, those inside others, too.
class keras_config {
  public:
    explicit keras_config(std::string_view text) {
        if (text.empty()) return;
        const auto config = nlohmann::json::parse(text, nullptr, false);
        std::vector<const nlohmann::json*> open{&config};
        while (!open.empty()) {
            const nlohmann::json& at = *open.back();
            open.pop_back();
            if (at.is_object()) add(at);
            if (!at.is_structured()) continue;
            std::vector<const nlohmann::json*> inside;
            for (const nlohmann::json& each : at) inside.push_back(&each);
            open.insert(open.end(), inside.rbegin(), inside.rend());
        }
    }

    // The layer of this name, or of the class that it spells; of EinsumDense only by name or count.
    // Where variables are `numbered`, names are classes and counts, whatever layers are called.
    keras_layer of(std::string_view name, bool numbered) const {
        const auto at = layers_.find(name);
        if (!numbered && at != layers_.end()) return at->second;
        const std::string_view stem = without_number(name);
        keras_layer layer{plain_type(stem), {}};
        if (layer.type == "einsumdense") {
            std::size_t n = 0;
            if (stem.size() < name.size() && name.size() - stem.size() < 8) {
                n = static_cast<std::size_t>(std::stoul(std::string(name.substr(stem.size() + 1))));
            }
            if (n < equations_.size()) layer.equation = equations_[n];
        }
        return layer;
    }

  private:
    void add(const nlohmann::json& layer) {
        const auto type = layer.find("class_name"), config = layer.find("config");
        if (type == layer.end() || !type->is_string() || config == layer.end() ||
            !config->is_object()) {
            return;
        }
        keras_layer found{plain_type(type->get<std::string>()), {}};
        if (found.type == "einsumdense") {
            found.equation = config->value("equation", nlohmann::json()).is_string()
                                 ? config->at("equation").get<std::string>()
                                 : std::string();
            equations_.push_back(found.equation);
        }
        const auto name = config->find("name");
        if (name != config->end() && name->is_string()) {
            layers_.emplace(name->get<std::string>(), std::move(found));
        }
    }

    std::map<std::string, keras_layer, std::less<>> layers_;
    std::vector<std::string> equations_;
};

std::vector<std::string_view> parts_of(std::string_view path) {
    std::vector<std::string_view> parts;
    while (true) {
        const std::size_t end = path.find('/');
        parts.push_back(path.substr(0, end));
        if (end == std::string_view::npos) return parts;
        path.remove_prefix(end + 1);
    }
}

// The kernel is the second operand; the axes that the result lacks are summed over.
contraction of_equation(const std::string& equation, int rank) {
    const std::size_t comma = equation.find(','), arrow = equation.find("->");
    if (comma == std::string::npos || arrow == std::string::npos || arrow < comma) return {};
    const std::string_view kernel = std::string_view(equation).substr(comma + 1, arrow - comma - 1);
    if (kernel.size() != static_cast<std::size_t>(rank)) return {};
    contraction c;
    for (int i = 0; i < rank; ++i) {
        if (equation.find(kernel[static_cast<std::size_t>(i)], arrow) != std::string::npos)
            continue;
        if (c.known() && c.last != i) return {};  // no neighbours
        if (!c.known()) c.first = i;
        c.last = i + 1;
    }
    return c;
}

contraction of_variable(const keras_layer& layer, std::string_view variable, bool numbered,
                        int rank) {
    if (layer.type == "einsumdense" && variable == (numbered ? "0" : "kernel")) {
        return of_equation(layer.equation, rank);
    }
    if (layer.type == "embedding") {
        return {only_looked_up, only_looked_up, {}};
    }
    for (const keras_variable& row : keras_variables) {
        if (variable != (numbered ? row.number : row.name) || !lists_type(row.types, layer.type)) {
            continue;
        }
        const int first = row.first < 0 ? rank + row.first : row.first;
        if (first >= 0 && first < rank - row.behind) return {first, rank - row.behind, {}};
    }
    return {};
}

void state_one(tensor_info& info, const keras_config& config) {
    const int rank = static_cast<int>(info.shape.size());
    std::vector<std::string_view> parts = parts_of(info.name);
    if (rank < 2 || parts.size() < 2) return;
    std::string_view variable = parts.back();
    parts.pop_back();
    const bool numbered = parts.back() == "vars" && is_digits(variable);
    if (numbered) parts.pop_back();
    variable = variable.substr(0, variable.find(':'));
    // The innermost part that is a known layer.
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        const keras_layer layer = config.of(*part, numbered);
        contraction found = of_variable(layer, variable, numbered, rank);
        if (found.first == 0 && found.last == 0) continue;
        found.why = fmt::format("Keras layer '{}' ({}{})", *part, layer.type,
                                found.known() ? "" : ": no product, its rows are looked up");
        info.sums_over = std::move(found);
        return;
    }
}

}  // namespace

bool looks_like_keras_names(const std::vector<tensor_info>& tensors) {
    return std::ranges::any_of(tensors, [](const tensor_info& t) {
        return t.name.find("/vars/") != std::string::npos ||
               t.name.find("kernel") != std::string::npos;
    });
}

void state_keras_contractions(std::vector<tensor_info>& tensors, std::string_view config) {
    const keras_config layers(config);
    for (tensor_info& t : tensors) state_one(t, layers);
}

}  // namespace mx::io
