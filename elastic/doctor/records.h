// What the doctors of several hosts tell each other, as JSON.
// Promises   what one wrote reads back the same. A record of another version, or one that does not
//            parse, is an error that names the field; even then its host and version can be read,
//            if they are there.
// Threads    pure functions. Errors: kInvalid.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "elastic/doctor/findings.h"

namespace keel {

std::string DoctorFactsText(const DoctorFacts& facts);
Result<DoctorFacts> ParseDoctorFacts(const std::string& text);

std::string DoctorSightsText(const std::vector<DoctorSight>& sights);
Result<std::vector<DoctorSight>> ParseDoctorSights(const std::string& text);

std::string DoctorSumText(const DoctorSum& sum);
Result<DoctorSum> ParseDoctorSum(const std::string& text);

}  // namespace keel
