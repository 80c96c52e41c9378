// SPDX-License-Identifier: Apache-2.0
// HDF5 files, read and written.
#include <array>

#include <hdf5.h>

#include "libmx/io/writer.hpp"
#include "tests/io/fixture_values.hpp"

using namespace mx;
using namespace mx::test;
using tensor::dtype;

TEST_CASE("HDF5 of h5py: contiguous datasets of every type", "[hdf5]") {
    const auto file = io::open_model(fixture("h5py.h5"));
    for (const named_type& each : fixture_types) {
        check_fixture(*file, std::string("contiguous/") + each.name, each.type, {5, 7});
    }
    check_fixture(*file, "scalar", dtype::f32, {});
    check_fixture(*file, "empty", dtype::f32, {3, 0, 2});
    check_fixture(*file, "same", dtype::f32, {3, 4, 5, 6});
    check_fixture(*io::open_model(fixture("user_block.h5")), "x", dtype::f32, {5, 7});
}

TEST_CASE("HDF5 of h5py: chunked and compressed datasets", "[hdf5]") {
    const auto file = io::open_model(fixture("h5py.h5"));
    for (const named_type each : {named_type{"bool", dtype::boolean},
                                  {"i1", dtype::i8},
                                  {"f2", dtype::f16},
                                  {"f4", dtype::f32},
                                  {"big_f4", dtype::f32},
                                  {"big_i8", dtype::i64},
                                  {"c8", dtype::c64}}) {
        check_fixture(*file, std::string("deep/chunked/") + each.name, each.type, {23, 17});
    }
    check_fixture(*file, "four", dtype::f32, {3, 4, 5, 6});
    CHECK(values(*file, "filled") == std::vector<float>(16, 2.5f));
}

TEST_CASE("HDF5: any range of bytes", "[hdf5]") {
    const auto file = io::open_model(fixture("h5py.h5"));
    const std::size_t index = index_of(*file, "four");
    const std::string all = content(*file, index);
    const auto source = file->open(index);
    for (std::size_t begin = 0; begin < all.size(); begin += 13) {
        for (std::size_t end = begin; end <= all.size(); end += 37) {
            std::string part(end - begin, ' ');
            source->read(begin, std::as_writable_bytes(std::span(part)));
            if (part != all.substr(begin, end - begin)) FAIL(begin << " " << end);
        }
    }
    std::string beyond(5, ' ');
    has(error_of(base::error_kind::input,
                 [&] { source->read(all.size() - 4, std::as_writable_bytes(std::span(beyond))); }),
        "read past the end");
}

TEST_CASE("HDF5: bfloat16 as bare bytes or unsigned integers", "[hdf5]") {
    const auto file = io::open_model(fixture("h5py.h5"));
    CHECK(find(*file, "bf16_u2")->type == dtype::u16);
    has(find(*file, "bf16_opaque")->note, "--as bf16");
    io::open_options options;
    options.as = "BF16";
    const auto as = io::open_model(fixture("h5py.h5"), options);
    check_fixture(*as, "bf16_opaque", dtype::bf16, {5, 7});
    check_fixture(*as, "bf16_u2", dtype::bf16, {5, 7});
    check_fixture(*as, "bf16_big_u2", dtype::bf16, {5, 7});
}

TEST_CASE("HDF5: data that are not numbers or in other files are listed with the reason",
          "[hdf5]") {
    const auto file = io::open_model(fixture("h5py.h5"));
    const auto note = [&](const std::string& name) { return note_of(*file, name); };
    has(note("text"), "text is not numbers");
    has(note("record"), "records are not numbers");
    has(note("enumeration"), "enumerations are not numbers");
    has(note("null"), "without a dataspace");
    has(note("soft"), "a soft link is not followed");
    has(note("elsewhere"), "a link to another file is not followed");
    has(note("virtual"), "in other files");
    has(note("outside"), "in other files");
    has(note("huge_chunk"), "chunks of 8192x8192 elements are larger than 64 MiB");
    CHECK(find(*file, "deep/loop") == nullptr);
    CHECK(find(*file, "deep/loop/four") == nullptr);
}

TEST_CASE("HDF5: datasets that are a fill value, or have many names, are not read without end",
          "[hdf5][hostile]") {
    const scratch_dir dir;
    const std::string path = dir / "x.h5";
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const auto dataset = [&](const char* name, hsize_t elements) {
        const hid_t space = H5Screate_simple(1, &elements, nullptr);
        const hid_t made =
            H5Dcreate2(file, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5Dclose(made);
        H5Sclose(space);
    };
    dataset("huge", hsize_t{1} << 38);
    dataset("small", 100);
    dataset("linked", hsize_t{1} << 26);
    for (int i = 0; i < 40; ++i) {
        H5Lcreate_hard(file, "linked", file, ("linked" + std::to_string(i)).c_str(), H5P_DEFAULT,
                       H5P_DEFAULT);
    }
    H5Fclose(file);
    const auto opened = io::open_model(path);
    has(find(*opened, "huge")->note, "repeats stored values");
    CHECK(values(*opened, "small") == std::vector<float>(100, 0.0f));
    std::uint64_t read = 0;
    for (const io::tensor_info& t : opened->tensors()) read += t.note.empty() ? t.bytes : 0;
    CHECK(read < std::uint64_t{2} << 30);
    CHECK(find(*opened, "linked")->note.empty());
}

TEST_CASE("HDF5: text attributes are the metadata", "[hdf5]") {
    const auto file = io::open_model(fixture("h5py.h5"));
    CHECK(file->metadata() == io::metadata_map{{"variable", "a text"}, {"fixed", "another"}});
}

TEST_CASE("HDF5: the configuration of a Keras model may be long", "[hdf5][keras]") {
    const scratch_dir dir;
    const auto stated = [&](std::size_t layers) {
        std::string config = R"({"config": {"layers": [)";
        for (std::size_t i = 0; i < layers; ++i) {
            config +=
                R"({"class_name": "Dense", "config": {"name": "d)" + std::to_string(i) + "\"}},";
        }
        config += R"({"class_name": "Conv2DTranspose", "config": {"name": "up"}}]}})";
        const std::string path = dir / "m.h5";
        const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        const hid_t text = H5Tcopy(H5T_C_S1);
        H5Tset_size(text, H5T_VARIABLE);
        const hid_t one = H5Screate(H5S_SCALAR);
        for (const char* name : {"model_config", "other"}) {
            const hid_t made = H5Acreate2(file, name, text, one, H5P_DEFAULT, H5P_DEFAULT);
            const char* const value = config.c_str();
            H5Awrite(made, text, static_cast<const void*>(&value));
            H5Aclose(made);
        }
        const std::array<hsize_t, 4> extents{3, 3, 8, 16};
        const hid_t space = H5Screate_simple(4, extents.data(), nullptr);
        H5Gclose(H5Gcreate2(file, "up", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        H5Dclose(H5Dcreate2(file, "up/kernel:0", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT,
                            H5P_DEFAULT));
        H5Sclose(space);
        H5Sclose(one);
        H5Tclose(text);
        H5Fclose(file);
        const auto opened = io::open_model(path);
        // Other texts keep their limit, and are left out beyond it.
        CHECK(opened->metadata().contains("other") == (config.size() <= 65536));
        const io::contraction& k = find(*opened, "up/kernel:0")->sums_over;
        return std::pair(k.first, k.last);
    };
    CHECK(stated(1) == std::pair(3, 4));
    CHECK(stated(3000) == std::pair(3, 4));
}

TEST_CASE("HDF5: cut and damaged files are refused or read without harm", "[hdf5][hostile]") {
    const scratch_dir dir;
    const std::string sound = slurp(fixture("h5py.h5"));
    for (std::size_t length = 8; length < sound.size(); length += 1777) {
        has(open_error(dir.file("cut.h5", sound.substr(0, length))), "is not a valid HDF5 file");
    }
    // Damage in a compressed chunk shows when the data is read.
    const auto file = io::open_model(fixture("h5py.h5"));
    int failures = 0;
    for (std::size_t at = 2048; at < sound.size(); at += 499) {
        std::string damaged = sound;
        for (std::size_t k = at; k < std::min(at + 4, damaged.size()); ++k) damaged[k] = '\x5a';
        try {
            const auto broken = io::open_model(dir.file("broken.h5", damaged));
            for (std::size_t i = 0; i < broken->tensors().size(); ++i) {
                const auto& info = broken->tensors()[i];
                if (info.note.empty() && info.bytes < 100000) content(*broken, i);
            }
        } catch (const base::error& e) {
            CHECK(static_cast<int>(e.kind()) == static_cast<int>(base::error_kind::input));
            ++failures;
        }
    }
    CHECK(failures > 0);
}

TEST_CASE("HDF5: every dtype that has a place there comes back", "[hdf5][writer]") {
    const scratch_dir dir;
    std::vector<io::planned_array> plan;
    std::vector<std::string> data;
    for (const tensor::dtype_row& row : tensor::dtypes) {
        if (row.id == dtype::other || row.bits < 8) continue;
        for (const tensor::shape& shape : {tensor::shape{}, {0}, {2, 3}, {3, 4, 5}}) {
            plan.push_back(
                {"g/" + std::string(row.name) + "/" + tensor::to_string(shape), row.id, shape});
            std::string bytes(*tensor::byte_count(row.id, *tensor::element_count(shape)), '\0');
            for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 37 + 1);
            if (row.id == dtype::boolean) bytes.assign(bytes.size(), '\1');
            data.push_back(bytes);
        }
    }
    const std::string path = dir / "out.h5";
    const auto write = [&] {
        const auto writer = io::create_hdf5(path, plan, {{"recipe", "mxfp4"}, {"empty", ""}});
        for (std::size_t i = plan.size(); i-- > 0;) {
            const std::size_t half = data[i].size() / 2;
            writer->write(i, half, bytes_of(data[i]).subspan(half));
            writer->write(i, 0, bytes_of(data[i]).first(half));
        }
        writer->commit();
        return slurp(path);
    };
    const std::string first = write();
    CHECK(write() == first);  // no times or addresses in it
    const auto file = io::open_model(path);
    REQUIRE(file->tensors().size() == plan.size());
    for (std::size_t i = 0; i < plan.size(); ++i) {
        INFO(plan[i].name);
        const io::tensor_info* info = find(*file, plan[i].name);
        REQUIRE(info != nullptr);
        CHECK(tensor::row_of(info->type).name == tensor::row_of(plan[i].type).name);
        CHECK(info->shape == plan[i].shape);
        CHECK(content(*file, index_of(*file, plan[i].name)) == data[i]);
    }
    CHECK(file->metadata() == io::metadata_map{{"recipe", "mxfp4"}, {"empty", ""}});
    CHECK(dir.names() == std::vector<std::string>{"out.h5"});
}

TEST_CASE("HDF5: what cannot be written is refused, and nothing is left", "[hdf5][writer]") {
    const scratch_dir dir;
    const auto refused = [&](const std::vector<io::planned_array>& plan,
                             const io::metadata_map& m) {
        return error_of(base::error_kind::output, [&] { io::create_hdf5(dir / "x.h5", plan, m); });
    };
    has(refused({{"a", dtype::f4, {4}}}, {}), "HDF5 has no dtype F4");
    has(refused({{"a", dtype::u8, {4}}, {"a", dtype::u8, {4}}}, {}), "tensor 'a': cannot create");
    has(refused({{"a", dtype::u8, {4}}, {"a/b", dtype::u8, {4}}}, {}),
        "tensor 'a/b': cannot create");
    has(refused({{"a", dtype::u8, {~std::uint64_t{0}}}}, {}), "too large");
    has(refused({}, {{"long", std::string(100000, 'x')}}), "cannot store the metadata 'long'");
    CHECK(dir.names().empty());
}
