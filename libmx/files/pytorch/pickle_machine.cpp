// SPDX-License-Identifier: Apache-2.0
// The stack machine of pickle (Python's Lib/pickletools.py lists the opcodes). It records the
// contents of the pickle and executes nothing.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "libmx/files/pytorch/pickle_graph.hpp"
#include "libmx/io/input_file.hpp"

namespace mx::io {
namespace {
constexpr std::size_t mark_limit = 1 << 20;
constexpr std::size_t allocation_bytes = 32;  // the least that one takes
}  // namespace

class pickle_machine {
  public:
    pickle_machine(std::string bytes, const std::string& file, const std::string& entry,
                   std::uint64_t stored_bytes)
        : graph_(std::move(bytes), std::make_shared<read_budget>(file, stored_bytes)),
          file_(file),
          entry_(entry) {
        if (data().size() > pickle_size_limit) {
            fail(fmt::format("the pickle has {} bytes; mx reads up to {} MiB", data().size(),
                             pickle_size_limit >> 20));
        }
    }

    pickle_graph run() {
        while (!done_) step();
        return std::move(graph_);
    }

  private:
    std::string_view data() const { return graph_.bytes_; }

    [[noreturn]] void fail(const std::string& message) const {
        input_error(message, {file_, entry_, opcode_at_});
    }

    // Arguments of an opcode ------------------------------------------------------------------

    std::size_t take(std::uint64_t count) {
        if (count > data().size() - at_) {
            fail(fmt::format("the pickle ends early: {} bytes are needed, {} are left", count,
                             data().size() - at_));
        }
        const std::size_t begin = at_;
        at_ += static_cast<std::size_t>(count);
        return begin;
    }
    std::uint64_t little(std::uint64_t bytes) {
        const std::size_t begin = take(bytes);
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < bytes; ++i) {
            value |= std::uint64_t{static_cast<unsigned char>(data()[begin + i])} << 8 * i;
        }
        return value;
    }

    // Values ----------------------------------------------------------------------------------

    void spend(std::uint64_t bytes) { graph_.budget().take(bytes, entry_); }

    pickle_ref add(const pickle_value& value) {
        if (graph_.values_.size() >= pickle_value_limit) {
            fail(fmt::format("the pickle makes more than {} values", pickle_value_limit));
        }
        spend(sizeof value);
        graph_.values_.push_back(value);
        return static_cast<pickle_ref>(graph_.values_.size() - 1);
    }
    void push(pickle_ref ref) {
        if (stack_.size() >= pickle_item_limit) fail("the stack of the pickle grows too high");
        if (stack_.size() == stack_.capacity()) spend(sizeof ref * stack_.size());
        stack_.push_back(ref);
    }
    void push_new(pickle_kind kind, std::uint64_t word = 0) {
        pickle_value value;
        value.kind = kind;
        value.word = word;
        value.pairs = kind == pickle_kind::dict;
        push(add(value));
    }
    pickle_ref text_at(pickle_kind kind, std::size_t begin, std::size_t length) {
        pickle_value value;
        value.kind = kind;
        value.word = std::uint64_t{begin} << 32 | length;
        return add(value);
    }
    void push_text(pickle_kind kind, std::uint64_t length_bytes) {
        const std::uint64_t length = little(length_bytes);
        const std::size_t begin = take(length);
        push(text_at(kind, begin, static_cast<std::size_t>(length)));
    }
    pickle_ref line() {
        const std::size_t end = data().find('\n', at_);
        if (end == std::string_view::npos) fail("the pickle ends within a name");
        const std::size_t begin = std::exchange(at_, end + 1);
        return text_at(pickle_kind::text, begin, end - begin);
    }

    // The stack -------------------------------------------------------------------------------

    std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
    pickle_ref pop() {
        if (stack_.size() <= floor()) fail("the pickle takes from an empty stack");
        const pickle_ref ref = stack_.back();
        stack_.pop_back();
        return ref;
    }
    pickle_ref top() const {
        if (stack_.size() <= floor()) fail("the pickle looks at an empty stack");
        return stack_.back();
    }
    // Where the values since the last mark begin; the mark is gone then.
    std::size_t pop_mark() {
        if (marks_.empty()) fail("the pickle needs a mark where there is none");
        const std::size_t begin = marks_.back();
        marks_.pop_back();
        return begin;
    }
    void append(pickle_ref container, std::size_t begin) {
        pickle_value& value = graph_.values_[container];
        const std::size_t count = stack_.size() - begin;
        if (count != 0) {
            if (value.items == no_value) {
                value.items = static_cast<std::uint32_t>(graph_.items_.size());
                spend(sizeof(std::vector<pickle_ref>) + allocation_bytes);
                graph_.items_.emplace_back();
            }
            spend(sizeof(pickle_ref) * count);
            items_ += count;
            if (items_ > pickle_item_limit) {
                fail(fmt::format("the pickle holds more than {} items", pickle_item_limit));
            }
            std::vector<pickle_ref>& all = graph_.items_[value.items];
            all.insert(all.end(), stack_.begin() + static_cast<std::ptrdiff_t>(begin),
                       stack_.end());
        }
        stack_.resize(begin);
    }
    void collect(pickle_kind kind, std::size_t begin) {
        pickle_value value;
        value.kind = kind;
        value.pairs = kind == pickle_kind::dict;
        const pickle_ref made = add(value);
        if (value.pairs && (stack_.size() - begin) % 2 != 0) fail("a dict with a key and no value");
        append(made, begin);
        push(made);
    }
    void collect_marked(pickle_kind kind) { collect(kind, pop_mark()); }
    void collect_last(std::size_t count) { collect(pickle_kind::tuple, last(count)); }

    // APPEND, APPENDS, ADDITEMS: the container lies below `begin`.
    void extend(std::size_t begin, pickle_kind plain) {
        const pickle_ref container = below(begin);
        pickle_value& value = graph_.values_[container];
        const bool object = value.kind == pickle_kind::object;
        if (value.kind != plain && !object)
            fail(
                "the pickle appends to something that is not a "
                "list or set");
        if (object && value.pairs) fail("one object is filled like a list and like a dict");
        append(container, begin);
    }
    void set_items(std::size_t begin) {
        const pickle_ref container = below(begin);
        pickle_value& value = graph_.values_[container];
        const bool object = value.kind == pickle_kind::object;
        if (value.kind != pickle_kind::dict && !object)
            fail(
                "the pickle sets a key of something "
                "that is not a dict");
        if (object && !value.pairs && value.items != no_value) {
            fail("one object is filled like a list and like a dict");
        }
        if ((stack_.size() - begin) % 2 != 0) fail("a dict with a key and no value");
        value.pairs = true;
        append(container, begin);
    }
    pickle_ref below(std::size_t begin) const {
        if (begin <= floor()) fail("the pickle fills a container that is not there");
        return stack_[begin - 1];
    }
    std::size_t last(std::size_t count) const {
        if (stack_.size() - floor() < count) fail("the pickle takes from an empty stack");
        return stack_.size() - count;
    }

    // Calls that are not made -----------------------------------------------------------------

    void push_call(pickle_kind kind, pickle_ref callee, pickle_ref arguments, bool made = false) {
        pickle_value value;
        value.kind = kind;
        value.made = made;
        value.arguments = arguments;
        value.callee = callee;
        push(add(value));
    }
    void call(bool made) {
        const pickle_ref arguments = pop();
        const pickle_ref callee = pop();
        if (graph_.kind(arguments) != pickle_kind::tuple) fail("arguments that are not a tuple");
        push_call(pickle_kind::object, callee, arguments, made);
    }
    void call_with_names() {
        pop();  // keyword arguments: no supported function has any
        call(true);
    }
    void call_marked() {
        const std::size_t begin = pop_mark();
        if (begin >= stack_.size()) fail("a call of nothing");
        const pickle_ref callee = stack_[begin];
        collect(pickle_kind::tuple, begin + 1);
        const pickle_ref arguments = stack_.back();
        stack_.resize(begin);
        push_call(pickle_kind::object, callee, arguments, true);
    }
    void build() {
        const pickle_ref state = pop();
        pickle_value& target = graph_.values_[top()];
        if (target.kind != pickle_kind::object)
            fail(
                "the pickle sets attributes of something "
                "that is not an object");
        target.state = state;
    }
    void global(pickle_ref module, pickle_ref name) {
        if (graph_.kind(module) != pickle_kind::text || graph_.kind(name) != pickle_kind::text) {
            fail("the name of a global is not a string");
        }
        push_call(pickle_kind::global, module, name);
    }
    void stack_global() {
        const pickle_ref name = pop();
        global(pop(), name);
    }
    void line_global() {
        const pickle_ref module = line();
        global(module, line());
    }
    void persistent() { push_call(pickle_kind::persistent, no_value, pop()); }

    // The memo --------------------------------------------------------------------------------

    void put(std::uint64_t index) {
        // Each entry took at least one byte of the pickle to make.
        if (index > at_) fail(fmt::format("memo entry {} in a pickle this short", index));
        const pickle_ref ref = top();
        if (index >= memo_.size()) {
            spend(sizeof ref * (index + 1 - memo_.size()));
            memo_.resize(static_cast<std::size_t>(index) + 1, no_value);
        }
        pickle_ref& entry = memo_[static_cast<std::size_t>(index)];
        memo_count_ += entry == no_value ? 1 : 0;
        entry = ref;
    }
    void get(std::uint64_t index) {
        if (index >= memo_.size() || memo_[static_cast<std::size_t>(index)] == no_value) {
            fail(fmt::format("memo entry {} was never made", index));
        }
        push(memo_[static_cast<std::size_t>(index)]);
    }

    // Numbers ---------------------------------------------------------------------------------

    void integer(std::uint64_t bytes) { push_new(pickle_kind::integer, little(bytes)); }
    void long_integer(std::uint64_t bytes) {
        if (bytes > 8) {
            take(bytes);
            return push_new(pickle_kind::big_integer);
        }
        std::uint64_t value = little(bytes);
        const bool negative = bytes != 0 && value >> (8 * bytes - 1) != 0;
        if (negative && bytes < 8) value |= ~std::uint64_t{0} << 8 * bytes;
        push_new(pickle_kind::integer, value);
    }
    void long_integer_of_four() {
        const std::uint64_t length = little(4);
        if (length > 0x7fffffffu) fail("an integer of negative length");
        long_integer(length);
    }

    // The rest --------------------------------------------------------------------------------

    void protocol() {
        const std::uint64_t version = little(1);
        if (version > 5) fail(fmt::format("pickle protocol {} is not known", version));
    }
    void frame() {
        const std::uint64_t length = little(8);
        if (length > data().size() - at_) fail("a frame that ends after the pickle");
    }
    void stop() {
        graph_.root_ = pop();
        done_ = true;
    }
    void mark() {
        if (marks_.size() >= mark_limit) fail("the pickle has too many open marks");
        marks_.push_back(stack_.size());
    }
    void pop_value_or_mark() {
        if (!marks_.empty() && marks_.back() == stack_.size()) {
            marks_.pop_back();
        } else {
            pop();
        }
    }

    void step();

    pickle_graph graph_;
    const std::string& file_;
    const std::string& entry_;
    std::size_t at_ = 0;
    std::size_t opcode_at_ = 0;
    std::vector<pickle_ref> stack_;
    std::vector<std::size_t> marks_;
    std::vector<pickle_ref> memo_;
    std::uint64_t memo_count_ = 0;
    std::size_t items_ = 0;
    bool done_ = false;
};

// One opcode.
void pickle_machine::step() {
    using machine = pickle_machine;
    using kind = pickle_kind;
    struct opcode {
        unsigned char code;
        void (*run)(machine&);
    };
    static constexpr opcode opcodes[] = {
        {0x80, [](machine& m) { m.protocol(); }},
        {0x95, [](machine& m) { m.frame(); }},
        {'.', [](machine& m) { m.stop(); }},
        {'(', [](machine& m) { m.mark(); }},
        {'0', [](machine& m) { m.pop_value_or_mark(); }},
        {'1', [](machine& m) { m.stack_.resize(m.pop_mark()); }},
        {'2', [](machine& m) { m.push(m.top()); }},

        {'N', [](machine& m) { m.push_new(kind::none); }},
        {0x88, [](machine& m) { m.push_new(kind::truth, 1); }},
        {0x89, [](machine& m) { m.push_new(kind::truth, 0); }},
        {'K', [](machine& m) { m.integer(1); }},
        {'M', [](machine& m) { m.integer(2); }},
        {'J', [](machine& m) { m.long_integer(4); }},  // signed
        {0x8a, [](machine& m) { m.long_integer(m.little(1)); }},
        {0x8b, [](machine& m) { m.long_integer_of_four(); }},
        {'G',
         [](machine& m) { m.push_new(kind::real, __builtin_bswap64(m.little(8))); }},  // big-endian
        {'X', [](machine& m) { m.push_text(kind::text, 4); }},
        {'T', [](machine& m) { m.push_text(kind::text, 4); }},  // the str of Python 2
        {0x8c, [](machine& m) { m.push_text(kind::text, 1); }},
        {'U', [](machine& m) { m.push_text(kind::text, 1); }},
        {0x8d, [](machine& m) { m.push_text(kind::text, 8); }},
        {'C', [](machine& m) { m.push_text(kind::bytes, 1); }},
        {'B', [](machine& m) { m.push_text(kind::bytes, 4); }},
        {0x8e, [](machine& m) { m.push_text(kind::bytes, 8); }},
        {0x96, [](machine& m) { m.push_text(kind::bytes, 8); }},  // BYTEARRAY8

        {')', [](machine& m) { m.push_new(kind::tuple); }},
        {0x85, [](machine& m) { m.collect_last(1); }},
        {0x86, [](machine& m) { m.collect_last(2); }},
        {0x87, [](machine& m) { m.collect_last(3); }},
        {'t', [](machine& m) { m.collect_marked(kind::tuple); }},
        {']', [](machine& m) { m.push_new(kind::list); }},
        {'l', [](machine& m) { m.collect_marked(kind::list); }},
        {'a', [](machine& m) { m.extend(m.last(1), kind::list); }},
        {'e', [](machine& m) { m.extend(m.pop_mark(), kind::list); }},
        {'}', [](machine& m) { m.push_new(kind::dict); }},
        {'d', [](machine& m) { m.collect_marked(kind::dict); }},
        {'s', [](machine& m) { m.set_items(m.last(2)); }},
        {'u', [](machine& m) { m.set_items(m.pop_mark()); }},
        {0x8f, [](machine& m) { m.push_new(kind::set); }},
        {0x90, [](machine& m) { m.extend(m.pop_mark(), kind::set); }},
        {0x91, [](machine& m) { m.collect_marked(kind::set); }},

        {'q', [](machine& m) { m.put(m.little(1)); }},
        {'r', [](machine& m) { m.put(m.little(4)); }},
        {0x94, [](machine& m) { m.put(m.memo_count_); }},
        {'h', [](machine& m) { m.get(m.little(1)); }},
        {'j', [](machine& m) { m.get(m.little(4)); }},

        {'c', [](machine& m) { m.line_global(); }},
        {0x93, [](machine& m) { m.stack_global(); }},
        {'R', [](machine& m) { m.call(false); }},
        {0x81, [](machine& m) { m.call(true); }},
        {0x92, [](machine& m) { m.call_with_names(); }},
        {'o', [](machine& m) { m.call_marked(); }},
        {'b', [](machine& m) { m.build(); }},
        {'Q', [](machine& m) { m.persistent(); }},
    };
    static constexpr auto by_code = [] {
        std::array<void (*)(machine&), 256> runs{};
        for (const opcode& o : opcodes) runs[o.code] = o.run;
        return runs;
    }();
    opcode_at_ = at_;
    take(1);
    const auto code = static_cast<unsigned char>(data()[opcode_at_]);
    if (by_code[code] == nullptr) {
        fail(
            fmt::format("pickle opcode 0x{:02x} is not read (mx reads protocols 2 to 5, "
                        "without extension codes and buffers outside the pickle)",
                        code));
    }
    by_code[code](*this);
}

pickle_graph read_pickle(std::string bytes, const std::string& file, const std::string& entry,
                         std::uint64_t stored_bytes) {
    if (stored_bytes == 0) stored_bytes = bytes.size();
    return pickle_machine(std::move(bytes), file, entry, stored_bytes).run();
}

}  // namespace mx::io
