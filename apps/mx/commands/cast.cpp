// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/mx/commands.hpp"
#include "apps/mx/commands/conversion_report.hpp"
#include "apps/mx/exit_code.hpp"
#include "apps/mx/input_records.hpp"
#include "apps/mx/names.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/outputs.hpp"
#include "libmx/format/roundings.hpp"
#include "libmx/studies/convert/convert.hpp"

namespace mx::app {
namespace {

struct options {
    input_options in;
    run_options run;
    std::string out;
    std::string round;
    std::string dialect = "ocp";
    int random_bits = 0;
    std::string ties = "up";
    std::string int_min;
    bool no_saturate = false;
    convert::cast_request request;
};

// The request with its names looked up; the errors name the option and the nearest valid name.
convert::cast_request request_of(const options& o) {
    convert::cast_request request = o.request;
    const std::vector<std::string_view> names = convert::castable_formats();
    if (std::find(names.begin(), names.end(), request.element) == names.end()) {
        unknown_name("--element", "format", request.element, names);
    }
    request.by = codec::find_dialect(o.dialect);
    if (request.by == nullptr) {
        unknown_name("--dialect", "dialect", o.dialect, names_of(codec::dialects()));
    }
    const std::string name(o.round.empty() ? codec::first_of(request.by->roundings)
                                           : std::string_view(o.round));
    if (o.random_bits != 0) request.random_bits = o.random_bits;
    const format::rounding_row* round = format::find_rounding(name);
    if (round == nullptr) unknown_name("--round", "rounding", o.round, names_of(format::roundings));
    request.round = round->id;
    if (o.ties != "up" && o.ties != "even") {
        unknown_name("--ties", "tie rule", o.ties, {"up", "even"});
    }
    request.ties = o.ties == "up" ? format::tie_rule::up : format::tie_rule::even;
    if (!o.int_min.empty() && o.int_min != "symmetric" && o.int_min != "full") {
        unknown_name("--int-min", "choice", o.int_min, {"symmetric", "full"});
    }
    if (o.int_min == "full") request.minimum = codec::int_min::full;
    if (o.int_min == "symmetric") request.minimum = codec::int_min::symmetric;
    request.saturate = !o.no_saturate;
    return request;
}

int run(const options& o) {
    const convert::cast_request request = request_of(o);
    require_distinct(o.in.files, {o.out});
    const engine::model model = open_inputs(o.in);
    require_distinct(paths_of(model, {}), {o.out});
    const auto done = convert::cast(model.select(o.in.globs), request, o.out, control_of(o.run));
    report_conversion(done, o.out, o.run.quiet);
    return exit_code::fine;
}

}  // namespace

runner declare_cast(parser& cmd) {
    const auto o = std::make_shared<options>();
    declare_inputs(cmd, o->in);
    declare_destination(cmd, o->out, "a .safetensors, .h5 or, of one tensor, .npy file");
    cmd.add_option("--element", o->request.element, "element or scale format; see 'mx formats'")
        ->required()
        ->type_name("FORMAT")
        ->group("Conversion");
    cmd.add_option("--round", o->round,
                   "rounding; see 'mx rules' (default: rtne, or the dialect's)")
        ->type_name("ROUNDING")
        ->group("Conversion");
    cmd.add_option("--dialect", o->dialect, "whose conversion; see 'mx dialects' (default ocp)")
        ->type_name("DIALECT")
        ->group("Conversion");
    cmd.add_option("--ties", o->ties, "e3m0 under rtne: up, or even (the even code)")
        ->type_name("RULE")
        ->group("Conversion");
    cmd.add_option("--random-bits", o->random_bits,
                   "stochastic: random width, 1 to 32 (default 32, or the dialect's)")
        ->in_range(1, 32)
        ->type_name("K")
        ->group("Conversion");
    cmd.add_option("--seed", o->request.seed, "stochastic: seed of the counter-based generator")
        ->not_negative()
        ->type_name("N")
        ->group("Conversion");
    cmd.add_option("--int-min", o->int_min,
                   "integers: full uses -2^(n-1), symmetric does not; default full for int8 alone")
        ->type_name("CHOICE")
        ->group("Conversion");
    cmd.add_flag("--no-saturate", o->no_saturate,
                 "beyond the largest value: NaN (e4m3) or Inf (e5m2) instead of the largest")
        ->group("Conversion");
    cmd.add_flag("--packed", o->request.packed, "write codes (w.codes) instead of F32 values")
        ->group("Conversion");
    declare_run(cmd, o->run);
    cmd.description("Rounds every element to a format as it is, without a shared scale.");
    examples(cmd,
             "mx cast model.safetensors -o e4m3.safetensors --element e4m3\n"
             "mx cast w.npy -o jax.npy --element e5m2 --dialect ml_dtypes\n"
             "mx cast w.npy -o codes.safetensors --element e2m1 --round zero --packed\n");
    return [o] { return run(*o); };
}

}  // namespace mx::app
