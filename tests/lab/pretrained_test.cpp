// SPDX-License-Identifier: Apache-2.0
// Trainings that go on from a model: its loss and gradients against torch and mx eval, checkpoints,
// and the models that are refused.
#include <cmath>
#include <cstring>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/eval/evaluation.hpp"
#include "libmx/lab/language_model.hpp"
#include "libmx/lab/tensor_file.hpp"
#include "libmx/lab/training.hpp"
#include "libmx/llm/model_weights.hpp"
#include "tests/catch.hpp"
#include "tests/io/scratch_dir.hpp"

namespace mx::lab {
namespace {

std::string folder_of(const std::string& name) {
    return std::string(MX_SOURCE_DIR) + "/datasets/vectors/eval/" + name;
}

std::vector<std::uint32_t> ids_of(const std::string& name) {
    const std::vector<std::byte> bytes =
        tensor_file(folder_of(name) + "/reference.safetensors").bytes("ids", tensor::dtype::i32);
    std::vector<std::uint32_t> ids(bytes.size() / sizeof(std::uint32_t));
    std::memcpy(ids.data(), bytes.data(), bytes.size());
    return ids;
}

double cross_entropy(const llm::model_weights& model, const std::vector<std::uint32_t>& ids,
                     std::size_t context) {
    eval::evaluation_request r;
    r.tokens = ids;
    r.windows = eval::windows_of(ids.size(), context, context);
    r.in = eval::arithmetic::float64;
    execution_context on(1);
    const std::vector<double> nll = eval::evaluate(model, on, {}, r).base.nll;
    return std::accumulate(nll.begin(), nll.end(), 0.0) / static_cast<double>(nll.size());
}

// A .npy file of ids.
void write_ids(const std::string& path, const std::vector<std::uint32_t>& ids) {
    std::string head = "{'descr': '<u4', 'fortran_order': False, 'shape': (" +
                       std::to_string(ids.size()) + ",), }";
    head.resize(64 * ((head.size() + 10) / 64 + 1) - 11, ' ');
    head += '\n';
    std::ofstream to(path, std::ios::binary);
    to << "\x93NUMPY\x01" << '\0' << static_cast<char>(head.size() & 255)
       << static_cast<char>(head.size() >> 8) << head;
    to.write(reinterpret_cast<const char*>(ids.data()),
             static_cast<std::streamsize>(ids.size() * sizeof(std::uint32_t)));
}

}  // namespace

TEST_CASE("a model's loss is that of mx eval, and its gradients are those of torch") {
    const std::string name = GENERATE("llama", "llama3", "qwen2", "qwen3", "mixtral", "qwen3moe");
    CAPTURE(name);
    const llm::model_weights model(folder_of(name));
    const std::vector<std::uint32_t> ids = ids_of(name);
    const std::size_t tokens = ids.size() - 1;
    language_network net(language_shape_of(model.shape(), tokens, model.path()));
    execution_context on(1);
    const std::vector<float> values = net.values_of(model);
    const float loss = net.forward(on, {}, values, ids.data(), ids.data() + 1, tokens, 0, 1);
    CHECK(std::abs(static_cast<double>(loss) / cross_entropy(model, ids, ids.size()) - 1) < 1e-6);
    std::vector<float> gradients(values.size());
    net.backward(on, {}, values, gradients);
    const tensor_file known(folder_of(name) + "/gradients.safetensors");
    std::size_t compared = 0;
    for (const parameter& p : net.parameters().all()) {
        if (!known.has(p.name)) continue;
        ++compared;
        const std::vector<float> exact = known.read(p.name, p.shape);
        double wrong = 0, all = 0;
        for (std::size_t i = 0; i < p.count; ++i) {
            const auto x = static_cast<double>(exact[i]);
            wrong += std::pow(static_cast<double>(gradients[p.first + i]) - x, 2);
            all += x * x;
        }
        INFO(p.name);
        CHECK(std::sqrt(wrong / all) < 2e-5);
    }
    CHECK(compared == known.names().size());
}

TEST_CASE("a model whose neighbouring features turn together has the values of its other form") {
    const llm::model_weights plain(folder_of("llama"));
    const llm::model_weights gguf(folder_of("llama-gguf") + "/model.gguf");
    REQUIRE(gguf.shape().pairs == llm::rope_pairs::neighbours);
    const language_network net(language_shape_of(plain.shape(), 8, ""));
    CHECK((net.values_of(gguf) == net.values_of(plain)));
}

TEST_CASE("configurations of models that are trained are read back as they are written") {
    for (const char* name : {"llama", "llama3", "qwen2", "qwen3", "mixtral", "qwen3moe"}) {
        CAPTURE(name);
        const llm::model_weights model(folder_of(name));
        const io::config_entries entries = llm::config_of(model.shape());
        const llm::model_shape s =
            llm::shape_of_config(entries, llm::naming::hugging_face, "config.json");
        CHECK(llm::config_of(s) == entries);
        CHECK(s.kind == model.shape().kind);
        CHECK(s.query_bias == model.shape().query_bias);
        CHECK(s.scaling.high == model.shape().scaling.high);
        CHECK(s.experts_used == model.shape().experts_used);
        CHECK(s.experts_renormalized == model.shape().experts_renormalized);
    }
}

TEST_CASE("a training goes on from a model, can be resumed, and mx eval reads its checkpoint") {
    const std::string name = GENERATE("llama", "qwen2", "mixtral", "qwen3moe");
    CAPTURE(name);
    const test::scratch_dir dir;
    const std::string tokens = dir / "ids.npy", checkpoint = dir / "checkpoint.safetensors";
    const std::vector<std::uint32_t> once = ids_of(name);
    std::vector<std::uint32_t> ids;
    for (int i = 0; i < 6; ++i) ids.insert(ids.end(), once.begin(), once.end());
    write_ids(tokens, ids);
    run_request r = request_for("llama", "");
    begin_with_model(r, folder_of(name));
    CHECK(r.context == 64);
    r.tokens_file = tokens;
    r.context = 16;
    r.batch = 48;
    r.rate = 1e-2;
    r.steps = 4;
    fit_schedule(r);
    training t(r, execution_context(1));
    t.step();
    t.step();
    t.save(checkpoint);
    training again(checkpoint, execution_context(2), {{"tokens", tokens}});
    CHECK(again.request().config == r.config);
    for (training* one : {&t, &again}) {
        while (!one->finished()) one->step();
        one->evaluate();
    }
    CHECK((t.values() == again.values()));
    CHECK(t.held_out_loss() == again.held_out_loss());
    CHECK(t.history().back().loss < t.history().front().loss);
    t.save(checkpoint);
    const llm::model_weights trained(dir.path());
    language_network net(language_shape_of(trained.shape(), once.size() - 1, trained.path()));
    CHECK((net.values_of(trained) == t.values()));
    execution_context on(1);
    const float loss =
        net.forward(on, {}, t.values(), once.data(), once.data() + 1, once.size() - 1, 0, 1);
    CHECK(std::abs(static_cast<double>(loss) / cross_entropy(trained, once, once.size()) - 1) <
          1e-6);
    // Nothing of the model is left out when its own checkpoint begins another training.
    run_request next = request_for("llama", "");
    begin_with_model(next, dir.path());
    CHECK(next.config == r.config);
}

TEST_CASE("models that the network does not compute are refused by name") {
    const auto message = [](const std::string& name) -> std::string {
        run_request r = request_for("llama", "");
        try {
            begin_with_model(r, folder_of(name));
        } catch (const base::error& e) {
            return e.message();
        }
        return {};
    };
    CHECK(message("olmo2").starts_with("has norms after attention and MLP"));
    CHECK(message("gemma3").starts_with("has norms after attention and MLP"));
    CHECK(message("mistral").starts_with("has attention with a window"));
}

}  // namespace mx::lab
