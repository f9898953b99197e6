// HttpCall: one HTTP request and its reply, on the loop.
// Promises   the loop calls `done` once, within the request's limit, whatever the other side does:
//            it may hang, trickle, flood, redirect, or speak something else. Nothing is called
//            after the destructor. A reply takes at most 64 KiB of memory.
// Does not   look names up, follow redirections, keep connections, or speak TLS.
// Threads    the loop's. Errors: kTimeout; kPeerLost: no connection; kCorrupt: no HTTP reply, or
//            one that is too large.
#pragma once

#include <boost/asio/io_context.hpp>

#include <functional>
#include <memory>

#include "elastic/notice/http_base.h"
#include "elastic/notice/services.h"

namespace keel {

class HttpCall {
 public:
  using Done = std::function<void(const Result<HttpReply>&)>;
  HttpCall(boost::asio::io_context& loop, const HttpBase& base, const HttpRequest& request,
           Done done);
  ~HttpCall();
  HttpCall(const HttpCall&) = delete;
  HttpCall& operator=(const HttpCall&) = delete;

 private:
  class Exchange;
  const std::shared_ptr<Exchange> exchange_;
};

}  // namespace keel
