# SPDX-License-Identifier: Apache-2.0
"""A server of ranges on loopback that counts what it is asked for, and does on demand what servers
do wrong: a hub (/api/models/..., /ORG/NAME/resolve/COMMIT/FILE), the store that it redirects to
(/store/SIGNATURE/FILE), and plain files (/files/FILE), all of one folder."""
import hashlib
import http.server
import json
import pathlib
import re
import socketserver
import threading
import time

COMMIT = '0123456789abcdef0123456789abcdef01234567'


class Traps:
    """What goes wrong; numbers count requests for bytes from 1 on, 0 is never."""

    def __init__(self):
        self.latency = 0.0  # seconds before each answer
        self.bandwidth = 0  # bytes per second of all answers together, 0: no limit
        self.until = None  # when a range (path, its number, first and last byte) is answered
        self.ignore_ranges = False  # 200 and the whole file
        self.signature_uses = 0  # 403 by the store after so many uses of a signature
        self.throttle = []  # (status, headers) of the next answers
        self.changes_at = 0  # from this request on the file has another ETag
        self.forgets_if_range = False  # a 206 with the new ETag for it
        self.cut_at = ()  # requests whose body ends halfway
        self.always_cut = False
        self.off_by_one = 0  # bytes at the end of a range that are sent in excess
        self.shifts = False  # another range than was asked for
        self.store_status = 0  # of every answer of the store
        self.token = None  # that the hub asks for
        self.no_validator = False  # neither ETag nor Last-Modified
        self.redirects_to = None  # where the hub sends everybody
        self.endless = None  # of every answer: how it begins, and what follows until mx hangs up
        self.pause = 0.0  # seconds behind each piece of that
        self.listing = None  # the hub's answer about a repository


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, folder):
        super().__init__(('127.0.0.1', 0), Handler)
        self.folder = pathlib.Path(folder)
        self.guard = threading.Condition()
        self.reset()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def reset(self):
        self.traps = Traps()
        self.requests = []  # (path, first byte, last byte) of each range
        self.seen = []  # (kind, headers) of every request
        self.uses = {}
        self.free_at = 0.0
        self.alone = 0  # ranges that waited in vain

    @property
    def address(self):
        return f'http://127.0.0.1:{self.server_port}'

    @property
    def store(self):
        """The same server by another name, which is another host."""
        return f'http://localhost:{self.server_port}'

    @property
    def asked(self):
        return sum(last - first + 1 for _, first, last in self.requests)

    def handle_error(self, request, client_address):
        pass  # clients that hang up


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_GET(self):
        traps = self.server.traps
        if traps.latency:
            time.sleep(traps.latency)
        kind = self.path.split('/')[1]
        self.server.seen.append((kind if kind in ('api', 'store', 'files') else 'hub', self.headers))
        with self.server.guard:
            refused = traps.throttle.pop(0) if traps.throttle else None
        if refused:
            return self.answer(*refused)
        if traps.endless:
            begin, piece = traps.endless
            self.wfile.write(begin)
            while True:
                self.wfile.write(piece)
                time.sleep(traps.pause)
        if kind in ('store', 'files'):
            return self.serve_file(kind)
        if traps.token and self.headers['Authorization'] != f'Bearer {traps.token}':
            return self.answer(401)
        if kind == 'api':
            found = re.fullmatch(r'/api/models/org/name/revision/(main|v1|%s)' % COMMIT, self.path)
            if not found:
                return self.answer(404)
            if traps.listing:
                return self.answer(200, body=traps.listing)
            files = sorted(p.relative_to(self.server.folder).as_posix()
                           for p in self.server.folder.rglob('*') if p.is_file())
            return self.answer(200, body=json.dumps(
                {'sha': COMMIT, 'siblings': [{'rfilename': f} for f in files]}).encode())
        prefix = f'/org/name/resolve/{COMMIT}/'
        if not self.path.startswith(prefix):
            return self.answer(404)
        if traps.redirects_to:
            return self.answer(302, {'Location': traps.redirects_to})
        with self.server.guard:
            signature = f'signature-{len(self.server.uses)}'
            self.server.uses[signature] = 0
        where = f'{self.server.store}/store/{signature}/{self.path[len(prefix):]}'
        return self.answer(302, {'Location': where})

    def serve_file(self, kind):
        traps = self.server.traps
        parts = self.path.split('/', 3 if kind == 'store' else 2)
        if kind == 'store':
            with self.server.guard:
                self.server.uses[parts[2]] = self.server.uses.get(parts[2], 0) + 1
                used = self.server.uses[parts[2]]
            if traps.store_status or (traps.signature_uses and used > traps.signature_uses):
                return self.answer(traps.store_status or 403)
        path = self.server.folder / parts[-1]
        if not path.is_file():
            return self.answer(404)
        size = path.stat().st_size
        found = re.fullmatch(r'bytes=(\d+)-(\d+)', self.headers['Range'] or '')
        first, last = (int(found[1]), int(found[2])) if found else (0, size - 1)
        if found and first >= size:
            return self.answer(416, {'Content-Range': f'bytes */{size}'})
        last = min(last, size - 1)
        with self.server.guard:
            self.server.requests.append((self.path, first, last))
            number = len(self.server.requests)
            self.server.guard.notify_all()
            if traps.until and not self.server.alone:
                self.server.alone += not self.server.guard.wait_for(
                    lambda: traps.until(self.path, number, first, last), 60)
        changed = traps.changes_at and number >= traps.changes_at
        tag = f'"{hashlib.sha1(f"{path} {changed}".encode()).hexdigest()}"'
        headers = {} if traps.no_validator else {'ETag': tag}
        expected = self.headers['If-Range']
        fresh = not expected or expected == tag or traps.forgets_if_range
        if not found or traps.ignore_ranges or not fresh:
            return self.answer(200, headers, path, 0, size)
        if traps.shifts and first > 0:
            first -= 1
        headers['Content-Range'] = f'bytes {first}-{last}/{size}'
        count = last + 1 - first + (traps.off_by_one if number > 1 else 0)
        cut = traps.always_cut and number > 1 or number in traps.cut_at
        return self.answer(206, headers, path, first, count, count // 2 if cut else count)

    def answer(self, status, headers=None, body=b'', first=0, count=None, sent=None):
        count = len(body) if count is None else count
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header('Content-Length', str(count))
        self.end_headers()
        left = count if sent is None else sent
        if isinstance(body, bytes):
            self.wfile.write(body[:left])
        else:
            with open(body, 'rb') as file:
                file.seek(first)
                self.pace(file, left)
        if sent is not None and sent < count:
            self.close_connection = True

    def pace(self, file, left):
        while left:
            piece = file.read(min(left, 1 << 18)) or b'?' * left
            left -= len(piece)
            if self.server.traps.bandwidth:
                with self.server.guard:
                    start = max(time.monotonic(), self.server.free_at)
                    self.server.free_at = start + len(piece) / self.server.traps.bandwidth
                time.sleep(max(0.0, self.server.free_at - time.monotonic()))
            self.wfile.write(piece)
