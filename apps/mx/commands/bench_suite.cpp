// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/commands/bench_suite.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <memory>

#include "apps/mx/backends.hpp"
#include "apps/mx/commands/bench_view.hpp"
#include "apps/mx/outputs.hpp"
#include "libmx/bench/row_source.hpp"
#include "libmx/block/packing.hpp"
#include "libmx/codec/quantizer.hpp"
#include "libmx/conformance/vectors/export_vectors.hpp"
#include "libmx/conformance/verify/verify.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/engine/packed_file.hpp"
#include "libmx/io/memory_tensor.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/policy/judged_model.hpp"
#include "libmx/studies/cluster/diagnose.hpp"
#include "libmx/studies/compare/comparison.hpp"
#include "libmx/studies/convert/convert.hpp"
#include "libmx/studies/diff/diff.hpp"
#include "libmx/studies/rosetta/rosetta.hpp"

namespace mx::app {

using namespace bench;
namespace {

// A name with a role, so that the policy is consulted as for a real model.
constexpr const char* tensor_name = "model.layers.0.mlp.up_proj.weight";

// Output memory of all paths, touched once. As large as the input, so that it does not fit in a
// cache.
struct written_memory {
    std::size_t size = static_cast<std::size_t>(memory_to_measure());
    std::unique_ptr<std::byte[]> bytes{new std::byte[size]};

    // Offsets of output arrays; starts again at 0 when an array does not fit.
    std::byte* place(std::size_t array, std::uint64_t offset, std::size_t count) const {
        const std::size_t most = size / 8 * 7;
        std::byte* const begin = bytes.get() + (array == 0 ? 0 : most);
        const std::size_t region = array == 0 ? most : size - most;
        const std::size_t room = region - std::min(region, count);
        return begin + (room == 0 ? 0 : static_cast<std::size_t>(offset) % room);
    }
};
using shared_memory = std::shared_ptr<const written_memory>;

class memory_arrays final : public io::array_writer {
  public:
    explicit memory_arrays(shared_memory memory) : memory_(std::move(memory)) {}
    void write(std::size_t index, std::uint64_t offset, std::span<const std::byte> bytes) override {
        if (bytes.empty()) return;
        std::memcpy(memory_->place(index, offset, bytes.size()), bytes.data(), bytes.size());
    }
    void commit() override {}

  private:
    shared_memory memory_;
};

convert::destination to_memory(const shared_memory& memory) {
    return [memory](const std::vector<io::planned_array>&, const io::metadata_map&) {
        return std::make_unique<memory_arrays>(memory);
    };
}

std::shared_ptr<const io::reader> tensor_of(const analysis::matrix& m) {
    return io::memory_tensor(m.data, m.type, {m.rows, m.cols}, {}, tensor_name);
}

std::vector<engine::tensor_ref> refs_of(const std::shared_ptr<const io::reader>& file) {
    return {{file.get(), 0}};
}

// A temporary file of this process, removed at the end.
class scratch_file {
  public:
    explicit scratch_file(const std::string& ending)
        : path_(std::filesystem::temp_directory_path() /
                fmt::format("mx-bench-{}{}", ::getpid(), ending)) {}
    ~scratch_file() {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
    }
    scratch_file(const scratch_file&) = delete;
    scratch_file& operator=(const scratch_file&) = delete;
    std::string path() const { return path_.string(); }

  private:
    std::filesystem::path path_;
};

class case_list {
  public:
    case_list(tensor::dtype type, const engine::run_control& control)
        : control_(control), stored_(static_cast<double>(bytes_of(type))) {}

    std::vector<suite_case> make() {
        add_analyses();
        for (const char* recipe :
             {"mxfp4", "mxfp8", "nvfp4", "nvfp4:four_over_six=mse", "mxfp4:dialect=torchao",
              "fp8_1x128", "mxfp4:offset=fp16", "mxfp4:round=stochastic", "mxfp4:block=32x1"}) {
            add_quantize(codec::parse_recipe(recipe), convert::quantized_form::packed);
        }
        for (const char* recipe : {"mxfp4", "mxfp8", "nvfp4", "fp8_1x128"}) {
            add_quantize(codec::parse_recipe(recipe), convert::quantized_form::values);
        }
        for (const char* recipe : {"mxfp4", "mxfp8", "nvfp4", "fp8_1x128"}) {
            add_dequantize(codec::parse_recipe(recipe));
        }
        for (const char* element : {"e4m3", "e2m1", "int8"}) {
            add_cast(element, true);
            add_cast(element, false);
        }
        add_studies();
        add_verify();
        return std::move(cases_);
    }

  private:
    // The backend whose kernels serve all recipes; the reference if one of them needs it.
    std::string_view server_of(const std::vector<codec::recipe>& recipes) const {
        std::string_view name = control_.chosen_backend().name;
        for (const codec::recipe& r : recipes) {
            const std::string_view one = serving_backend(control_.chosen_backend(), r);
            if (one != name) return one;
        }
        return name;
    }
    static std::string_view portable() { return codec::backends().front().name; }

    template <typename Pass>
    void add(std::string name, std::string_view backend, double writes, Pass&& pass) {
        cases_.push_back({"command", std::move(name), backend, stored_, writes,
                          [pass](const analysis::matrix& m) {
                              pass(m);
                              return m.rows * m.cols;
                          }});
    }

    void add_analysis(std::string name, const analysis::analysis_request& request,
                      std::string_view backend) {
        add(std::move(name), backend, 0, [request, &control = control_](const analysis::matrix& m) {
            const auto file = tensor_of(m);
            analysis::analyze(refs_of(file), request, control);
        });
    }

    void add_analyses() {
        analysis::analysis_request one;
        one.recipes = {codec::parse_recipe("mxfp4")};
        add_analysis("analyze --recipe mxfp4", one, server_of(one.recipes));
        analysis::analysis_request two = one;
        two.recipes = {codec::parse_recipe("nvfp4")};
        add_analysis("analyze --recipe nvfp4", two, server_of(two.recipes));

        // A training run's tensors cover most of what a policy judges.
        std::vector<policy::measured_tensor> of;
        for (const char* name :
             {tensor_name, "model.layers.0.input_layernorm.weight", "model.embed_tokens.weight",
              "activations.layers.0.mlp.down_proj.input", "grads.layers.0.mlp.up_proj.weight"}) {
            io::tensor_info info;
            info.name = name;
            info.shape = {4096, 4096};
            if (engine::role_finder().role_of(info) == "norm") info.shape = {4096};
            policy::measured_tensor& t = of.emplace_back();
            t.name = name;
            t.role = std::string(engine::role_finder().role_of(info));
            t.shape.assign(info.shape.begin(), info.shape.end());
        }
        analysis::analysis_request usual;
        usual.recipes =
            policy::recipes_to_measure(policy::policy_for({}, of), policy::targets.front(), of);
        add_analysis(fmt::format("analyze ({} recipes)", usual.recipes.size()), usual,
                     server_of(usual.recipes));

        compare::sweep_request sweep;
        sweep.bases = {"mxfp8"};
        sweep.axes = {{"element", {"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"}},
                      {"scale", {"floor", "ceil", "even", "rceil"}}};
        const auto plan = std::make_shared<const compare::sweep_plan>(compare::plan_sweep(sweep));
        const analysis::analysis_request request = compare::request_of(*plan, false);
        add(fmt::format("compare ({} recipes)", request.recipes.size()), server_of(request.recipes),
            0, [request, plan, &control = control_](const analysis::matrix& m) {
                const auto file = tensor_of(m);
                const analysis::analysis a = analysis::analyze(refs_of(file), request, control);
                compare::evaluate(*plan, a, false);
            });

        const auto table = std::make_shared<const scratch_file>("-blocks.h5");
        one.blocks_path = table->path();
        add("analyze --recipe mxfp4 --blocks", server_of(one.recipes), 0,
            [one, table, &control = control_](const analysis::matrix& m) {
                const auto file = tensor_of(m);
                analysis::analyze(refs_of(file), one, control);
            });
    }

    void add_quantize(const codec::recipe& r, convert::quantized_form form) {
        const bool packed = form == convert::quantized_form::packed;
        const double codes = packed ? block::packed_bits(r.element->bits()) / 8.0 : 4.0;
        const auto in_block = static_cast<double>(r.block.rows * r.block.cols);
        const double scales = packed ? r.scale_format->bits() / 8.0 / in_block : 0.0;
        add(fmt::format("quantize --recipe {}{}", codec::to_string(r), packed ? " --packed" : ""),
            server_of({r}), codes + scales,
            [r, form, memory = memory_, &control = control_](const analysis::matrix& m) {
                const auto file = tensor_of(m);
                convert::quantize_model(refs_of(file), r, form, to_memory(memory), control);
            });
    }

    // Any bytes are valid codes.
    void add_dequantize(const codec::recipe& r) {
        const int bits = r.element->bits();
        const double codes = block::packed_bits(bits) / 8.0;
        const auto in_block = static_cast<double>(r.block.rows * r.block.cols);
        cases_.push_back(
            {"command", fmt::format("dequantize (of {})", codec::to_string(r)), portable(),
             codes + r.scale_format->bits() / 8.0 / in_block, 4.0,
             [r, bits, memory = memory_, &control = control_](const analysis::matrix& m) {
                 std::string reason;
                 const engine::geometry layout =
                     engine::lay_out({m.rows, m.cols}, r, reason).value();
                 const bool coded = codec::scales_have_codes(r);
                 const std::uint64_t blocks = layout.grid.blocks();
                 // Means exponent or number 1 in every scale format.
                 const std::vector<std::uint8_t> scale_codes(
                     coded ? blocks : 0, r.scale_format->power_of_two() ? 127 : 56);
                 const std::vector<float> scales(coded ? 0 : blocks, 1.0F);
                 const auto source = [](const auto& data, tensor::dtype type,
                                        std::uint64_t count) -> io::shared_source {
                     return io::memory_tensor(data, type, {count}, {})->open(0);
                 };
                 const auto values = engine::open_blocks(
                     r, codec::params_of(r), layout.grid, bits,
                     {source(m.data, tensor::dtype::u8, block::packed_bytes(bits, m.rows * m.cols)),
                      coded ? source(scale_codes.data(), tensor::dtype::u8, blocks)
                            : source(scales.data(), tensor::dtype::f32, blocks),
                      nullptr});
                 engine::for_each_piece(
                     layout.grid, control.threads, control.cancel,
                     [&](std::uint64_t first, std::uint64_t count) {
                         const auto bytes = static_cast<std::size_t>(count * sizeof(float));
                         values->read(first * sizeof(float),
                                      {memory->place(0, first * sizeof(float), bytes), bytes});
                     });
                 return m.rows * m.cols;
             }});
    }

    void add_cast(const std::string& element, bool packed) {
        convert::cast_request request;
        request.element = element;
        request.packed = packed;
        const format::element_format& f = *format::find_element_format(element);
        const codec::backend& backend = control_.chosen_backend();
        const codec::dialect& ocp = *request.by;
        const codec::element_cast to{
            codec::conversion_of(ocp, f, {}, true,
                                 codec::default_int_min(f, ocp) == codec::int_min::full),
            false};
        const bool own = backend.takes_cast == nullptr || backend.takes_cast(to);
        add(fmt::format("quantize --recipe {}{}", element, packed ? " --packed" : ""),
            own ? backend.name : portable(), packed ? block::packed_bits(f.bits()) / 8.0 : 4.0,
            [request, memory = memory_, &control = control_](const analysis::matrix& m) {
                const auto file = tensor_of(m);
                convert::cast({convert::assigned_tensor{refs_of(file).front(), {}, {}}}, request,
                              to_memory(memory), control);
            });
    }

    void add_studies() {
        const std::vector<codec::recipe> recipes = rosetta::recipes_of_element("e2m1", "1x32");
        add(fmt::format("rosetta ({} recipes)", recipes.size()), server_of(recipes), 0,
            [recipes, &control = control_](const analysis::matrix& m) {
                const auto file = tensor_of(m);
                rosetta::compare_bytes(refs_of(file), recipes, control);
            });
        for (const char* recipe : {"mxfp4", "fp8_1x128"}) {
            // The two halves of the matrix serve as dumps.
            diff::diff_request request;
            request.recipes = {codec::parse_recipe(recipe)};
            request.paths = {"a", "b"};
            request.labels = diff::label_dumps(request.paths, {});
            add(fmt::format("diff --recipe {}", recipe), server_of(request.recipes), 0,
                [request, &control = control_](const analysis::matrix& m) {
                    const std::uint64_t rows = std::max<std::uint64_t>(1, m.rows / 2);
                    const auto half = [&](const std::byte* data) {
                        return io::memory_tensor(data, m.type, {rows, m.cols}, {}, tensor_name);
                    };
                    const auto a = half(m.data);
                    const auto b = half(m.data + (m.rows - rows) * m.cols * bytes_of(m.type));
                    const io::reader* const dumps[] = {a.get(), b.get()};
                    diff::diff(dumps, refs_of(a), request, control);
                });
        }
        analysis::analysis_request request;
        request.recipes = {codec::parse_recipe("mxfp4")};
        add("cluster --recipe mxfp4", server_of(request.recipes), 0,
            [request, &control = control_](const analysis::matrix& m) {
                const auto file = tensor_of(m);
                cluster::diagnose(refs_of(file), request, control);
            });
    }

    void add_verify() {
        conformance::vectors::vector_request request;
        request.recipe = codec::parse_recipe("mxfp4");
        request.blocks = 1 << 15;
        const auto vectors = std::make_shared<const scratch_file>("-vectors.safetensors");
        conformance::vectors::export_vectors(
            request, conformance::vectors::generated_source(request), vectors->path(), {});
        const std::shared_ptr<const io::reader> file = io::open_model(vectors->path(), {});
        cases_.push_back({"command", "verify (of mxfp4)", portable(), 2.0 * sizeof(float) + 1.0, 0,
                          [file, vectors, &control = control_](const analysis::matrix&) {
                              conformance::verify::verify_options options;
                              options.threads = control.threads;
                              return conformance::verify::verify_vectors(*file, vectors->path(),
                                                                         options)
                                  .compared;
                          }});
    }

    const engine::run_control& control_;
    double stored_;
    shared_memory memory_ = std::make_shared<const written_memory>();
    std::vector<suite_case> cases_;
};

constexpr const char* suite_note =
    "A pass takes the next rows of the matrix, and all cases take turns; every figure is "
    "the best of its passes. Commands work on a tensor in memory and write to memory. The "
    "roof of a case is the time in which the bytes that it reads and writes are copied, or "
    "read where it writes none.";

struct timed_case {
    const suite_case& of;
    const suite_request& request;
    const suite_rate& rate;
};
constexpr std::array case_members = std::to_array<report::declared<timed_case>>({
    {"group", "string", "what it stands beside", [](auto& c) { return c.of.group; }},
    {"case", "string", "a recipe, or a command", [](auto& c) { return c.of.name; }},
    {"backend", "string", "whose kernels do the work", [](auto& c) { return c.of.backend; }},
    {"threads", "ordinal", "", [](auto& c) { return c.request.threads; }},
    {"dtype", "@members#dtype", "", [](auto& c) { return tensor::row_of(c.request.type).name; }},
    {"bytes_read_per_element", "amount", "", [](auto& c) { return c.of.reads; }},
    {"bytes_written_per_element", "amount", "", [](auto& c) { return c.of.writes; }},
    {"elements_per_second", "amount", "", [](auto& c) { return c.rate.elements_per_second; }},
    {"times_mxfp4", "amount", "of the rate at which mxfp4 is analysed",
     [](auto& c) { return c.rate.of_first; }},
    {"fraction_of_read_bandwidth", "amount", "by bytes read",
     [](auto& c) { return c.rate.of_read_bandwidth; }},
    {"fraction_of_roof", "amount",
     "by bytes read and written: of copies, of reads where nothing is written",
     [](auto& c) { return c.rate.of_roof; }},
});

}  // namespace

void declare_suite(report::document_schema& to) { to.define("case", case_members); }

std::vector<suite_case> command_cases(tensor::dtype type, const engine::run_control& control) {
    return case_list(type, control).make();
}

report::document suite_document(const std::vector<suite_case>& cases, const suite_request& request,
                                const suite_table& t) {
    report::document d;
    d.head = pages::document_head("mx.bench/1");
    add_memory(d.head, t.machine, std::span(&t.machine, 1), t.elements);
    report::section s;
    s.heading = fmt::format(
        "Suite: {} million normally distributed elements of {}, {}; this memory is read with "
        "{:.1f} GB/s and copied with {:.1f}",
        t.elements / 1000000, tensor::row_of(request.type).name, threads_text(request.threads),
        t.machine.read * 1e-9, t.machine.copy * 1e-9);
    s.columns =
        pages::columns_of({"case", pages::column_of("backend", "by"), "rate",
                           pages::column_of("of_first", "times\nmxfp4", cell::fixed, 3),
                           pages::column_of("of_read", "of read\nbandwidth", cell::fixed, 3),
                           pages::column_of("of_roof", "of its\nroof", cell::fixed, 3)});
    s.group_field = "group";
    for (std::size_t i = 0; i < cases.size(); ++i) {
        const suite_case& r = cases[i];
        const suite_rate& rate = t.rates[i];
        d.results.push_back(report::written(case_members, {r, request, rate}));
        s.rows.push_back({{"group", r.group},
                          {"case", r.name},
                          {"backend", text(r.backend)},
                          {"rate", real(rate.elements_per_second * 1e-9)},
                          {"of_first", real(rate.of_first)},
                          {"of_read", real(rate.of_read_bandwidth)},
                          {"of_roof", real(rate.of_roof)}});
    }
    s.notes.push_back(suite_note);
    d.sections = {std::move(s)};
    return d;
}

}  // namespace mx::app
