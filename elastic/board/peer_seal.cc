// A seal is the last word of its line, in hexadecimal digits.
#include "elastic/board/peer_seal.h"

#include <algorithm>

#include "base/hmac.h"
#include "base/text.h"

namespace keel {
namespace {

struct LineAndSeal {
  std::string_view line;
  std::string_view seal;
};
LineAndSeal LastWordOf(std::string_view line) {
  const size_t space = line.rfind(' ');
  if (space == std::string_view::npos) return {line, ""};
  return {line.substr(0, space), line.substr(space + 1)};
}

std::string HexSeal(const Seal& seal, std::initializer_list<std::string_view> words) {
  return HexText(seal.Of(words));
}

bool FitsHex(const Seal& seal, std::string_view digits,
             std::initializer_list<std::string_view> words) {
  return SameSecret(digits, HexSeal(seal, words));
}

std::string_view NameOf(PeerEnd end) {
  return end == PeerEnd::kMember ? "member" : "coordinator";
}

PeerEnd OtherOf(PeerEnd end) {
  return end == PeerEnd::kMember ? PeerEnd::kCoordinator : PeerEnd::kMember;
}

}  // namespace

std::string QuestionLine(const Seal& seal, const SealedQuestion& question) {
  return std::string(kSealed) + question.verb + " " + question.nonce + " " +
         HexSeal(seal, {"question", question.verb, question.subject, question.nonce}) + " " +
         question.subject;
}

// A subject may have blanks of its own.
std::optional<SealedQuestion> OpenQuestion(const Seal& seal, std::string_view line) {
  if (!line.starts_with(kSealed)) return std::nullopt;
  std::string_view rest = line.substr(kSealed.size());
  const auto take = [&] {
    const size_t space = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, space);
    rest.remove_prefix(std::min(space + 1, rest.size()));
    return word;
  };
  const std::string_view verb = take();
  const std::string_view nonce = take();
  const std::string_view digits = take();
  if (!FitsHex(seal, digits, {"question", verb, rest, nonce})) return std::nullopt;
  return SealedQuestion{std::string(verb), std::string(rest), std::string(nonce)};
}

std::string AnswerLine(const Seal& seal, const SealedQuestion& question,
                       const std::string& answer) {
  return answer + " " + HexSeal(seal, {"answer", question.verb, question.subject,
                                       question.nonce, answer});
}

std::optional<std::string> OpenAnswer(const Seal& seal, const SealedQuestion& question,
                                      std::string_view line) {
  const auto [answer, digits] = LastWordOf(line);
  const bool fits = FitsHex(seal, digits, {"answer", question.verb, question.subject,
                                           question.nonce, answer});
  return fits ? std::optional(std::string(answer)) : std::nullopt;
}

std::string ChallengeLine(const Seal& seal, const std::string& of_member,
                          const std::string& of_coordinator) {
  return std::string(kChallenge) + of_coordinator + " " +
         HexSeal(seal, {"challenge", of_member, of_coordinator});
}

std::optional<std::string> OpenChallenge(const Seal& seal, const std::string& of_member,
                                         std::string_view line) {
  if (!line.starts_with(kChallenge)) return std::nullopt;
  const auto [nonce, digits] = LastWordOf(line.substr(kChallenge.size()));
  const bool fits = FitsHex(seal, digits, {"challenge", of_member, nonce});
  return fits ? std::optional(std::string(nonce)) : std::nullopt;
}

std::string SealedSession::Say(const std::string& line) {
  const std::string number = std::to_string(said_++);
  return line + " " + HexSeal(seal_, {NameOf(own_), number, line});
}

std::optional<std::string> SealedSession::Hear(std::string_view line) {
  const auto [said, digits] = LastWordOf(line);
  const std::string number = std::to_string(heard_);
  if (!FitsHex(seal_, digits, {NameOf(OtherOf(own_)), number, said})) return std::nullopt;
  ++heard_;
  return std::string(said);
}

}  // namespace keel
