// SPDX-License-Identifier: Apache-2.0
// The pickle machine, and pickles that mean harm.
#include "libmx/files/pytorch/pickle_graph.hpp"

#include "libmx/files/pytorch/tensor_paths.hpp"
#include "tests/io/pickles.hpp"

using namespace mx;
using namespace mx::test;
using io::pickle_kind;

namespace {

io::pickle_graph parse(const std::string& pickle) {
    return io::read_pickle(pickle, "f.pt", "data.pkl");
}
std::string parse_error(const std::string& pickle) {
    return error_of(base::error_kind::input, [&] { parse(pickle); });
}

}  // namespace

TEST_CASE("pickle: values of every kind", "[pickle]") {
    const auto integer = [](const std::string& code) {
        const io::pickle_graph graph = parse("\x80\x05" + code + ".");
        return graph.integer(graph.root());
    };
    CHECK(integer("K\xff") == 255);
    CHECK(integer(std::string("M\0\x80", 3)) == 0x8000);
    CHECK(integer("J\xff\xff\xff\xff") == -1);
    CHECK(integer(std::string("\x8a\0", 2)) == 0);
    CHECK(integer("\x8a\x01\xff") == -1);
    CHECK(integer(std::string("\x8a\x02\xff\0", 4)) == 255);
    CHECK(integer(std::string("\x8b\x02\0\0\0\0\x80", 7)) == -32768);
    CHECK(integer("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f") == INT64_MAX);
    CHECK(!integer(std::string("\x8a\x09\0\0\0\0\0\0\0\0\x01", 11)));

    const io::pickle_graph graph =
        parse("\x80\x04\x95" + little(2, 8) + "(N\x88\x89G" + big_endian(0x3ff8000000000000u, 8) +
              "C\x02" + "by" + "\x8c\x02te" + "\x8d" + little(2, 8) + "xt" + "U\x01" + "s" + "]" +
              "(K\x01K\x02" + "e" + "}K\x03N" + "s" + ")" + "\x8f(K\x01\x90" + "(K\x01\x91" +
              "K\x01\x85" + "K\x01K\x02\x86" + "t.");
    const auto all = graph.items(graph.root());
    REQUIRE(all.size() == 15);
    CHECK(graph.kind(all[0]) == pickle_kind::none);
    CHECK(graph.truth(all[1]));
    CHECK(!graph.truth(all[2]));
    CHECK(graph.kind(all[3]) == pickle_kind::real);
    CHECK(graph[all[3]].word == 0x3ff8000000000000u);
    CHECK(graph.text(all[4]) == "by");
    CHECK(graph.text(all[5]) == "te");
    CHECK(graph.text(all[6]) == "xt");
    CHECK(graph.text(all[7]) == "s");
    CHECK(graph.items(all[8]).size() == 2);
    CHECK(graph.items(all[9]).size() == 2);
    CHECK(graph[all[9]].pairs);
    CHECK(graph.items(all[10]).empty());
    CHECK(graph.kind(all[11]) == pickle_kind::set);
    CHECK(graph.kind(all[12]) == pickle_kind::set);
    CHECK(graph.items(all[13]).size() == 1);
    CHECK(graph.items(all[14]).size() == 2);
}

TEST_CASE("pickle: the memo, and calls that are not made", "[pickle]") {
    const io::pickle_graph graph =
        parse("\x80\x04" + p_text("os") + "\x94" + p_text("system") + "\x94\x93\x94" +
              p_text("touch /tmp/never") + "\x85R\x94}" + p_text("a") + "K\x01sb.");
    const io::pickle_ref root = graph.root();
    CHECK(graph.kind(root) == pickle_kind::object);
    CHECK(graph.class_name(root) == "os.system");
    CHECK(graph.text(graph.at(graph[root].arguments, 0)) == "touch /tmp/never");
    CHECK(graph.integer(graph.attribute(root, "a")) == 1);

    const io::pickle_graph shared = parse(
        "\x80\x02]q\x05(h\x05h\x05"
        "e.");
    const auto items = shared.items(shared.root());
    REQUIRE(items.size() == 2);
    CHECK(items[0] == shared.root());

    const io::pickle_graph looked_up = parse(p_pickle(p_call(
        p_call(p_global("builtins", "getattr"), {p_global("a.b", "C"), p_text("make")}), {})));
    CHECK(looked_up.class_name(looked_up.root()) == "a.b.C.make");
}

TEST_CASE("pickle: what is malformed", "[pickle][hostile]") {
    for (const auto& [pickle, message] : std::vector<std::pair<std::string, std::string>>{
             {"", "ends early"},
             {"\x80\x06.", "protocol 6"},
             {".", "empty stack"},
             {"(N1.", "empty stack"},
             {"(0.", "empty stack"},
             {"N(.", "empty stack"},
             {"t.", "a mark where there is none"},
             {"N\x86.", "empty stack"},
             {"h\x05.", "memo entry 5 was never made"},
             {"Nr\xff\xff\xff\x7f.", "memo entry 2147483647 in a pickle this short"},
             {"X\xff\xff\xff\x7f"
              "a",
              "2147483647 bytes are needed, 1 are left"},
             {"\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
              "a",
              "18446744073709551615 bytes"},
             {"\x8b\xff\xff\xff\x7f"
              "a",
              "2147483647 bytes are needed"},
             {"\x8b\xff\xff\xff\xff", "negative length"},
             {"\x95\xff\xff\xff\xff\xff\xff\xff\xff", "a frame that ends after the pickle"},
             {"cos\nsystem", "within a name"},
             {"NN\x93.", "the name of a global is not a string"},
             {"NNR.", "arguments that are not a tuple"},
             {"NNb.", "something that is not an object"},
             {"NNa.", "not a list or set"},
             {"NNNs.", "not a dict"},
             {"}(Nu.", "a key and no value"},
             {"(Nd.", "a key and no value"},
             {"(e.", "a container that is not there"},
             {"(u.", "a container that is not there"},
             {"(o.", "a call of nothing"},
             {"ca\nb\n)R(NNu(Ne.", "like a list and like a dict"},
             {"ca\nb\n)R(Ne(NNu.", "like a list and like a dict"},
             {"I1\n.", "opcode 0x49"},
             {"\x82\x01.", "opcode 0x82"},
             {"\x97.", "opcode 0x97"},
             {std::string("\0", 1), "opcode 0x00"}}) {
        INFO(message);
        const std::string found = parse_error(pickle);
        has(found, message);
        has(found, "f.pt: tensor 'data.pkl': at byte ");
    }
}

TEST_CASE("pickle: every cut and every changed byte ends", "[pickle][hostile]") {
    const std::string sound = p_pickle(p_dict({{"a", p_four()},
                                               {"b",
                                                "](K\x01K\x02"
                                                "e"},
                                               {"c", p_call(p_global("m", "f"), {"N"})}}));
    const io::pickle_graph whole = parse(sound);
    CHECK(io::find_tensors(whole, "f.pt", "f").tensors.size() == 1);
    for (std::size_t length = 0; length < sound.size(); ++length) {
        parse_error(sound.substr(0, length));
    }
    for (std::size_t at = 0; at < sound.size(); ++at) {
        for (int bit = 0; bit < 8; ++bit) {
            std::string changed = sound;
            changed[at] = static_cast<char>(changed[at] ^ 1 << bit);
            try {
                io::find_tensors(parse(changed), "f.pt", "f");
            } catch (const base::error& e) {
                CHECK(e.kind() == base::error_kind::input);
            }
        }
    }
}

TEST_CASE("pickle: bombs", "[pickle][hostile]") {
    // Deep nesting needs no stack of ours.
    const std::size_t deep = 2000000;
    const std::string nested = std::string(deep, ']') + std::string(deep - 1, 'a') + ".";
    CHECK(io::find_tensors(parse(nested), "f.pt", "f").tensors.empty());
    const std::string tuples = "N" + std::string(deep, '\x85') + ".";
    CHECK(io::find_tensors(parse(tuples), "f.pt", "f").tensors.empty());
    // A tensor below all that is nested too deep to have a name.
    has(error_of(base::error_kind::input,
                 [&] {
                     io::find_tensors(parse(p_four() + std::string(deep, '\x85') + "."), "f.pt",
                                      "f");
                 }),
        "nested more than 1000 deep");
    // 2^40 paths to one list: nothing to list, so each is visited once.
    std::string laughs = "]q";
    laughs += '\0';
    for (int i = 1; i <= 40; ++i) {
        laughs += "]q" + little(static_cast<std::uint64_t>(i), 1) + "(";
        for (int k = 0; k < 2; ++k) laughs += "h" + little(static_cast<std::uint64_t>(i - 1), 1);
        laughs += "e";
    }
    CHECK(io::find_tensors(parse(laughs + "."), "f.pt", "f").tensors.empty());
    // The same with a tensor at the end.
    has(error_of(base::error_kind::input,
                 [&] {
                     io::find_tensors(
                         parse(p_four() + "q" + std::string(1, '\0') + laughs.substr(3) + "."),
                         "f.pt", "f");
                 }),
        "repeats or unpacks its contents so often");
    // A long key at every level.
    const std::string key = p_text(std::string(60000, 'k')) + "q" + std::string(1, '\0');
    has(error_of(base::error_kind::input,
                 [&] {
                     io::find_tensors(
                         parse("}" + key + "}h" + std::string(1, '\0') + p_four() + "ss."), "f.pt",
                         "f");
                 }),
        "a name is longer than 65536 bytes");
    has(error_of(base::error_kind::input,
                 [] { parse(std::string(io::pickle_size_limit + 1, 'N')); }),
        "mx reads up to 128 MiB");
    has(parse_error(std::string(io::pickle_value_limit + 1, 'N')), "more than 16777216 values");
    has(parse_error(std::string((1 << 20) + 1, '(')), "too many open marks");
}

TEST_CASE("pickle: values that contain themselves are entered once", "[pickle][hostile]") {
    // l = [tensor, l, {"me": l}]
    const std::string list = "]q" + std::string(1, '\0') + "(" + p_four() + "h" +
                             std::string(1, '\0') + "}" + p_text("me") + "h" +
                             std::string(1, '\0') + "se.";
    const io::checkpoint_values found = io::find_tensors(parse(list), "f.pt", "f");
    REQUIRE(found.tensors.size() == 1);
    CHECK(found.tensors[0].name == "0");
}

TEST_CASE("pickle: names", "[pickle]") {
    const std::string four = p_four();
    const auto names = [](const std::string& root) {
        std::vector<std::string> all;
        for (const io::named_value& each :
             io::find_tensors(parse(p_pickle(root)), "f.pt", "f").tensors) {
            all.push_back(each.name);
        }
        return all;
    };
    using list = std::vector<std::string>;
    CHECK(names(four) == list{"f"});
    CHECK(names(p_tuple({four, four})) == list{"0", "1"});
    CHECK(names(p_dict({{"a.b", four}, {"a", p_dict({{"b", four}})}})) == list{"a.b", "a.b#2"});
    CHECK(names("}(\x88" + four + "N" + four + "K\x07" + four + "u") == list{"True", "[1]", "7"});
    CHECK(names(p_call(p_global("collections", "OrderedDict"),
                       {"](](" + p_text("k") + four + "ee"})) == list{"k"});
    // Attributes and slots of an unknown object.
    CHECK(names(p_global("m", "C") + ")\x81" +
                p_tuple({p_dict({{"_modules", p_dict({{"x", four}})}}), p_dict({{"y", four}})}) +
                "b") == list{"x", "y"});
    // A module has its state_dict, and no other attributes.
    const std::string weights = p_dict({{"w", four}});
    const std::string none = p_dict({});
    CHECK(names(p_global("m", "GRU") + ")\x81" +
                p_dict({{"_parameters", weights},
                        {"_buffers", none},
                        {"_modules", p_dict({{"inner", weights}})},
                        {"_flat_weights", p_tuple({four})}}) +
                "b") == list{"w", "inner.w"});
    has(error_of(base::error_kind::input,
                 [&] {
                     names(p_dict({{"a", four}, {"a", four}}));
                 }),
        "the key 'a' is duplicated");
}
