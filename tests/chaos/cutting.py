"""A server of sockets between a worker and PostgreSQL, which cuts connections or loses them."""

import selectors
import socket
import threading
from pathlib import Path

from sqlalchemy import make_url

CHUNK = 1 << 16


class Cutting:
    """Passes everything on, and cuts a connection at every n-th message of the client's.

    In turn before a message is passed on, and after that before the answer is: what was asked is
    then done, and nobody is told.

    Args:
        folder: where its socket stands.
        url: of the server.
        every: how many messages of clients are passed on before one is cut.
        cuts: how many connections are cut at most.
    """

    def __init__(self, folder: Path, url: str, every: int, cuts: int) -> None:
        found = make_url(url)
        host = found.query.get("host") or found.host
        assert isinstance(host, str)
        self._server = next(Path(host).glob(".s.PGSQL.*[0-9]"))
        self._every, self._left = every, cuts
        self._messages = 0
        self.cuts = 0
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / self._server.name))
        self._listening.listen()
        query = {**found.query, "host": str(folder)}
        self.url = found.set(query=query).render_as_string(hide_password=False)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(str(self._server))
            with selectors.DefaultSelector() as selector:
                selector.register(client, selectors.EVENT_READ, server)
                selector.register(server, selectors.EVENT_READ, client)
                while self._passed(selector, client):
                    pass

    def _passed(self, selector: selectors.BaseSelector, client: socket.socket) -> bool:
        for key, _ in selector.select():
            source = key.fileobj
            assert isinstance(source, socket.socket)
            try:
                data = source.recv(CHUNK)
                cut = source is client and self._is_to_be_cut()
                if not data or (cut and self.cuts % 2):
                    return False
                key.data.sendall(data)
                if cut:
                    # It is done, as far as the server can; the answer comes to nobody.
                    key.data.settimeout(2)
                    key.data.recv(CHUNK)
                    return False
            except OSError:
                return False
        return True

    def _is_to_be_cut(self) -> bool:
        self._messages += 1
        if self.cuts >= self._left or self._messages % self._every:
            return False
        self.cuts += 1
        return True
