# SPDX-License-Identifier: Apache-2.0
"""mx on files of servers that others made: nginx and caddy (Debian), rangehttpserver and moto's S3
(PyPI), on loopback, beside mx on the same files on disk. servers_test.py MX FIXTURES"""
import importlib.util
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

MX, FIXTURES = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
FILES = ('safetensors.safetensors', 'sharded.safetensors.index.json', 'gguf.gguf', 'bfloat16.npy',
         'torch_dtypes.pt', 'torch_distributed/.metadata')


class Servers(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='mx-servers.'))
        self.addCleanup(shutil.rmtree, self.folder)

    def start(self, command_on, cwd=None, **environment):
        """Starts the server of command_on(port), and returns the port: another one if somebody takes it
        before the server does."""
        for _ in range(5):
            with socket.socket() as s:
                s.bind(('127.0.0.1', 0))
                port = s.getsockname()[1]
            with open(self.folder / 'server.log', 'w') as log:
                process = subprocess.Popen(command_on(port), stdout=log, stderr=log, cwd=cwd,
                                           env={**os.environ, **environment})
            self.addCleanup(process.wait)
            self.addCleanup(process.terminate)
            while process.poll() is None:
                try:
                    socket.create_connection(('127.0.0.1', port), 1).close()
                    if process.poll() is None:
                        return port
                except OSError:
                    time.sleep(0.05)
        self.fail((self.folder / 'server.log').read_text())

    def run_mx(self, *words, **environment):
        env = {k: v for k, v in os.environ.items() if not k.startswith(('HF_', 'AWS_'))}
        return subprocess.run([MX, *words], capture_output=True, text=True, cwd=FIXTURES,
                              env={**env, **environment})

    def check_files(self, base, **environment):
        for file in FILES:
            with self.subTest(file):
                words = ('--json', '-', '--quiet')
                local = self.run_mx('analyze', file, *words)
                remote = self.run_mx('analyze', base + file, *words, **environment)
                self.assertEqual(remote.returncode, local.returncode, remote.stderr)
                here = json.loads(local.stdout)
                here.pop('remarks', None)  # of files beside an index: an address lists none
                self.assertEqual(json.loads(remote.stdout.replace(base, '')), here)

    def test_nginx(self):
        nginx = shutil.which('nginx', path=os.environ['PATH'] + ':/usr/sbin')
        if nginx is None:
            self.skipTest('no nginx')
        shutil.copytree(FIXTURES, self.folder / 'files')
        self.folder.chmod(0o755)

        def command_on(port):
            (self.folder / 'nginx.conf').write_text(self.nginx_settings(port))
            return [nginx, '-p', str(self.folder), '-c', str(self.folder / 'nginx.conf')]

        port = self.start(command_on)
        self.check_files(f'http://127.0.0.1:{port}/')

    def nginx_settings(self, port):
        return (
            f'daemon off; pid {self.folder}/pid; error_log stderr; events {{}}\n'
            f'http {{ access_log off; client_body_temp_path {self.folder}; '
            f'proxy_temp_path {self.folder}; fastcgi_temp_path {self.folder}; '
            f'uwsgi_temp_path {self.folder}; scgi_temp_path {self.folder};\n'
            f'server {{ listen 127.0.0.1:{port}; root {self.folder}/files; }} }}\n')

    def test_caddy(self):
        caddy = shutil.which('caddy')
        if caddy is None:
            self.skipTest('no caddy')

        def command_on(port):
            # Without an administration port; its files stay outside the home folder.
            (self.folder / 'Caddyfile').write_text(
                '{\n admin off\n auto_https off\n}\n'
                f'http://127.0.0.1:{port} {{\n root * {FIXTURES}\n file_server\n}}\n')
            return [caddy, 'run', '--config', str(self.folder / 'Caddyfile'), '--adapter',
                    'caddyfile']

        port = self.start(command_on, XDG_DATA_HOME=str(self.folder),
                          XDG_CONFIG_HOME=str(self.folder))
        self.check_files(f'http://127.0.0.1:{port}/')

    def test_rangehttpserver(self):
        if importlib.util.find_spec('RangeHTTPServer') is None:
            self.skipTest(f'no rangehttpserver for {sys.executable}')
        port = self.start(lambda port: [sys.executable, '-m', 'RangeHTTPServer', str(port), '--bind',
                                        '127.0.0.1'], cwd=FIXTURES)
        self.check_files(f'http://127.0.0.1:{port}/')

    def test_s3(self):
        for name in ('moto', 'flask', 'flask_cors', 'boto3'):
            if importlib.util.find_spec(name) is None:
                self.skipTest(f'no {name} for {sys.executable}')
        import boto3
        port = self.start(lambda port: [sys.executable, '-m', 'moto.server', '-H', '127.0.0.1', '-p',
                                        str(port)], AWS_EC2_METADATA_DISABLED='true')
        endpoint = f'http://127.0.0.1:{port}'
        given = dict(endpoint_url=endpoint, region_name='us-east-1', aws_access_key_id='setup',
                     aws_secret_access_key='setup')
        s3, iam = boto3.client('s3', **given), boto3.client('iam', **given)
        s3.create_bucket(Bucket='bucket')
        for path in FIXTURES.rglob('*'):
            if path.is_file():
                key = 'a folder/' + path.relative_to(FIXTURES).as_posix()
                s3.put_object(Bucket='bucket', Key=key, Body=path.read_bytes())
        iam.create_user(UserName='reader')
        iam.put_user_policy(UserName='reader', PolicyName='all', PolicyDocument=json.dumps(
            {'Version': '2012-10-17',
             'Statement': [{'Effect': 'Allow', 'Action': 's3:*', 'Resource': '*'}]}))
        key = iam.create_access_key(UserName='reader')['AccessKey']
        # From here on every request must be signed with a key that the server knows.
        urllib.request.urlopen(urllib.request.Request(
            f'{endpoint}/moto-api/reset-auth', data=b'0', headers={'Content-Type': 'text/plain'})).close()
        environment = {'AWS_ENDPOINT_URL': endpoint, 'AWS_REGION': 'us-east-1',
                       'AWS_ACCESS_KEY_ID': key['AccessKeyId'],
                       'AWS_SECRET_ACCESS_KEY': key['SecretAccessKey']}
        self.check_files('s3://bucket/a folder/', **environment)
        wrong = self.run_mx('tensors', 's3://bucket/a folder/gguf.gguf',
                            **{**environment, 'AWS_SECRET_ACCESS_KEY': 'wrong'})
        self.assertEqual(wrong.returncode, 3)
        self.assertIn('refuses (403)', wrong.stderr)


if __name__ == '__main__':
    version = subprocess.run([MX, 'version'], capture_output=True, text=True).stdout
    if not re.search(r'^remote files +yes', version, re.MULTILINE):
        print('skipped: mx was built without libcurl (libcurl4-openssl-dev)')
        sys.exit(77)
    ran = unittest.main(argv=sys.argv[:1] + sys.argv[3:], exit=False).result
    if not ran.wasSuccessful():
        sys.exit(1)
    if ran.skipped:
        print('skipped: ' + '; '.join(reason for _, reason in ran.skipped))
    if len(ran.skipped) == ran.testsRun:
        sys.exit(77)
