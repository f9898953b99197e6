// Connects, writes, reads: one deadline for all three.
#include "elastic/notice/http_call.h"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/verb.hpp>
#include <boost/beast/http/write.hpp>

#include <utility>

#include "store/host_port.h"

namespace keel {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr size_t kHeaderMax = 8 * 1024;
constexpr size_t kBodyMax = 56 * 1024;

}  // namespace

class HttpCall::Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(asio::io_context& loop, const HttpBase& base, const HttpRequest& request, Done done)
      : stream_(loop), where_(AddressText(base.address, base.port)), limit_(request.limit),
        done_(std::move(done)) {
    request_.version(11);
    request_.method_string(request.method);
    request_.target(base.prefix + request.target);
    request_.set(http::field::host, where_);
    request_.set(http::field::user_agent, "keelrun");
    request_.set(http::field::connection, "close");
    for (const auto& [name, value] : request.headers) request_.set(name, value);
    if (request.method != "GET") request_.content_length(0);
    parser_.header_limit(kHeaderMax);
    parser_.body_limit(kBodyMax);
  }

  void Start(const HttpBase& base) {
    error_code failure;
    const auto address = asio::ip::make_address(base.address, failure);
    if (failure) {
      return asio::post(stream_.get_executor(), [self = shared_from_this(), failure] {
        self->End(failure, "connecting");
      });
    }
    stream_.expires_after(std::chrono::duration_cast<std::chrono::milliseconds>(limit_));
    stream_.async_connect(asio::ip::tcp::endpoint(address, base.port),
                          [self = shared_from_this()](const error_code& failed) {
                            if (failed) return self->End(failed, "connecting");
                            self->Write();
                          });
  }

  void Cancel() {
    done_ = nullptr;
    stream_.close();
  }

 private:
  void Write() {
    http::async_write(stream_, request_,
                      [self = shared_from_this()](const error_code& failed, size_t) {
                        if (failed) return self->End(failed, "writing");
                        self->ReadHeader();
                      });
  }

  // The header is read apart, since the parser's limit does not apply to the body's length in it.
  void ReadHeader() {
    http::async_read_header(stream_, buffer_, parser_,
                            [self = shared_from_this()](const error_code& failed, size_t) {
                              if (failed) return self->End(failed, "reading");
                              if (self->parser_.content_length().value_or(0) > kBodyMax) {
                                return self->End(http::error::body_limit, "reading");
                              }
                              self->Read();
                            });
  }

  void Read() {
    http::async_read(stream_, buffer_, parser_,
                     [self = shared_from_this()](const error_code& failed, size_t) {
                       self->End(failed, "reading");
                     });
  }

  void End(const error_code& failure, const std::string& doing) {
    const Done done = std::exchange(done_, nullptr);
    error_code ignored;
    stream_.socket().close(ignored);
    if (done == nullptr) return;
    if (failure) return done(Failed(failure, doing));
    const auto& message = parser_.get();
    const auto tag = message[http::field::etag];
    done(HttpReply{static_cast<int>(message.result_int()), message.body(),
                   std::string(tag.data(), tag.size())});
  }

  Error Failed(const error_code& failure, const std::string& doing) const {
    if (failure == beast::error::timeout) {
      return {Code::kTimeout, where_ + " did not answer within " + DurationText(limit_)};
    }
    const bool is_http = failure.category() == http::make_error_code(http::error::bad_method)
                                                   .category();
    return {is_http ? Code::kCorrupt : Code::kPeerLost,
            doing + (doing == "connecting" ? " to " : doing == "writing" ? " to " : " from ") +
                where_ + ": " + failure.message()};
  }

  beast::tcp_stream stream_;
  const std::string where_;
  const Duration limit_;
  Done done_;   // null: it was called, or nobody wants it any more
  http::request<http::empty_body> request_;
  beast::flat_buffer buffer_{kHeaderMax + kBodyMax};
  http::response_parser<http::string_body> parser_;
};

HttpCall::HttpCall(asio::io_context& loop, const HttpBase& base, const HttpRequest& request,
                   Done done)
    : exchange_(std::make_shared<Exchange>(loop, base, request, std::move(done))) {
  exchange_->Start(base);
}

HttpCall::~HttpCall() { exchange_->Cancel(); }

}  // namespace keel
