// What else there is to say of a run or a measurement: when, how, with which code, on what machine.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tg::app {

// `command`: the words of the command line.
nlohmann::ordered_json circumstances(const std::vector<std::string>& command);
// JSON as it stands in a file. Names of files need not be UTF-8, which JSON is: what is not becomes
// a replacement character.
std::string text_of(const nlohmann::ordered_json& json);

}  // namespace tg::app
