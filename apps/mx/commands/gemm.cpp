// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "apps/mx/product_options.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/pages/views/gemm_view.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/studies/convert/output.hpp"
#include "libmx/studies/products/gemm_study.hpp"
#include "libmx/studies/products/identify.hpp"

namespace mx::app {
namespace {

constexpr const char* gemm_recipe = "mxfp8";

struct gemm_options {
    matrix_argument a, b, c, identify;
    matrix_options in;
    output_options to;
    run_options run;
    product_options products;
    std::string recipe = gemm_recipe, recipe_a, recipe_b;
    bool transpose_a = false, transpose_b = false;
    float alpha = 1;
    std::optional<float> beta;
    bool accumulate_into_c = false;
    bool growth = false;
    std::string out;
};

gemm::arrangement arrangement_of(const gemm_options& o) {
    gemm::arrangement how = arrangement_of(o.products);
    const bool has_c = !o.c.text.empty();
    if (!has_c && (o.accumulate_into_c || o.beta)) {
        refuse("--beta and --accumulate-into-c are about C; name it with --c");
    }
    if (o.accumulate_into_c && o.beta) {
        refuse("--accumulate-into-c makes C the first accumulator; leave --beta out");
    }
    how.alpha = o.alpha;
    // --beta defaults to adding C.
    how.beta = o.beta.value_or(has_c && !o.accumulate_into_c ? 1.0f : 0.0f);
    how.accumulate_c = o.accumulate_into_c;
    return how;
}

products::gemm_request request_of(const gemm_options& o) {
    products::gemm_request r;
    r.recipe_a = products::parse_operand_recipe(o.recipe_a.empty() ? o.recipe : o.recipe_a);
    r.recipe_b = products::parse_operand_recipe(o.recipe_b.empty() ? o.recipe : o.recipe_b);
    using products::reduction;
    r.over_a = o.transpose_a ? reduction::first : reduction::last;
    r.over_b = o.transpose_b ? reduction::last : reduction::first;
    r.models = models_of(o.products);
    r.how = arrangement_of(o);
    r.growth = o.growth;
    r.backend = o.run.backend;
    return r;
}

// Writes the products, one array per model; a .npy file only the first one.
void write_products(const std::string& out, const products::matrix& a, const gemm_options& o,
                    const products::gemm_request& request, const products::gemm_study& s) {
    tensor::shape shape{s.m, s.n};
    if (!o.transpose_a && !a.shape.empty()) {
        shape = a.shape;
        shape.back() = s.n;
    }
    const bool one = io::has_ending(out, ".npy");
    const std::size_t count = one ? 1 : s.products.size();
    std::vector<io::planned_array> plan;
    for (std::size_t i = 0; i < count; ++i) {
        plan.push_back({"D." + gemm::to_string(s.products[i].model), tensor::dtype::f32, shape});
    }
    const auto writer =
        convert::to_file(out)(plan, {{"generator", "mx gemm"},
                                     {"recipe_a", products::to_string(request.recipe_a)},
                                     {"recipe_b", products::to_string(request.recipe_b)}});
    for (std::size_t i = 0; i < count; ++i) {
        writer->write(i, 0, std::as_bytes(std::span(s.products[i].d)));
    }
    writer->commit();
}

// The models that give D, or come nearest.
report::document identity_of(const std::vector<products::candidate_unit>& units,
                             std::size_t outputs) {
    report::document d;
    d.head = pages::document_head("mx.gemm-identity/1");
    report::section table{{},
                          {{"model", "model"},
                           {"instruction", "instruction"},
                           {"differing", "outputs that differ", cell::integer}},
                          {}};
    table.heading = "Models";
    std::string equal;
    std::size_t count = 0;
    for (const products::candidate_unit& u : units) {
        d.results.push_back(products::candidate_record(u));
        table.rows.push_back(products::candidate_record(u));
        if (u.differing != 0) continue;
        equal += (count++ == 0 ? "" : ", ") + gemm::to_string(u.model);
    }
    const auto all = report::grouped(static_cast<std::int64_t>(outputs));
    report::section verdict{.heading = "Verdict"};
    verdict.notes.push_back(
        count == 0   ? report::item(fmt::format("No model gives all of the {} outputs.", all))
        : count == 1 ? report::item(fmt::format("Of {} models only {} gives all of the {} outputs.",
                                                units.size(), equal, all))
                     : report::item(fmt::format(
                           "{} of {} models give all of the {} outputs, which do not tell them "
                           "apart: {}.",
                           count, units.size(), all, equal)));
    d.sections = {std::move(verdict), std::move(table)};
    return d;
}

int run_identify(const gemm_options& o) {
    if (!o.out.empty() || o.growth) refuse("--identify: leave out --output and --growth");
    const products::gemm_request request = request_of(o);
    const engine::run_control control =
        control_of(o.run, block_recipes({request.recipe_a, request.recipe_b}));
    std::vector<std::string> paths;
    for (const matrix_argument* m : {&o.a, &o.b, &o.c, &o.identify}) {
        if (!m->text.empty()) paths.push_back(place_of(m->text).path);
    }
    outputs to(o.to, paths);
    matrix_reader reader{o.in, to, control};
    const products::matrix a = reader.read(o.a, "A");
    const products::matrix b = reader.read(o.b, "B");
    const auto c = reader.read_if_given(o.c, "--c");
    const products::matrix d = reader.read(o.identify, "--identify");
    const std::vector<products::candidate_unit> units =
        products::identify_unit(d, a, b, c ? &*c : nullptr, request, control);
    report::document doc = identity_of(units, d.values.size());
    doc.head.emplace_back("inputs", std::move(reader.inputs));
    doc.head.emplace_back("recipe_a", products::to_string(request.recipe_a));
    doc.head.emplace_back("recipe_b", products::to_string(request.recipe_b));
    doc.head.emplace_back("arrangement", arrangement_record(request.how));
    to.finish(doc, o.run.quiet);
    return units.front().differing == 0 ? exit_code::fine : exit_code::difference;
}

int run_gemm(const gemm_options& o) {
    if (!o.identify.text.empty()) return run_identify(o);
    const products::gemm_request request = request_of(o);
    const engine::run_control control =
        control_of(o.run, block_recipes({request.recipe_a, request.recipe_b}));
    std::vector<std::string> paths{place_of(o.a.text).path, place_of(o.b.text).path};
    if (!o.c.text.empty()) paths.push_back(place_of(o.c.text).path);
    std::vector<std::string> more;
    if (!o.out.empty()) more.push_back(o.out);
    outputs to(o.to, paths, more);

    matrix_reader reader{o.in, to, control};
    const products::matrix a = reader.read(o.a, "A");
    const products::matrix b = reader.read(o.b, "B");
    const auto c = reader.read_if_given(o.c, "--c");
    const products::gemm_study s = products::study_gemm(a, b, c ? &*c : nullptr, request, control);
    if (!o.out.empty()) write_products(o.out, a, o, request, s);

    report::document d;
    d.title = fmt::format("Product of {}x{} by {}x{}", s.m, s.k, s.k, s.n);
    d.head = pages::document_head("mx.gemm/1");
    d.head.emplace_back("inputs", std::move(reader.inputs));
    d.head.emplace_back("a", operand_record(a, request.over_a, request.recipe_a, s.a));
    d.head.emplace_back("b", operand_record(b, request.over_b, request.recipe_b, s.b));
    d.head.emplace_back("arrangement", arrangement_record(request.how));
    for (const products::model_product& p : s.products) {
        d.results.push_back(products::product_record(s, request, p));
    }
    d.tail = {{"differences",
               to_list(s.differences, [&](const auto& x) { return difference_record(s, x); })},
              {"growth", to_list(s.growth, [&](const auto& x) { return growth_record(s, x); })}};
    finish_with_page(to, d, products::sentences_of(s), o.run.quiet);
    return exit_code::fine;
}

void declare_operands(parser& cmd, gemm_options& o) {
    cmd.group("Input");
    cmd.add_option("A", o.a.text, "FILE or FILE:TENSOR, M x K; leading axes are rows")->required();
    cmd.add_option("B", o.b.text, "FILE or FILE:TENSOR, K x N")->required();
    cmd.add_option("--c C", o.c.text, "FILE or FILE:TENSOR, M x N; added unless --beta is given");
    cmd.add_flag("--transpose-a", o.transpose_a, "A is K x M");
    cmd.add_flag("--transpose-b", o.transpose_b, "B is N x K, like the weights of torch");
    declare_matrix_shape(cmd, o.a, "a");
    declare_matrix_shape(cmd, o.b, "b");
    declare_matrix_shape(cmd, o.c, "c");
    declare_stored(cmd, o.in.open, o.in.views);
}

void declare_gemm_recipes(parser& cmd, gemm_options& o) {
    cmd.group("Operands");
    cmd.add_option("-r,--recipe RECIPE", o.recipe,
                   fmt::format("of both operands ({}), e.g. mxfp4:scale=even, nvfp4; without "
                               "blocks none, bf16, f16, tf32, e4m3, e4m3:scale=tensor, ...",
                               gemm_recipe));
    cmd.add_option("--recipe-a RECIPE", o.recipe_a, "of A");
    cmd.add_option("--recipe-b RECIPE", o.recipe_b, "of B");
}

}  // namespace

runner declare_gemm(parser& cmd) {
    const auto o = std::make_shared<gemm_options>();
    declare_operands(cmd, *o);
    declare_gemm_recipes(cmd, *o);
    declare_products(cmd, o->products, "the matrix unit for the operands, fp32.fma and exact");
    cmd.group("Product");
    cmd.add_option("--alpha X", o->alpha, "D = alpha A B + beta C in float32, after the sum (1)")
        ->finite();
    cmd.add_option("--beta X", o->beta, "see --alpha (1 with --c)")->finite();
    cmd.add_flag("--accumulate-into-c", o->accumulate_into_c,
                 "C is the first accumulator of the sums");
    cmd.add_flag("--growth", o->growth, "also the errors after K/8, K/4 and K/2");
    cmd.add_option("--identify D", o->identify.text,
                   "FILE or FILE:TENSOR, M x N: list the models that give these outputs, the best "
                   "first; exit code 1 if none does");
    cmd.group("Output");
    cmd.add_option("-o,--output OUT", o->out,
                   "the products as F32, one array per model; a .npy file has that of the first "
                   "model")
        ->file_name();
    declare_outputs(cmd, o->to);
    declare_run(cmd, o->run);
    cmd.description(
        "Multiplies two matrices as matrix units do, bit for bit. Both are quantized along the "
        "axis that is summed over; a model gets codes and scales if it supports them, otherwise "
        "dequantized values. Reports the error of the sums against the exact product of the same "
        "operands, and the total error.");
    cmd.examples(
        "mx gemm x.npy w.npy --transpose-b -r mxfp4\n"
        "mx gemm acts.safetensors:mlp.input model.safetensors:mlp.up.weight --transpose-b\n"
        "mx gemm a.npy b.npy -r mxfp8 -m sm100.mxf8f6f4 -m fp32.fma --growth\n"
        "mx gemm a.npy b.npy --recipe-a bf16 --recipe-b mxfp4 -m sm100.f16 -o d.npy\n"
        "mx gemm a.npy b.npy -r mxfp8 --identify d.npy\n");
    return [o] { return run_gemm(*o); };
}

}  // namespace mx::app
