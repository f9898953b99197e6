// XML of S3, and what is none.
#include "store/s3/xml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/s3/answers.h"
#include "store/s3/ini.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

using testing::HasSubstr;

TEST(Xml, ElementsHaveTextAndChildren) {
  const auto root =
      ParseXml("<?xml version=\"1.0\"?>\n<!-- x --><a xmlns=\"http://s3/\" b='>'>\n"
               " <b>1 &lt; 2 &amp;&#x41;&#66;</b><b/><n:c><![CDATA[<x>]]></n:c></a>\n");
  ASSERT_OK(root);
  EXPECT_EQ(root->name, "a");
  EXPECT_EQ(root->text, "");
  ASSERT_EQ(root->children.size(), 3u);
  EXPECT_EQ(root->TextOf("b"), "1 < 2 &AB");
  EXPECT_EQ(root->TextOf("c"), "<x>");
  EXPECT_EQ(root->TextOf("d"), "");
  EXPECT_EQ(root->Find("d"), nullptr);
}

TEST(Xml, BlanksOfAKeyStay) {
  EXPECT_EQ(ParseXml("<a><Key> x </Key></a>")->TextOf("Key"), " x ");
}

TEST(Xml, WhatIsNotWellFormedIsRefused) {
  for (const char* text :
       {"", "x", "<", "<a", "<a>", "</a>", "<a></b>", "<a><b></a></b>", "<a/><b/>", "<a>&x;</a>",
        "<a>&#xd800;</a>", "<a>&#;</a>", "<a>&amp</a>", "<a b=\"></a>", "<a/>x", "<!-- <a/>",
        "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", "<a><![CDATA[x</a>", "<>", "<a/ ></a>x"}) {
    const auto root = ParseXml(text);
    ASSERT_FALSE(root.ok()) << text;
    EXPECT_EQ(root.error().code, Code::kCorrupt);
  }
}

TEST(Xml, DepthIsBounded) {
  std::string deep;
  for (size_t i = 0; i < kXmlDepthMax; ++i) deep += "<a>";
  EXPECT_THAT(ParseXml(deep).error().message, HasSubstr("not closed"));
  EXPECT_THAT(ParseXml(deep + "<a>").error().message, HasSubstr("too deeply"));
}

TEST(Xml, CutAnywhereItIsRefused) {
  const std::string whole = "<r><Key>a&amp;b</Key><x y=\"z\"/></r>";
  ASSERT_OK(ParseXml(whole));
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(ParseXml(whole.substr(0, size)).ok()) << size;
  }
}

TEST(Xml, WhatIsEscapedIsReadBack) {
  const std::string text = "a<b>&\"'\x01\n\xc3\xbc";
  EXPECT_EQ(ParseXml("<a>" + XmlEscaped(text) + "</a>")->text, text);
}

TEST(S3Answers, ErrorsAreFoundInBodies) {
  EXPECT_EQ(ParseS3Error("<Error><Code>SlowDown</Code><Message>m</Message></Error>").code,
            "SlowDown");
  EXPECT_EQ(ParseS3Error("<Error/>").code, "Error");
  EXPECT_EQ(ParseS3Error("<CompleteMultipartUploadResult/>").code, "");
  EXPECT_EQ(ParseS3Error("Bad gateway").code, "");
}

TEST(S3Answers, ListsAreReadWithTheirEncoding) {
  const auto page = ParseListPage(
      "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
      "<NextContinuationToken>t</NextContinuationToken><Contents><Key>a%20b+c%2B</Key>"
      "<LastModified>2013-05-24T00:00:00.000Z</LastModified><Size>12</Size></Contents>"
      "<CommonPrefixes><Prefix>p%2F</Prefix></CommonPrefixes></ListBucketResult>");
  ASSERT_OK(page);
  EXPECT_EQ(page->listing.objects[0],
            (ObjectInfo{"a b c+", 12, 1369353600 * int64_t{1'000'000'000}}));
  EXPECT_EQ(page->listing.prefixes[0], "p/");
  EXPECT_EQ(page->next, "t");
  const auto plain = ParseListPage(
      "<ListBucketResult><Contents><Key>a%20b</Key><LastModified>2013-05-24T00:00:00Z"
      "</LastModified><Size>0</Size></Contents></ListBucketResult>");
  EXPECT_EQ(plain->listing.objects[0].key, "a%20b");
  EXPECT_EQ(plain->next, "");
}

TEST(S3Answers, AnAnswerToAnotherQuestionIsAnError) {
  EXPECT_FALSE(ParseListPage("<html></html>").ok());
  EXPECT_FALSE(ParseListPage("<ListBucketResult><Contents/></ListBucketResult>").ok());
  EXPECT_FALSE(ParseListPage("<ListBucketResult><IsTruncated>true</IsTruncated>"
                             "</ListBucketResult>").ok());
  EXPECT_FALSE(ParseUploadsPage("<ListBucketResult/>").ok());
  EXPECT_FALSE(ParsePartsPage("<ListBucketResult/>").ok());
  EXPECT_FALSE(ParsePartsPage("<ListPartsResult><Part/></ListPartsResult>").ok());
  EXPECT_FALSE(ParsePartsPage("<ListPartsResult><IsTruncated>true</IsTruncated>"
                              "</ListPartsResult>").ok());
  EXPECT_FALSE(ParseUploadId("<InitiateMultipartUploadResult/>").ok());
  EXPECT_FALSE(ParseDeleteFailures("").ok());
  EXPECT_FALSE(CheckCompleted("<Error/>").ok());
}

TEST(S3Answers, RulesOfBothDialects) {
  const std::string begin = "<LifecycleConfiguration><Rule>";
  const std::string end = "</Rule></LifecycleConfiguration>";
  const std::string ends = "<AbortIncompleteMultipartUpload><DaysAfterInitiation>7"
                           "</DaysAfterInitiation></AbortIncompleteMultipartUpload>";
  EXPECT_TRUE(*EndsUnfinished(begin + "<Status>Enabled</Status>" + ends + end));
  EXPECT_FALSE(*EndsUnfinished(begin + "<Status>Disabled</Status>" + ends + end));
  EXPECT_FALSE(*EndsUnfinished(begin + "<Status>Enabled</Status><Expiration/>" + end));
  EXPECT_TRUE(*EndsUnfinished(begin + "<Action><AbortIncompleteMultipartUpload/></Action>" + end));
  EXPECT_FALSE(EndsUnfinished("<html/>").ok());
  EXPECT_TRUE(*KeepsVersions("<VersioningConfiguration><Status>Enabled</Status>"
                             "</VersioningConfiguration>"));
  EXPECT_FALSE(*KeepsVersions("<VersioningConfiguration/>"));
}

TEST(S3Answers, RangesAreReadStrictly) {
  const auto range = ParseContentRange("bytes 10-19/100");
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->first, 10u);
  EXPECT_EQ(range->last, 19u);
  EXPECT_EQ(range->total, 100u);
  for (const char* text : {"", "bytes */100", "10-19/100", "bytes 19-10/100", "bytes 10-100/100",
                           "bytes 10-19/*", "bytes 10-19", "bytes -1-19/100"}) {
    EXPECT_FALSE(ParseContentRange(text).has_value()) << text;
  }
}

TEST(Ini, SectionsNamesAndValues) {
  const IniSections sections = ParseIni(
      "# comment\n[default]\naws_access_key_id = AK\nAWS_Secret_Access_Key=a=b#c ; said\n\n"
      "[ profile  two ]\r\nregion = eu-west-1\r\ns3 =\n  addressing_style = path\nbroken\n"
      "[default]\nregion=x\n=y\n[open\nlost = 1\n");
  EXPECT_EQ(sections.at("default").at("aws_access_key_id"), "AK");
  EXPECT_EQ(sections.at("default").at("aws_secret_access_key"), "a=b#c");
  EXPECT_EQ(sections.at("default").at("region"), "x");
  EXPECT_EQ(sections.at("profile two").at("region"), "eu-west-1");
  EXPECT_FALSE(sections.at("profile two").contains("addressing_style"));
  EXPECT_EQ(sections.size(), 2u);
  EXPECT_TRUE(ParseIni("").empty());
}

}  // namespace
}  // namespace keel
