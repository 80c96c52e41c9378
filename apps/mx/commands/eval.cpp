// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <memory>
#include <optional>

#include "apps/mx/backends.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/progress.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/eval/run.hpp"
#include "libmx/io/input_stream.hpp"
#include "libmx/llm/token_file.hpp"
#include "libmx/pages/views/document_page.hpp"
#include "libmx/tokens/tokenizer.hpp"

namespace mx::app {
namespace {

constexpr std::size_t most_text = std::size_t{1} << 28;

struct eval_options {
    eval::run_request request;
    std::string tokens, text, tokenizer;
    std::optional<std::uint64_t> sample, start, context, stride;
    std::uint64_t heads = 0, pairs = 0;
    std::string precision = "float32", each, by = "evaluation";
    std::string scores;
    output_options out;
    run_options run;
};

// The tokenizer of the model, or the one that the user names; null if there is none and none is
// needed: pieces of tokens are then not shown.
std::unique_ptr<tokens::tokenizer> tokenizer_of(const eval_options& o) {
    if (!o.tokenizer.empty()) return tokens::tokenizer_of(o.tokenizer);
    try {
        return tokens::tokenizer_of(o.request.model);
    } catch (const base::error&) {
        if (!o.text.empty()) throw;
        return nullptr;
    }
}

// The ids of a text, with the token before it that the model's file asks for.
std::vector<std::uint32_t> tokens_of_text(const eval_options& o, const tokens::tokenizer& words) {
    io::input_stream file(o.text);
    std::string text;
    std::vector<char> some(std::size_t{1} << 16);
    while (const std::size_t count = file.read(some)) {
        text.append(some.data(), count);
        if (text.size() > most_text) {
            throw base::error(base::error_kind::input,
                              fmt::format("has more than {} bytes, the limit of mx", most_text),
                              {o.text, {}, {}});
        }
    }
    std::vector<std::uint32_t> ids;
    try {
        ids = words.encode(text);
    } catch (const base::error& e) {
        throw base::error(e.kind(), e.message(), {o.text, {}, e.place().offset});
    }
    if (words.bos()) ids.insert(ids.begin(), *words.bos());
    return ids;
}

// What outputs must not replace: the files of a model's folder.
std::vector<std::string> files_beside(const std::string& model) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    fs::path folder = model;
    if (!fs::is_directory(folder, ignored)) {
        if (!model.ends_with(".json")) return {};
        folder = folder.parent_path().empty() ? fs::path(".") : folder.parent_path();
    }
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
        if (entry.is_regular_file(ignored)) files.push_back(entry.path().string());
    }
    return files;
}

int run_eval(const eval_options& o) {
    eval::run_request q = o.request;
    require_one_of("--precision", "precision", o.precision, {"float32", "float64"});
    if (o.precision == "float64") q.in = eval::arithmetic::float64;
    if (!o.each.empty()) q.each = eval::level_named(o.each);
    require_one_of("--by", "way", o.by, {"evaluation", "gradient", "both"});
    q.measured = o.by != "gradient";
    q.by_gradient = o.by != "evaluation";
    q.pairs = static_cast<std::size_t>(o.pairs);
    q.heads = static_cast<std::size_t>(o.heads);
    q.sample = static_cast<std::size_t>(o.sample.value_or(0));
    if (o.context) q.context = static_cast<std::size_t>(*o.context);
    if (o.stride) q.stride = static_cast<std::size_t>(*o.stride);
    if (o.start) {
        if (*o.start > 0xffffffffu) refuse("--first: {} is no token", *o.start);
        q.start = static_cast<std::uint32_t>(*o.start);
    }
    const int sources = (o.tokens.empty() ? 0 : 1) + (o.text.empty() ? 0 : 1) + (o.sample ? 1 : 0);
    if (sources != 1) {
        refuse(
            "say which tokens to predict, in one way: --text FILE, --tokens FILE with their ids, "
            "or --sample N, which draws N from the model itself");
    }
    if (q.dump.empty() != q.dump_file.empty()) {
        refuse("--dump PATTERN and -o FILE: which activations, and where to");
    }
    std::vector<std::string> inputs{q.model}, more;
    for (const std::string& file : {o.tokens, o.text}) {
        if (!file.empty()) inputs.push_back(file);
    }
    for (const std::string& file : {o.scores, q.dump_file}) {
        if (!file.empty()) more.push_back(file);
    }
    for (std::string& file : files_beside(q.model)) inputs.push_back(std::move(file));
    outputs to(o.out, inputs, more);
    const std::unique_ptr<tokens::tokenizer> words = tokenizer_of(o);
    if (!o.tokens.empty()) q.tokens = llm::read_tokens(o.tokens);
    if (!o.text.empty()) q.tokens = tokens_of_text(o, *words);
    q.text = o.text.empty() ? o.tokens : o.text;
    q.encoded = !o.text.empty();
    q.cancel = &interrupted();
    std::optional<step_bar> bar;
    q.progress = [&](const char*, std::size_t done, std::size_t all) {
        if (done == 0) bar.emplace(o.run.quiet, all);
        bar->step();
    };
    lab::execution_context on(base::thread_count(o.run.threads),
                              chosen_backend(o.run.backend).name);
    eval::findings f = eval::run(q, on);
    bar.reset();
    if (words) {
        for (const std::uint32_t id : f.of.predicted) {
            f.pieces.push_back(id < words->vocabulary() ? words->piece(id) : std::string());
        }
    }
    if (!o.scores.empty()) {
        io::output_file file(o.scores);
        report::write_json(eval::scores_of(f), {},
                           [&](std::string_view text) { file.append(text); });
        file.commit();
    }
    report::document d = eval::document_of(f, pages::document_head("mx.eval/1"));
    d.sections = pages::document_page(d).sections;
    to.finish(d, o.run.quiet);
    return exit_code::fine;
}

}  // namespace

runner declare_eval(parser& cmd) {
    const auto o = std::make_shared<eval_options>();
    cmd.group("Input");
    cmd.add_option("MODEL", o->request.model,
                   "a folder with config.json and safetensors, an index, a GGUF file, or a file "
                   "with names of llama2.c")
        ->required();
    cmd.add_option("--tokens FILE", o->tokens,
                   "ids of the text's tokens: one array of U16, U32, I32 or I64");
    cmd.add_option("--text FILE", o->text,
                   "a text ('-': standard input), by the tokenizer that comes with the model");
    cmd.add_option(
        "--tokenizer FILE", o->tokenizer,
        "another tokenizer: tokenizer.json, tokenizer.model, a GGUF file, or one of llama2.c");
    cmd.add_option("--sample N", o->sample, "N tokens drawn from the model itself instead")
        ->in_range(std::uint64_t{2}, std::uint64_t{1} << 24);
    cmd.add_option("--seed N", o->request.seed, "of --sample and --pairs (1)")->not_negative();
    cmd.add_option("--first ID", o->start, "first token of a sample (the model's, else 0)")
        ->not_negative();
    cmd.add_option("--context N", o->context,
                   "tokens of a window (2048, samples 256, or the model's if fewer)")
        ->in_range(std::uint64_t{2}, std::uint64_t{1} << 24);
    cmd.add_option("--stride N", o->stride, "from one window to the next (the context)")
        ->in_range(std::uint64_t{1}, std::uint64_t{1} << 24);
    cmd.add_option("--heads N", o->heads, "heads of a model of llama2.c without configuration")
        ->not_negative();
    cmd.group("Precision");
    cmd.add_option("-r,--recipe RECIPE", o->request.recipes,
                   "weights and inputs of linear layers; or settings: 'weights=mxfp4 "
                   "activations=mxfp8'; repeatable");
    cmd.add_option("--weights RECIPE", o->request.weights,
                   "weights alone, or with --activations; repeatable");
    cmd.add_option("--activations RECIPE", o->request.activations,
                   "inputs of linear layers; repeatable");
    cmd.add_option("--kv RECIPE", o->request.kv, "cached keys and values; repeatable");
    cmd.add_option("--attention RECIPE", o->request.attention,
                   "queries, keys, probabilities and values as operands; repeatable");
    cmd.add_option("--at PATTERN:KEY=VALUE", o->request.at,
                   "some layers otherwise: '*.down_proj:x=mxfp8'; repeatable");
    cmd.add_option("--accumulate MODEL", o->request.accumulate,
                   "how products of linear layers are summed (mx explain accumulators)");
    cmd.add_option("--precision TYPE", o->precision,
                   "of the forward pass: float32 (default) or float64, the reference");
    cmd.group("Parts");
    cmd.add_option("--each LEVEL", o->each,
                   "one place at a time, and all but one: layer, block, kind or tensor");
    cmd.add_option("--by WAY", o->by,
                   "evaluation (default): each part is run; gradient: predicted from one backward "
                   "pass; both, with their rank correlation");
    cmd.add_option("--pairs N", o->pairs, "N pairs of these places")->not_negative();
    cmd.add_flag("--layers", o->request.layer_errors,
                 "errors of the outputs of every linear layer");
    cmd.group("Output");
    cmd.add_option(
        "--dump PATTERN", o->request.dump,
        "matrices of the model as it is that match: of linear layers inputs NAME.x, weights "
        "NAME.weight and gradients of outputs NAME.dy; keys NAME.k_cache, values "
        "NAME.v_cache and probabilities NAME.p of attention; the residual stream NAME.residual "
        "that enters a block and the last norm; the input NAME.x of the head; repeatable");
    cmd.add_option("-o,--output FILE", o->request.dump_file, "safetensors file of --dump")
        ->file_name();
    cmd.add_flag("--per-token", o->request.per_token, "every token's figures in JSON");
    cmd.add_option("--scores FILE", o->scores, "perplexities for --eval of other commands")
        ->file_name();
    declare_outputs(cmd, o->out);
    declare_run(cmd, o->run, false);
    cmd.description(
        "What a recipe does to a language model: cross-entropy, perplexity, and the divergence of "
        "its predictions from those of the model as it is, token by token. Weights and inputs of "
        "the linear layers are quantized; embedding, head, norms, softmax and sums are not. The "
        "same bytes for any number of threads and instruction set. docs/design/evaluation.md "
        "states each step.");
    cmd.examples(
        "mx eval model.gguf --sample 2000 -r mxfp8:scale=rceil -r nvfp4\n"
        "mx eval folder --tokens ids.npy --weights mxfp4 --weights nvfp4 --json eval.json\n"
        "mx eval folder --tokens ids.npy -r mxfp4 --each block --html eval.html\n"
        "mx eval folder --tokens ids.npy -r mxfp4 --each layer --by gradient\n"
        "mx eval folder --tokens ids.npy -r mxfp4 --at '*.down_proj:x=mxfp8' --kv mxfp8\n"
        "mx eval folder --tokens ids.npy -r mxfp8 --scores scores.json\n"
        "mx eval folder --tokens ids.npy --dump '*.down_proj.*' -o down.safetensors\n"
        "mx layer down.safetensors -r mxfp8\n");
    return [o] { return run_eval(*o); };
}

}  // namespace mx::app
