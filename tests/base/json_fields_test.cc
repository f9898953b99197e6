// A struct's list of fields is written and read in its order, strictly or not.
#include "base/json_fields.h"

#include <gtest/gtest.h>

namespace keel {
namespace {

struct Mark {
  std::string word;
  bool operator==(const Mark&) const = default;
};

struct Place {
  int x = 0;
  uint16_t y = 0;
  std::vector<Mark> marks;
  Mark first;
  bool operator==(const Place&) const = default;
};

// Some of its members may be missing.
struct Note {
  std::string text = "none";
  std::optional<int64_t> limit;
  int64_t smaller = 0;
  int64_t larger = 10;
  bool operator==(const Note&) const = default;
};

}  // namespace

template <>
struct JsonFields<Mark> {
  static void Visit(auto& field, auto& mark) { field("word", mark.word); }
};

template <>
struct JsonFields<Place> {
  static void Visit(auto& field, auto& place) {
    field("x", place.x);
    field("y", place.y, Within{1, 65535});
    field("marks", place.marks);
    field("first", place.first);
  }
};

template <>
struct JsonFields<Note> {
  static void Visit(auto& field, auto& note) {
    field.Optional("text", note.text != "none", note.text);
    field.Optional("limit", note.limit, Within{0, 5});
    field.Here("smaller");
    field("larger", note.larger);
    field("smaller", note.smaller, Within{0, note.larger});
    field.Expect(note.smaller != 7, [] { return std::string("seven is not small"); });
  }
};

namespace {

const Place kPlace{-1, 2, {{"a"}, {"b"}}, {"c"}};

template <class T>
std::string TextOf(const T& value) {
  Json json;
  WriteFields(json, value);
  return DumpJson(json);
}

template <class T>
std::string ErrorOf(const std::string& text) {
  T value;
  const Status read = ReadFields(*ParseJson(text), value);
  return read.ok() ? "" : read.error().message;
}

std::string ErrorOfOnly(const std::string& text, size_t besides = 0) {
  Place value;
  const Status read = ReadOnlyFields(*ParseJson(text), value, besides);
  return read.ok() ? "" : read.error().message;
}

TEST(JsonFields, AreWrittenInTheirOrderAndReadBack) {
  const std::string text = TextOf(kPlace);
  EXPECT_EQ(text,
            R"({"x":-1,"y":2,"marks":[{"word":"a"},{"word":"b"}],"first":{"word":"c"}})");
  Place lenient, strict;
  EXPECT_TRUE(ReadFields(*ParseJson(text), lenient).ok());
  EXPECT_TRUE(ReadOnlyFields(*ParseJson(text), strict).ok());
  EXPECT_EQ(lenient, kPlace);
  EXPECT_EQ(strict, kPlace);
}

TEST(JsonFields, TheFirstThatIsWrongIsNamed) {
  EXPECT_EQ(ErrorOf<Place>(R"({"y":0})"), "field 'x' is missing");
  EXPECT_EQ(ErrorOf<Place>(R"({"x":1,"y":0})"), "'y' is 0, expected 1 to 65535");
  EXPECT_EQ(ErrorOf<Place>(R"({"x":1,"y":1,"marks":[{"word":1}]})"),
            "field 'word': expected a string, found the number 1");
  EXPECT_EQ(ErrorOf<Place>("[]"), "field 'x': expected an object, found an array");
}

TEST(JsonFields, OnlyThoseOfTheListMeansAlsoWithin) {
  const std::string more = R"({"x":1,"y":1,"marks":[],"first":{"word":"","z":0}})";
  EXPECT_EQ(ErrorOf<Place>(more), "");
  EXPECT_EQ(ErrorOfOnly(more), "it has 2 members instead of 1");
  const std::string beside = R"({"x":1,"y":1,"marks":[],"first":{"word":""},"z":0})";
  EXPECT_EQ(ErrorOfOnly(beside), "it has 5 members instead of 4");
  EXPECT_EQ(ErrorOfOnly(beside, 1), "");
  EXPECT_EQ(ErrorOfOnly("7"), "it is no object");
}

TEST(JsonFields, WhatMayBeMissingKeepsItsDefault) {
  EXPECT_EQ(TextOf(Note{}), R"({"smaller":0,"larger":10})");
  const Note note{"a", 5, 3, 4};
  EXPECT_EQ(TextOf(note), R"({"text":"a","limit":5,"smaller":3,"larger":4})");
  Note read;
  EXPECT_TRUE(ReadFields(*ParseJson(TextOf(note)), read).ok());
  EXPECT_EQ(read, note);
  Note bare;
  EXPECT_TRUE(ReadFields(*ParseJson(R"({"smaller":0,"larger":10})"), bare).ok());
  EXPECT_EQ(bare, Note{});
  EXPECT_EQ(ErrorOf<Note>(R"({"limit":null,"smaller":0,"larger":10})"),
            "field 'limit': expected a whole number, found null");
}

TEST(JsonFields, WhatIsReadLaterMayBeWrittenBefore) {
  EXPECT_EQ(ErrorOf<Note>(R"({"smaller":5,"larger":4})"), "'smaller' is 5, expected 0 to 4");
  EXPECT_EQ(ErrorOf<Note>(R"({"smaller":null,"larger":null})"),
            "field 'larger': expected a whole number, found null");
  EXPECT_EQ(ErrorOf<Note>(R"({"smaller":7,"larger":9})"), "seven is not small");
}

}  // namespace
}  // namespace keel
