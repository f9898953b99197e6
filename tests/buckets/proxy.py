"""Between a client of S3 and its server: does one request wrong, in a way that has a name.

Promises   one request of all that come is chosen by its number (from 0), or none; all others pass
           as they are, but for those after one that AWAY has struck. What was passed on to the
           server is over when idle() returns.
Does not   know S3, but for what tells which faults make sense for a request.
Threads    one a connection.
"""
import datetime
import glob
import http.client
import os
import re
import signal
import socket
import threading
import time
import urllib.parse

TRICKLE_S, TRICKLES = 0.02, 25
DELAY_S = 1.0
HOLE_S = 60.0


class Request:
    def __init__(self, method, target, headers, body):
        self.method, self.target, self.headers, self.body = method, target, headers, body
        self.port = None         # of the client, from which it came
        self.query = urllib.parse.parse_qs(urllib.parse.urlsplit(target).query,
                                           keep_blank_values=True)

    def is_range(self):
        return self.method == "GET" and "range" in self.headers

    def is_completion(self):
        return self.method == "POST" and "uploadId" in self.query

    def is_list(self):
        return self.method == "GET" and "list-type" in self.query

    def is_written(self):
        return self.method in ("PUT", "POST", "DELETE")

    def text(self):
        return f"{self.method} {self.target}"


class Answer:
    def __init__(self, status, reason, headers, body):
        self.status, self.reason, self.headers, self.body = status, reason, headers, body


def _error(status, reason, code):
    body = (f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code>'
            f"<Message>planted</Message></Error>").encode()
    return Answer(status, reason, {"Content-Type": "application/xml"}, body)


def _older(body, seconds):
    """The times of a list, as if all in it had been written so much earlier."""
    def shifted(found):
        when = datetime.datetime.strptime(found[2].decode()[:19], "%Y-%m-%dT%H:%M:%S")
        when -= datetime.timedelta(seconds=seconds)
        return found[1] + when.strftime("%Y-%m-%dT%H:%M:%S.000Z").encode() + b"<"
    return re.sub(rb"(<(?:LastModified|Initiated)>)([^<]*)<", shifted, body)


class Cut(Exception):
    """The connection is closed, without a word more."""


def _flipped(data):
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1:]


# Each takes (proxy, request), and returns an Answer or raises Cut.
def cut_before(proxy, request):
    raise Cut


def cut_inside(proxy, request):
    proxy.forward(request, half=True)
    raise Cut


def swallow(proxy, request):
    proxy.forward(request)
    raise Cut


def delay(proxy, request):
    time.sleep(DELAY_S)
    return proxy.forward(request)


def black_hole(proxy, request):
    proxy.closing.wait(HOLE_S)
    raise Cut


def black_hole_after(proxy, request):
    proxy.forward(request)
    proxy.closing.wait(HOLE_S)
    raise Cut


def flip_request(proxy, request):
    return proxy.forward(Request(request.method, request.target, request.headers,
                                 _flipped(request.body)))


def flip_answer(proxy, request):
    answer = proxy.forward(request)
    if answer.body:
        answer.body = _flipped(answer.body)
    return answer


def done_twice(proxy, request):
    proxy.forward(request)
    return proxy.forward(request)


def not_done(proxy, request):
    headers = {"ETag": '"0123456789abcdef0123456789abcdef"'}
    return Answer(204 if request.method == "DELETE" else 200, "OK", headers, b"")


def short_range(proxy, request):
    answer = proxy.forward(request)
    answer.body = answer.body[:len(answer.body) // 2]
    return answer


def whole_range(proxy, request):
    # The range is signed, so the request cannot be passed on without it.
    whole = proxy.whole(urllib.parse.urlsplit(request.target).path)
    return proxy.forward(request) if whole is None else Answer(200, "OK", {}, whole)


def error_in_200_after(proxy, request):
    proxy.forward(request)
    return _error(200, "OK", "InternalError")


def stale_list(proxy, request):
    return proxy.lists.get(request.target) or proxy.forward(request)


def _then_kills(victim, forward=None):
    """Forwards the request, or half of it, or nothing; then kills `victim` of the proxy."""
    def act(proxy, request):
        if forward:
            proxy.forward(request, half=forward == "half")
        getattr(proxy, f"kill_{victim}")(request)
        raise Cut
    return act


def _answers(status, reason, code):
    return lambda proxy, request: _error(status, reason, code)


def away(proxy, request):
    """This one is refused, as is each that follows: a token has ended, for one."""
    proxy.is_away = True
    return _error(403, "Forbidden", "ExpiredToken")


def _always(request):
    return True


AWAY = "away-from-here"

# name: (what is done, for which requests)
FAULTS = {
    "cut-before": (cut_before, _always),
    "cut-inside": (cut_inside, lambda request: len(request.body) > 1),
    "swallow": (swallow, _always),
    "delay": (delay, _always),
    "trickle": (None, lambda request: request.method == "GET"),
    "black-hole": (black_hole, _always),
    "black-hole-after": (black_hole_after, Request.is_written),
    "flip-request": (flip_request, lambda request: len(request.body) > 1),
    "flip-answer": (flip_answer, lambda request: request.method == "GET"),
    "500": (_answers(500, "Internal Server Error", "InternalError"), _always),
    "503": (_answers(503, "Slow Down", "SlowDown"), _always),
    "429": (_answers(429, "Too Many Requests", "TooManyRequests"), _always),
    "403-expired": (_answers(403, "Forbidden", "ExpiredToken"), _always),
    "403-skewed": (_answers(403, "Forbidden", "RequestTimeTooSkewed"), _always),
    "error-in-200": (_answers(200, "OK", "InternalError"), Request.is_completion),
    "error-in-200-after": (error_in_200_after, Request.is_completion),
    "not-done": (not_done, lambda request: request.method in ("PUT", "DELETE")),
    "done-twice": (done_twice, Request.is_written),
    "short-range": (short_range, Request.is_range),
    "whole-range": (whole_range, Request.is_range),
    "stale-list": (stale_list, Request.is_list),
    AWAY: (away, _always),
    "kill-before": (_then_kills("client"), _always),
    "kill-after": (_then_kills("client", "whole"), _always),
    # For jobs (OF_JOBS): kills the process that sent the request.
    "kill-sender-before": (_then_kills("sender"), _always),
    "kill-sender-after": (_then_kills("sender", "whole"), _always),
    # Only with one job at a time: others would lose the server, too.
    "kill-server-before": (_then_kills("server"), _always),
    "kill-server-inside": (_then_kills("server", "half"), lambda request: len(request.body) > 1),
    "kill-server-after": (_then_kills("server", "whole"), Request.is_written),
}


OF_JOBS = ("kill-sender", "kill-server")


def owner_of(port, other_port):
    """The process that has the connection between those ports of 127.0.0.1, or nothing."""
    wanted = [f"0100007F:{one:04X}" for one in (port, other_port)]
    with open("/proc/net/tcp", encoding="ascii") as file:
        inode = next((words[9] for words in map(str.split, file) if words[1:3] == wanted), "0")
    if inode == "0":
        return None
    for link in glob.glob("/proc/[0-9]*/fd/*"):
        try:
            if os.readlink(link) == f"socket:[{inode}]":
                return int(link.split("/")[2])
        except OSError:
            pass   # it has ended, or is another's
    return None


class Proxy:
    def __init__(self, server_port):
        self.server_port = server_port
        self.closing = threading.Event()
        self.client = None       # the process to kill
        self.has_client = threading.Event()
        self.restart_server = None   # kills it, and returns once it is there again
        self.whole = None        # fetches all of an object, as the server has it
        self.is_away = False     # it refuses whatever comes
        self.older_s = 0         # by how much what is listed seems older than it is
        self.lists = {}          # the first answer to each list
        self._lock = threading.Lock()
        self._inside = 0         # requests that are being dealt with
        self.seen = []           # all requests, in their order
        self._at, self._fault, self.struck = None, None, None
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def plan(self, at, fault):
        self._at, self._fault = at, fault

    def kill_client(self, _):
        self.has_client.wait()
        self.client.kill()

    def kill_sender(self, request):
        pid = owner_of(request.port, self.port)
        if pid is None:   # it has given the request up, so nobody is killed
            self.struck = None
        else:
            os.kill(pid, signal.SIGKILL)

    def kill_server(self, _):
        self.restart_server()

    def idle(self, limit_s=150):   # a server that is begun anew takes its time
        end = time.monotonic() + limit_s
        while self._inside:
            if time.monotonic() > end:
                raise RuntimeError(f"a request is not over after {limit_s} s")
            time.sleep(0.005)

    def close(self):
        self.closing.set()
        self._listener.shutdown(socket.SHUT_RDWR)   # else the thread that accepts would stay
        self._listener.close()
        self.idle()

    def forward(self, request, half=False):
        if half:
            with socket.create_connection(("127.0.0.1", self.server_port)) as link:
                head = f"{request.method} {request.target} HTTP/1.1\r\n" + "".join(
                    f"{name}: {value}\r\n" for name, value in request.headers.items()) + "\r\n"
                link.sendall(head.encode() + request.body[:len(request.body) // 2])
            return None
        link = http.client.HTTPConnection("127.0.0.1", self.server_port, timeout=60)
        try:
            link.putrequest(request.method, request.target, skip_host=True,
                            skip_accept_encoding=True)
            for name, value in request.headers.items():
                link.putheader(name, value)
            link.endheaders(request.body or None)
            got = link.getresponse()
            return Answer(got.status, got.reason, dict(got.getheaders()), got.read())
        finally:
            link.close()

    def _accept(self):
        while True:
            try:
                link, (_, port) = self._listener.accept()
            except OSError:
                return
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(link, port), daemon=True).start()

    def _read(self, file, link):
        words = file.readline().split()
        if len(words) != 3:
            return None
        headers = {}
        for line in iter(file.readline, b"\r\n"):
            if not line:
                return None
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        if headers.pop("expect", None):
            link.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        length = int(headers.get("content-length", 0))
        body = file.read(length)
        if len(body) != length:
            return None
        return Request(words[0].decode(), words[1].decode(), headers, body)

    def _serve(self, link, port):
        file = link.makefile("rb")
        try:
            while (request := self._read(file, link)) is not None:
                request.port = port
                with self._lock:
                    self._inside += 1
                try:
                    self._send(link, request, *self._deal(request))
                finally:
                    with self._lock:
                        self._inside -= 1
        except (Cut, OSError, http.client.HTTPException):
            pass
        finally:
            file.close()
            link.close()

    def _deal(self, request):
        """Returns the answer, and whether it trickles."""
        with self._lock:
            number = len(self.seen)
            self.seen.append(request)
        if number == self._at:
            act, makes_sense = FAULTS[self._fault]
            if makes_sense(request):
                self.struck = request
                if act is not None:
                    return act(self, request), False
                return self.forward(request), True
        if self.is_away:
            return away(self, request), False
        answer = self.forward(request)
        if request.is_list():
            self.lists.setdefault(request.target, answer)
        if self.older_s and request.method == "GET":
            answer.body = _older(answer.body, self.older_s)
        return answer, False

    @staticmethod
    def _send(link, request, answer, trickles):
        skipped = ("transfer-encoding", "connection", "content-length", "date")
        lines = [f"HTTP/1.1 {answer.status} {answer.reason}"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()
                  if name.lower() not in skipped]
        date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())
        lines.append(f"Date: {date}")
        is_head = request.method == "HEAD"
        length = next((value for name, value in answer.headers.items()
                       if name.lower() == "content-length"), None)
        if is_head:
            lines.append(f"Content-Length: {length or 0}")
        elif answer.status != 204:
            lines.append(f"Content-Length: {len(answer.body)}")
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        data = head + (b"" if is_head else answer.body)
        if not trickles:
            return link.sendall(data)
        piece = max(1, len(data) // TRICKLES)
        for at in range(0, len(data), piece):
            link.sendall(data[at:at + piece])
            time.sleep(TRICKLE_S)
