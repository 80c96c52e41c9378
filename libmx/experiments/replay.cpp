// SPDX-License-Identifier: Apache-2.0
#include "libmx/experiments/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "libmx/base/bits.hpp"
#include "libmx/base/exact_sum.hpp"
#include "libmx/base/status.hpp"
#include "libmx/io/input_file.hpp"
#include "libmx/io/input_paths.hpp"
#include "libmx/lab/optimizer.hpp"
#include "libmx/lab/proxy.hpp"
#include "libmx/lab/tensor_file.hpp"
#include "libmx/report/json_reader.hpp"
#include "libmx/report/members.hpp"

namespace mx::experiments {
namespace {

namespace fs = std::filesystem;
using conformance::verify::difference;
using conformance::verify::verification;
using lab::activation;
using lab::execution_context;
using lab::mean_squared_error;
using lab::moments;
using lab::norm_kind;
using lab::of;
using lab::optimizer;
using lab::parameter;
using lab::parameter_kind;
using lab::parse_settings;
using lab::precision;
using lab::precision_of;
using lab::setting;
using lab::student;
using lab::student_shape;
using lab::tensor_file;
using lab::update;
using report::record;

constexpr std::string_view inputs_end = ".inputs.safetensors";

std::string stem_of(const std::string& json_path) {
    return json_path.substr(0, json_path.size() - std::string_view(".json").size());
}

record read_json(const std::string& path) {
    const io::shared_file file = io::input_file::open(path);
    std::uint64_t at = 0;
    const report::byte_source source = [&](std::span<char> out) {
        const auto count =
            static_cast<std::size_t>(std::min<std::uint64_t>(file->size() - at, out.size()));
        file->read(at, std::as_writable_bytes(out.first(count)));
        at += count;
        return count;
    };
    return report::read_object(source, path);
}

// What the case says, with errors that name the member.
struct case_file {
    std::string path;
    record members;

    [[noreturn]] void fail(const std::string& message) const {
        throw base::error(base::error_kind::input, message, {path, {}, {}});
    }
    const record& object(const record& in, const std::string& name) const {
        const report::value* v = report::find(in, name);
        const auto* r = v == nullptr ? nullptr : std::get_if<record>(v);
        if (r == nullptr) fail(fmt::format("has no object '{}'", name));
        return *r;
    }
    const report::list& list(const record& in, const std::string& name) const {
        const report::value* v = report::find(in, name);
        const auto* l = v == nullptr ? nullptr : std::get_if<report::list>(v);
        if (l == nullptr) fail(fmt::format("has no list '{}'", name));
        return *l;
    }
    double number(const record& in, const std::string& name) const {
        const std::optional<double> n = report::number_of(in, name);
        if (!n) fail(fmt::format("has no number '{}'", name));
        return *n;
    }
    std::size_t count(const std::string& name) const {
        const double n = number(members, name);
        if (!(n >= 1) || n > 1e6 || n != std::floor(n)) {
            fail(fmt::format("'{}' is {}, not a count from 1 to 1000000", name, n));
        }
        return static_cast<std::size_t>(n);
    }
    std::vector<double> numbers(const report::list& l) const {
        std::vector<double> all;
        for (const report::value& v : l) {
            const std::optional<double> n = report::number_of(v);
            all.push_back(n ? *n : std::numeric_limits<double>::quiet_NaN());
        }
        return all;
    }
};

// The recipes of a recorded scheme.
std::vector<setting> settings_of(const case_file& in, const std::string& scheme,
                                 const record& operands) {
    static const std::map<std::string, std::string> recipes{{"none", "none"},
                                                            {"bf16", "bf16"},
                                                            {"e4m3", "mxfp8:round=away"},
                                                            {"e5m2", "mxfp8_e5m2:round=away"},
                                                            {"e2m1", "mxfp4:round=away"},
                                                            {"e2m3", "mxfp6_e2m3:round=away"},
                                                            {"e3m2", "mxfp6_e3m2:round=away"}};
    std::string text;
    bool forward = false, backward = false;
    for (const auto& [operand, value] : operands) {
        const auto* format = std::get_if<std::string>(&value);
        const auto found = format == nullptr ? recipes.end() : recipes.find(*format);
        if (found == recipes.end()) {
            in.fail(fmt::format("scheme {}: operand {} has an unknown format", scheme, operand));
        }
        if (*format == "none") continue;
        (operand.rfind("fprop", 0) == 0 ? forward : backward) = true;
        text += fmt::format("{}={} ", operand, found->second);
    }
    if (scheme.rfind("told", 0) == 0) text += "ln-gain=mxfp8:round=away ";
    if (forward) {
        text += "vector=bf16 ln=bf16 ln-bias=frozen ";
        if (!backward) text += "vector-backward=fp32 ln-backward=fp32 ";
    }
    return parse_settings(text);
}

// Bounds of one scheme.
struct bounds {
    double gradients = 1e-4;
    double last_loss = 1e-2;
};

bounds bounds_of(const std::string& scheme, std::size_t width) {
    bounds b;
    for (const char* tight : {"fp32", "mxfp4_e2m1", "mxfp6_e2m3", "told_gain_only"}) {
        if (scheme == tight) b.gradients = 1e-6;
    }
    if (scheme == "e4m3" && width <= 64) b.gradients = 1e-6;
    if (scheme == "fp32" || scheme == "mxfp4_e2m1") b.last_loss = 1e-6;
    return b;
}

std::string hex_of(float x) { return fmt::format("0x{:08x}", base::bits_of(x)); }

double square(double x) { return x * x; }

// CASE.SCHEME.safetensors, beside the case that names the scheme.
std::string path_of(const case_file& in, const std::string& scheme) {
    const std::string stem = fs::path(stem_of(in.path)).filename().string();
    const auto path = io::path_beside(in.path, fmt::format("{}.{}.safetensors", stem, scheme));
    if (!path) in.fail(fmt::format("scheme '{}': its file is not beside the case", scheme));
    return *path;
}

// One scheme of a case.
class scheme_replay {
  public:
    scheme_replay(const case_file& in, const tensor_file& inputs, const std::string& scheme,
                  const record& about, const replay_options& options)
        : in_(in),
          inputs_(inputs),
          about_(about),
          options_(options),
          stored_(path_of(in, scheme)),
          on_(options.threads, options.backend),
          bounds_(bounds_of(scheme, in.count("d"))),
          shape_{in.count("d"), in.count("layers"), activation::gelu, norm_kind::layer},
          net_(shape_),
          batch_(in.count("batch")) {
        if (shape_.hidden() != in.count("hidden")) in.fail("'hidden' is not four times 'd'");
        if (in.number(in.members, "lr") <= 0) in.fail("'lr' is not positive");
        const auto stride = stored_.metadata().find("fc_weight_stride");
        if (stride != stored_.metadata().end()) {
            stride_ = static_cast<std::size_t>(std::strtoull(stride->second.c_str(), nullptr, 10));
            if (stride_ == 0) stored_.fail("fc_weight_stride is not a number from 1 on");
        }
        const std::vector<setting> settings = settings_of(in, scheme, in.object(about, "operands"));
        how_ = precision_of(settings);
        result_.file = stored_.path();
        result_.kind = "training";
        result_.by = to_string(settings);
        if (result_.by.empty()) result_.by = "fp32";
    }

    verification run() {
        check_sums();
        const report::list& fixed = in_.list(about_, "fixed");
        for (std::size_t set = 0; set < fixed.size(); ++set) {
            const auto* about = std::get_if<record>(&fixed[set]);
            if (about == nullptr) in_.fail("'fixed' is not a list of objects");
            replay_fixed(set, *about);
        }
        if (report::find(about_, "loss") != nullptr) replay_trajectory();
        if (result_.compared == 0) stored_.fail("holds no value that could be compared");
        return std::move(result_);
    }

  private:
    void stop_if_cancelled() const {
        if (options_.cancel == nullptr || !options_.cancel->load()) return;
        throw base::error(base::error_kind::cancelled, "stopped before the end");
    }

    void differ(const std::string& tensor, std::uint64_t index, const std::string& bound,
                conformance::verify::shown_number expected, conformance::verify::shown_number got) {
        ++result_.differences;
        if (result_.first.size() >= options_.show) return;
        difference d;
        d.tensor = tensor;
        d.by = bound;
        d.index = index;
        d.input = {"", bound};
        d.expected = std::move(expected);
        d.got = std::move(got);
        result_.first.push_back(std::move(d));
    }
    void differ(const std::string& tensor, std::uint64_t index, const std::string& bound,
                float expected, float got) {
        differ(tensor, index, bound, {hex_of(expected), fmt::format("{}", expected)},
               {hex_of(got), fmt::format("{}", got)});
    }

    std::vector<float> parameters(const std::string& prefix) const {
        std::vector<float> values(net_.parameters().size());
        for (const parameter& p : net_.parameters().all()) {
            const std::vector<float> x = inputs_.read(prefix + "." + p.name, p.shape);
            std::ranges::copy(x, of(values, p));
        }
        return values;
    }

    // The elements of a parameter that files hold.
    std::vector<float> held(const parameter& p, const std::vector<float>& values) const {
        const std::size_t step = p.kind == parameter_kind::weight ? stride_ : 1;
        std::vector<float> x;
        for (std::size_t i = 0; i < p.count; i += step) x.push_back(of(values, p)[i]);
        return x;
    }

    std::vector<float> stored(const std::string& name, const parameter& p) const {
        std::vector<float> x = stored_.read(name);
        const std::size_t step = p.kind == parameter_kind::weight ? stride_ : 1;
        if (x.size() != (p.count + step - 1) / step) {
            stored_.fail(
                fmt::format("has {} elements, not every {}th of {}", x.size(), step, p.count),
                name);
        }
        return x;
    }

    // Loss and gradients at these parameters.
    float gradients_at(const std::vector<float>& values, const float* x, const float* y,
                       std::vector<float>& gradients) {
        const float* const out = net_.forward(on_, how_, values, x, batch_, 0, 0);
        std::vector<float> dy(batch_ * shape_.width);
        gradients.resize(values.size());
        const float loss =
            mean_squared_error(on_, out, y, batch_, shape_.width, dy.data(), losses_);
        net_.backward(on_, how_, values, dy.data(), gradients);
        return loss;
    }

    // Whether what the file holds whole is what the case was made with.
    void check_sums() {
        const record& sums = in_.object(about_, "norm_and_sum");
        for (const auto& [group, member] : sums) {
            const auto* tensors = std::get_if<record>(&member);
            if (tensors == nullptr) in_.fail("'norm_and_sum' is not an object of objects");
            for (const parameter& p : net_.parameters().all()) {
                const std::string name = fmt::format("{}.{}", group, p.name);
                const report::value* stated = report::find(*tensors, p.name);
                if (stated == nullptr || !stored_.has(name)) continue;
                if (p.kind == parameter_kind::weight && stride_ != 1) continue;
                const auto* pair = std::get_if<report::list>(stated);
                if (pair == nullptr || pair->size() != 2) in_.fail("a norm and sum is no pair");
                const std::vector<double> numbers = in_.numbers(*pair);
                check_sum(name, p, numbers[0], numbers[1]);
            }
        }
    }

    void check_sum(const std::string& name, const parameter& p, double norm, double sum) {
        const std::vector<float> x = stored(name, p);
        base::exact_sum squares, plain, magnitudes;
        bool finite = true;
        for (const float v : x) {
            finite = finite && std::isfinite(v);
            if (!finite) break;
            const double wide = static_cast<double>(v);
            squares.add(wide * wide);
            plain.add(wide);
            magnitudes.add(std::abs(wide));
        }
        const double own_norm = finite ? std::sqrt(squares.value()) : HUGE_VAL;
        const double own_sum = finite ? plain.value() : HUGE_VAL;
        // What float64 sums in another order may differ by.
        const double slack = 1e-14 * (magnitudes.value() + 1e-300);
        if (std::abs(own_sum - sum) <= slack && std::abs(own_norm - norm) <= 1e-13 * norm) return;
        changed_[name] = own_sum - sum;
    }

    // How likely one changed byte of `stored` explains a sum that is off by `off`: 0 is likeliest.
    static double distance_to_change(float stored, float own, double off) {
        const double wide = static_cast<double>(stored);
        if (!std::isfinite(wide)) return 0;
        const double before = wide - off;
        const std::uint32_t flipped =
            base::bits_of(stored) ^ base::bits_of(static_cast<float>(before));
        const int first = flipped == 0 ? 0 : __builtin_ctz(flipped) / 8;
        const bool one_byte = flipped != 0 && (flipped >> 8 * first) < 256;
        const double away = std::abs(before - static_cast<double>(own));
        return one_byte ? away : 1e30 + away;
    }

    // How independent runs agreed at this set, those that summed in the order of this program where
    // the case names them: the smallest share of equal bits, and the largest distance in units of
    // the tensor's root mean square.
    struct agreement {
        double equal = 1, distance = 0;
        bool known = false;
    };
    agreement agreement_at(std::size_t set) const {
        agreement a;
        const report::value* v = report::find(about_, "reimplementation_agreement");
        const auto* orders = v == nullptr ? nullptr : std::get_if<record>(v);
        if (orders == nullptr) return a;
        const auto ours = [](const auto& order) {
            return order.first.find("ascending k") != std::string::npos;
        };
        const bool named = std::any_of(orders->begin(), orders->end(), ours);
        for (const auto& [order, member] : *orders) {
            if (named && order.find("ascending k") == std::string::npos) continue;
            const auto* r = std::get_if<record>(&member);
            if (r == nullptr) continue;
            const report::value* fixed = report::find(*r, "fixed");
            const auto* l = fixed == nullptr ? nullptr : std::get_if<report::list>(fixed);
            if (l == nullptr || l->size() <= set) continue;
            const auto* at = std::get_if<record>(&(*l)[set]);
            if (at == nullptr) continue;
            a.known = true;
            a.equal = std::min(a.equal, report::number_of(*at, "equal_share").value_or(0));
            a.distance =
                std::max(a.distance, report::number_of(*at, "max_abs_over_rms").value_or(0));
        }
        return a;
    }

    void replay_fixed(std::size_t set, const record& about) {
        stop_if_cancelled();
        const std::string prefix = fmt::format("set{}", set);
        const std::vector<float> values = parameters(prefix);
        const tensor::shape batch{batch_, shape_.width};
        const std::vector<float> x = inputs_.read(prefix + ".x", batch);
        const std::vector<float> y = inputs_.read(prefix + ".y", batch);
        std::vector<float> gradients;
        const float loss = gradients_at(values, x.data(), y.data(), gradients);
        check_loss(prefix + " loss", set, in_.number(about, "loss"), loss, 1e-6);

        // Where independent runs agreed in every bit, one unequal element is a changed byte: a
        // rounding that falls the other way moves a whole row or column.
        const agreement agreed = agreement_at(set);
        const bool to_the_bit = agreed.known && agreed.equal == 1;
        std::uint64_t unequal = 0;
        const std::uint64_t before = result_.differences;
        double distance = 0, norm = 0, worst = 0;
        std::string worst_tensor;
        std::size_t worst_index = 0;
        std::pair<float, float> worst_values;
        for (const parameter& p : net_.parameters().all()) {
            const std::string name = prefix + "." + p.name;
            if (!stored_.has(name)) continue;
            const std::vector<float> expected = stored(name, p);
            const std::vector<float> got = held(p, gradients);
            result_.compared += expected.size();
            double power = 0;
            for (const float e : expected) power += square(static_cast<double>(e));
            const double rms = std::sqrt(power / static_cast<double>(expected.size()));
            const bool bf16 = stored_.info(name).type == tensor::dtype::bf16;
            const auto changed = changed_.find(name);
            std::optional<std::size_t> likeliest;
            double off = HUGE_VAL;
            for (std::size_t i = 0; i < expected.size(); ++i) {
                const double e = static_cast<double>(expected[i]);
                const double d = static_cast<double>(got[i]) - e;
                distance += square(d);
                norm += square(e);
                if (!(std::abs(d) <= worst)) {
                    worst = std::abs(d);
                    worst_tensor = name;
                    worst_index = i;
                    worst_values = {expected[i], got[i]};
                }
                if (changed != changed_.end()) {
                    const double away = distance_to_change(expected[i], got[i], changed->second);
                    if (away < off) {
                        off = away;
                        likeliest = i;
                    }
                    continue;
                }
                // Roundings to bfloat16 that fall the other way move an element by a unit or two.
                const double bound = bf16 ? std::max(0.02 * rms, 0x1p-5 * std::abs(e))
                                          : std::max(10 * agreed.distance, 1e-4) * rms;
                unequal += expected[i] != got[i] ? 1 : 0;
                if (!(std::abs(d) <= bound) && (agreed.known || bf16)) {
                    differ(name, i, "element", expected[i], got[i]);
                }
            }
            if (likeliest) {
                differ(name, *likeliest, "norm and sum", expected[*likeliest], got[*likeliest]);
                changed_.erase(changed);
            }
        }
        if (result_.differences != before) return;  // named already
        if (to_the_bit && unequal == 1) {
            differ(worst_tensor, worst_index, "bits", worst_values.first, worst_values.second);
            return;
        }
        const double relative = norm > 0 ? std::sqrt(distance / norm) : 0;
        if (worst_tensor.empty() || relative <= bounds_.gradients) return;
        differ(worst_tensor, worst_index,
               fmt::format("L2 {:.1e} > {:.0e}", relative, bounds_.gradients), worst_values.first,
               worst_values.second);
    }

    void check_loss(const std::string& name, std::size_t index, double expected, float got,
                    double bound) {
        ++result_.compared;
        const double own = static_cast<double>(got);
        if (std::abs(own - expected) <= bound * std::abs(expected)) return;
        if (std::isnan(expected) && std::isnan(own)) return;
        differ(name, index, fmt::format("relative {:.0e}", bound),
               {"", fmt::format("{}", expected)}, {"", fmt::format("{}", own)});
    }

    void replay_trajectory() {
        const std::vector<double> losses = in_.numbers(in_.list(about_, "loss"));
        const std::size_t steps = in_.count("steps");
        if (losses.size() != steps) in_.fail("'loss' has not as many numbers as there are 'steps'");
        const double rate = in_.number(in_.members, "lr");
        std::vector<float> values = parameters("init");
        const tensor::shape all{steps, batch_, shape_.width};
        const std::vector<float> x = inputs_.read("x", all);
        const std::vector<float> y = inputs_.read("y", all);
        std::vector<float> gradients;
        moments m;
        const std::size_t one = batch_ * shape_.width;
        for (std::size_t step = 1; step <= steps; ++step) {
            stop_if_cancelled();
            const std::size_t at = (step - 1) * one;
            const float loss = gradients_at(values, x.data() + at, y.data() + at, gradients);
            check_loss("loss", step, losses[step - 1], loss, step <= 2 ? 1e-6 : bounds_.last_loss);
            update(on_, optimizer::adam, net_.parameters(),
                   {step, how_.norm_bias_trains ? step : 0}, rate, gradients, values, m);
        }
        // What is left of the sums: tensors of the trajectory, for which there are no bounds.
        for (const auto& [name, sum] : changed_) {
            differ(name, 0, "norm and sum", {"", "those that the case states"},
                   {"", fmt::format("a sum off by {:.3g}", sum)});
        }
    }

    const case_file& in_;
    const tensor_file& inputs_;
    const record& about_;
    const replay_options& options_;
    tensor_file stored_;
    execution_context on_;
    bounds bounds_;
    student_shape shape_;
    student net_;
    std::size_t batch_;
    std::size_t stride_ = 1;
    precision how_;
    lab::array_of<double> losses_;
    verification result_;
    std::map<std::string, double> changed_;  // tensors whose sum is off, and by how much
};

}  // namespace

std::vector<std::string> recorded_cases(const std::string& folder) {
    std::vector<std::string> found;
    std::error_code failure;
    if (!fs::is_directory(folder, failure)) return found;
    for (fs::directory_iterator it(folder, failure), end; !failure && it != end;
         it.increment(failure)) {
        const std::string path = it->path().string();
        if (it->path().extension() != ".json") continue;
        if (fs::exists(stem_of(path) + std::string(inputs_end), failure)) found.push_back(path);
    }
    std::ranges::sort(found);
    return found;
}

std::vector<verification> replay(const std::string& json_path, const replay_options& options) {
    const case_file in{json_path, read_json(json_path)};
    const tensor_file inputs(stem_of(json_path) + std::string(inputs_end));
    std::vector<verification> all;
    replay_options left = options;
    for (const auto& [scheme, member] : in.object(in.members, "schemes")) {
        const auto* about = std::get_if<record>(&member);
        if (about == nullptr) in.fail(fmt::format("scheme {} is not an object", scheme));
        all.push_back(scheme_replay(in, inputs, scheme, *about, left).run());
        left.show -= std::min(left.show, all.back().first.size());
    }
    if (all.empty()) in.fail("has no schemes");
    return all;
}

}  // namespace mx::experiments
