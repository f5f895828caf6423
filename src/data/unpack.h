// Private to data/: unpacks gzip (RFC 1952) and zstd (RFC 8878) files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sinew::data {

// Returns whether the bytes begin as a gzip or zstd file does.
bool is_packed(std::span<const std::byte> file);

// Unpacks a file of one or several gzip members or zstd frames, one after another. `name` is for messages. Throws Error
// if the file is damaged, or if its content has more than `limit` bytes.
std::vector<std::byte> unpack(std::span<const std::byte> file, const std::string& name, uint64_t limit);

// Unpacks at most `limit` bytes from the beginning of a file, of which only the beginning is known. Returns what it
// could unpack before the first damage.
std::vector<std::byte> unpack_head(std::span<const std::byte> file, size_t limit);

// Throws Error if a file or its content is larger than `limit` bytes.
void check_size(uint64_t size, uint64_t limit, const std::string& name);

}  // namespace sinew::data
