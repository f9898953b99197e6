"""A link to an etcd cluster that a test can cut: one port of 127.0.0.1 for each member.

Promises   while it is cut nothing comes through in either direction, and nothing is refused or
           closed, as where a cable is pulled; what is sent meanwhile comes once it is mended.
"""
import select
import socket
import threading

LOOK_S = 0.05
BYTES = 65536


class Link:
    def __init__(self, cluster):
        self.whole, self.ending = threading.Event(), threading.Event()
        self.whole.set()
        self.listeners, self.threads = [], []
        for port, _ in cluster.ports:
            listener = socket.create_server(("127.0.0.1", 0))
            self.listeners.append(listener)
            self.run(self.serve, listener, port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.whole.set()
        for thread in self.threads:
            thread.join()
        for listener in self.listeners:
            listener.close()

    def run(self, target, *arguments):
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self.threads.append(thread)
        thread.start()

    def endpoints(self):
        return ",".join(f"127.0.0.1:{one.getsockname()[1]}" for one in self.listeners)

    def cut(self):
        self.whole.clear()

    def mend(self):
        self.whole.set()

    def serve(self, listener, port):
        while not self.ending.is_set():
            if select.select([listener], [], [], LOOK_S)[0]:
                self.run(self.carry, listener.accept()[0], port)

    def carry(self, near, port):
        with near:
            self.whole.wait()
            try:
                with socket.create_connection(("127.0.0.1", port)) as far:
                    other = {near: far, far: near}
                    while not self.ending.is_set():
                        for one in select.select([near, far], [], [], LOOK_S)[0]:
                            self.whole.wait()
                            some = one.recv(BYTES)
                            if not some:
                                return
                            other[one].sendall(some)
            except OSError:
                pass   # one end is gone
