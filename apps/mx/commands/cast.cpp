// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/options.hpp"
#include "libmx/codec/dialect_columns.hpp"
#include "libmx/format/roundings.hpp"
#include "libmx/studies/convert/convert.hpp"

namespace mx::app {
namespace {

struct cast_options {
    input_options in;
    run_options run;
    std::string out;
    std::string round;
    std::string dialect = "ocp";
    int random_bits = 0;
    std::string ties = "up";
    std::string int_min;
    bool saturate = false, no_saturate = false;
    convert::cast_request request;
};

// Resolves the names in the request; errors contain the option and the nearest valid name.
convert::cast_request request_of(const cast_options& o) {
    convert::cast_request request = o.request;
    require_one_of("--element", "format", request.element, convert::castable_formats());
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
    require_one_of("--ties", "tie rule", o.ties, {"up", "even"});
    request.ties = o.ties == "up" ? format::tie_rule::up : format::tie_rule::even;
    if (!o.int_min.empty()) require_one_of("--int-min", "choice", o.int_min, {"symmetric", "full"});
    if (o.int_min == "full") request.minimum = codec::int_min::full;
    if (o.int_min == "symmetric") request.minimum = codec::int_min::symmetric;
    request.saturate = o.saturate || (!o.no_saturate && codec::saturates(*request.by));
    return request;
}

int run_cast(const cast_options& o) {
    const convert::cast_request request = request_of(o);
    const engine::model model = open_inputs(o.in, {o.out});
    const engine::run_control control = control_of(o.run);
    const auto chosen = model.select(o.in.globs);
    engine::require_names_once(chosen);
    const auto done = convert::cast(chosen, request, o.out, control);
    report_conversion(done, "cast", o.out, o.run.quiet);
    return exit_code::fine;
}

}  // namespace

runner declare_cast(parser& cmd) {
    const auto o = std::make_shared<cast_options>();
    declare_inputs(cmd, o->in);
    declare_destination(cmd, o->out, "a .safetensors, .h5 or, of one tensor, .npy file");
    cmd.group("Conversion");
    cmd.add_option("--element FORMAT", o->request.element,
                   "element or scale format; see 'mx explain formats'")
        ->required();
    cmd.add_option("--round ROUNDING", o->round,
                   "rounding; see 'mx explain rules' (default: rtne, or the dialect's)");
    cmd.add_option("--dialect DIALECT", o->dialect,
                   "dialect of the conversion; see 'mx explain dialects' (default ocp)");
    cmd.add_option("--ties RULE", o->ties, "e3m0 under rtne: up, or even (the even code)");
    cmd.add_option("--random-bits K", o->random_bits,
                   "stochastic: random width, 1 to 32 (default 32, or the dialect's)")
        ->in_range(1, 32);
    cmd.add_option("--seed N", o->request.seed, "stochastic: seed of the counter-based generator")
        ->not_negative();
    cmd.add_option("--int-min CHOICE", o->int_min,
                   "integers: full uses -2^(n-1), symmetric does not; default full for int8 alone");
    option* saturate = cmd.add_flag("--saturate", o->saturate,
                                    "values beyond the largest become the largest: the default of "
                                    "every dialect but ml_dtypes");
    cmd.add_flag("--no-saturate", o->no_saturate,
                 "they become NaN (e4m3) or Inf (e5m2), as under dialect ml_dtypes")
        ->excludes(saturate);
    cmd.add_flag("--packed", o->request.packed, "write codes (w.codes) instead of F32 values");
    declare_run(cmd, o->run);
    cmd.description("Rounds every element to a format, without a scale.");
    cmd.examples(
        "mx cast model.safetensors -o e4m3.safetensors --element e4m3\n"
        "mx cast w.npy -o jax.npy --element e5m2 --dialect ml_dtypes\n"
        "mx cast w.npy -o codes.safetensors --element e2m1 --round zero --packed\n");
    return [o] { return run_cast(*o); };
}

}  // namespace mx::app
