// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/commands/verify_product.hpp"

#include <optional>

#include "libmx/report/cells.hpp"
#include "libmx/studies/products/product_check.hpp"
#include "libmx/studies/products/product_power.hpp"

namespace mx::app {
namespace {

products::check_request request_of(const product_check_options& o) {
    if (o.a.text.empty() || o.b.text.empty()) {
        refuse("--class needs both operands; give --a and --b");
    }
    const std::string& a = o.recipe_a.empty() ? o.recipe : o.recipe_a;
    const std::string& b = o.recipe_b.empty() ? o.recipe : o.recipe_b;
    if (a.empty() || b.empty()) {
        refuse("--class: the operands' recipe is missing; give --recipe, or none for float32");
    }
    products::check_request r;
    r.recipe_a = products::parse_operand_recipe(a);
    r.recipe_b = products::parse_operand_recipe(b);
    using products::reduction;
    r.over_a = o.transpose_a ? reduction::first : reduction::last;
    r.over_b = o.transpose_b ? reduction::last : reduction::first;
    r.of = products::parse_kernel_class(o.of);
    r.of.how = arrangement_of(o.steps);
    r.show = o.show;
    return r;
}

std::string number(double x) { return fmt::format("{:.9g}", x); }

std::string summary(const products::product_check& p, const std::string& of) {
    const auto outputs = static_cast<std::int64_t>(p.outputs());
    std::string text = fmt::format(
        "{} outputs of {}x{}x{}: {}.", report::grouped(outputs), p.m, p.k, p.n,
        p.outside == 0 ? fmt::format("class {} can give all of them", of)
                       : fmt::format("{} that class {} cannot give",
                                     report::grouped(static_cast<std::int64_t>(p.outside)), of));
    if (p.unbounded != 0) {
        text += fmt::format(" {} can overflow in some order, so every value conforms.",
                            report::grouped(static_cast<std::int64_t>(p.unbounded)));
    }
    return text;
}

report::document document_of(const products::product_check& p, const std::string& of) {
    report::document d;
    d.head = pages::document_head("mx.product-check/1");
    const report::record row = products::check_record(p);
    d.results.push_back(row);
    report::section table{{},
                          {{"outputs", "outputs", cell::integer},
                           {"outside", "outside", cell::integer},
                           {"single", "one value\nconforms", cell::integer},
                           {"unbounded", "any value\nconforms", cell::integer},
                           {"widest", "widest\ndistance", cell::significant},
                           {"used", "largest share\nof it %", cell::share}},
                          {row}};
    table.notes.push_back(summary(p, of));
    d.sections.push_back(std::move(table));
    report::section list{"First outputs outside",
                         {{"row", "row", cell::integer},
                          {"column", "column", cell::integer},
                          {"got", "got"},
                          {"low", "from"},
                          {"high", "to"}},
                         {}};
    for (const products::output_outside& x : p.first) {
        list.add(integer(x.row), integer(x.column), number(static_cast<double>(x.got)),
                 number(x.low), number(x.high));
    }
    if (!p.first.empty()) d.sections.push_back(std::move(list));
    d.tail.emplace_back("differences", to_list(p.first, products::outside_record));
    return d;
}

std::vector<std::string> paths_of(const product_check_options& o) {
    std::vector<std::string> paths;
    for (const matrix_argument* m : {&o.d, &o.a, &o.b, &o.c}) {
        if (!m->text.empty()) paths.push_back(place_of(m->text).path);
    }
    return paths;
}

report::document document_of(const products::power_study& s, const product_check_options& o) {
    report::document d;
    d.head = pages::document_head("mx.product-power/1");
    report::section table{{},
                          {{"fault", "fault in A"},
                           {"planted", "planted", cell::integer},
                           {"passed_tolerances", "pass the tolerances", cell::integer},
                           {"passed_interval", "pass the interval", cell::integer},
                           {"least_cosine", "least cosine", cell::fixed, 5}},
                          {}};
    for (const products::fault_power& f : s.faults) {
        d.results.push_back(products::power_record(f));
        table.rows.push_back(products::power_record(f));
    }
    table.notes.push_back(fmt::format(
        "A product of {}x{}x{}; tolerances: {} + {} of the output; intervals of class {}.", s.m,
        s.k, s.n, o.atol, o.rtol, o.of));
    d.sections.push_back(std::move(table));
    return d;
}

}  // namespace

void declare_product_check(parser& cmd, product_check_options& o) {
    cmd.group("A product");
    cmd.add_option("--class CLASS", o.of,
                   "check that the matrix VECTORS is a product that such kernels can give: "
                   "any-order-f32, any-order-f32-faithful (each addition gives either neighbour, "
                   "like units that truncate), or a unit (mx explain accumulators)");
    cmd.add_option("--a A", o.a.text, "FILE or FILE:TENSOR, M x K; quantized under --recipe");
    cmd.add_option("--b B", o.b.text, "FILE or FILE:TENSOR, K x N");
    cmd.add_option("--c C", o.c.text, "FILE or FILE:TENSOR, M x N: one more term of each sum");
    cmd.add_option("--recipe-a RECIPE", o.recipe_a, "of A");
    cmd.add_option("--recipe-b RECIPE", o.recipe_b, "of B");
    cmd.add_flag("--transpose-a", o.transpose_a, "A is K x M");
    cmd.add_flag("--transpose-b", o.transpose_b, "B is N x K, like the weights of torch");
    cmd.add_option("--k-order ORDER", o.steps.k_order,
                   "of a unit: ascending (the default), descending");
    cmd.add_option("--slices N", o.steps.slices, "of a unit: split K into N parts")
        ->in_range(1, 1 << 20);
    cmd.add_flag("--power", o.power,
                 "without VECTORS: plant faults in A, and count those that --atol and --rtol, and "
                 "the intervals of --class, let pass");
    cmd.add_option("--atol X", o.atol, "of --power: absolute tolerance (0.01)")
        ->finite()
        ->not_negative();
    cmd.add_option("--rtol X", o.rtol, "of --power: tolerance relative to the output (0.01)")
        ->finite()
        ->not_negative();
}

void require_class(const product_check_options& o) {
    const bool used = !o.a.text.empty() || !o.b.text.empty() || !o.c.text.empty() ||
                      !o.recipe_a.empty() || !o.recipe_b.empty() || o.transpose_a ||
                      o.transpose_b || o.power;
    if (used && o.of.empty()) {
        refuse("--a, --b, --c, --power and their options are about a product; give --class");
    }
}

int check_product(const product_check_options& o) {
    const products::check_request request = request_of(o);
    if (o.power && (request.of.unit || !o.c.text.empty())) {
        refuse("--power: give --class any-order-f32 or any-order-f32-faithful, and no --c");
    }
    const engine::run_control control =
        control_of(o.run, block_recipes({request.recipe_a, request.recipe_b}));
    outputs to(o.out, paths_of(o));
    matrix_reader reader{o.in, to, control};
    const products::matrix a = reader.read(o.a, "--a");
    const products::matrix b = reader.read(o.b, "--b");
    report::document d;
    int code = exit_code::fine;
    if (o.power) {
        d = document_of(products::study_power(a, b, request, {o.atol, o.rtol}, control), o);
    } else {
        const auto c = reader.read_if_given(o.c, "--c");
        const products::matrix outputs = reader.read(o.d, "D");
        const products::product_check p =
            products::check_product(outputs, a, b, c ? &*c : nullptr, request, control);
        d = document_of(p, o.of);
        if (p.outside != 0) code = exit_code::difference;
    }
    d.head.emplace_back("inputs", std::move(reader.inputs));
    d.head.emplace_back("class", o.of);
    d.head.emplace_back("recipe_a", products::to_string(request.recipe_a));
    d.head.emplace_back("recipe_b", products::to_string(request.recipe_b));
    if (o.power) {
        d.head.emplace_back("atol", o.atol);
        d.head.emplace_back("rtol", o.rtol);
    }
    to.finish(d, o.run.quiet);
    return code;
}

}  // namespace mx::app
