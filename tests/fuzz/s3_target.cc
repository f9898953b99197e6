// What stores and the user's AWS files say to store/s3: XML that is read can be written, and reads
// back as the same.
#include "store/s3/answers.h"
#include "store/s3/ini.h"
#include "store/s3/percent.h"
#include "store/s3/times.h"
#include "store/s3/xml.h"
#include "tests/fuzz/fuzz_targets.h"

#include "base/check.h"

namespace keel {
namespace {

std::string Written(const XmlElement& element) {
  std::string text = "<" + element.name + ">" + XmlEscaped(element.text);
  for (const XmlElement& child : element.children) text += Written(child);
  return text + "</" + element.name + ">";
}

bool AreEqual(const XmlElement& a, const XmlElement& b) {
  if (a.name != b.name || a.text != b.text || a.children.size() != b.children.size()) return false;
  for (size_t i = 0; i < a.children.size(); ++i) {
    if (!AreEqual(a.children[i], b.children[i])) return false;
  }
  return true;
}

void Run(std::span<const std::byte> input) {
  const std::string_view text = TextOf(input);
  if (const auto xml = ParseXml(text); xml.ok()) {
    const auto again = ParseXml(Written(*xml));
    KEEL_CHECK(again.ok(), Written(*xml) << ": " << again.error().message);
    KEEL_CHECK(AreEqual(*xml, *again), Written(*xml));
  } else {
    KEEL_CHECK(!xml.error().message.empty(), "an error without words");
  }
  if (const auto page = ParseListPage(text); page.ok()) {
    for (const ObjectInfo& one : page->listing.objects) KEEL_CHECK(!one.key.empty(), text);
  }
  (void)ParseUploadsPage(text);
  (void)ParsePartsPage(text);
  (void)ParseUploadId(text);
  (void)ParseDeleteFailures(text);
  (void)ParseS3Error(text);
  (void)CheckCompleted(text);
  (void)ParseIni(text);
  (void)ParseIsoTime(text);
  if (const auto range = ParseContentRange(text)) {
    KEEL_CHECK(range->first <= range->last && range->last < range->total, text);
  }
  KEEL_CHECK(PercentDecoded(PercentEncoded(text)) == text, "encoded and decoded it is another");
  (void)PercentDecoded(text);
}

std::vector<std::string> Seeds() {
  return {
      "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3/\"><EncodingType>url"
      "</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>t"
      "</NextContinuationToken><Contents><Key>a%20b</Key><LastModified>2013-05-24T00:00:00.000Z"
      "</LastModified><Size>12</Size></Contents><CommonPrefixes><Prefix>p/</Prefix>"
      "</CommonPrefixes></ListBucketResult>",
      "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>k</NextKeyMarker>"
      "<Upload><Key>k</Key><UploadId>i</UploadId><Initiated>0000-99-99T99:99:99.9Z</Initiated>"
      "</Upload></ListMultipartUploadsResult>",
      "<Error><Code>SlowDown</Code><Message>&lt;&amp;&#x41;&#66;<![CDATA[<x>]]></Message></Error>",
      "<DeleteResult><Error><Key>k</Key><Code>AccessDenied</Code></Error></DeleteResult>",
      "<a b='>' c=\"/\"/><!-- x -->",
      "[default]\naws_access_key_id = A ; x\n[profile  b]\r\nregion=\n  nested = 1\n=\n[",
      "bytes 10-19/100",
      "bytes 0-18446744073709551615/18446744073709551615",
      "9999-12-31T23:59:59.999999999999Z",
      "%41%4%zz+%",
      "",
  };
}

}  // namespace

const FuzzTarget kS3Target = {"s3", Run, Seeds};

}  // namespace keel
