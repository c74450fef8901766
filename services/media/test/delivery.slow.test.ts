import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort } from '@services/common/dev/dev-ports'
import { findProgram } from '@services/common/testing/needs'
import { expect, onTestFinished, test } from 'vitest'
import { clip } from './clips.ts'
import { idIn, startTestService, type TestService } from './service.ts'

const NGINX = findProgram('nginx') ?? 'nginx'

test('the nginx of the README serves files, parts, conditions and deletions', { tags: 'nginx' }, async () => {
  const service = await startTestService({ MEDIA_ACCEL_PREFIX: '/blobs' })
  onTestFinished(() => service.close())
  const id = idIn(await service.upload(await clip('plain.mp4'), [['title', 'Grüße']]))
  const front = await startNginx(service)
  const whole = await fromNginx(front, `/f/${id}.mp4`)
  const { bytes } = whole
  expect(whole.status).toBe(200)
  expect(bytes.subarray(4, 8).toString()).toBe('ftyp')
  expect(Object.fromEntries(whole.headers)).toMatchObject({
    'content-type': 'video/mp4',
    'content-length': String(bytes.length),
    'cache-control': 'public, max-age=31536000, immutable',
    'content-disposition': `inline; filename="${id}.mp4"`,
    'content-security-policy': expect.stringMatching(/^default-src 'none'; .*; sandbox/),
    'x-content-type-options': 'nosniff',
    'strict-transport-security': 'max-age=31536000',
    'cross-origin-resource-policy': 'cross-origin',
    'access-control-allow-origin': '*',
    'accept-ranges': 'bytes',
  })
  const saved = await fromNginx(front, `/f/${id}.mp4?download=1`)
  expect(saved.bytes.equals(bytes)).toBe(true)
  expect(saved.headers.get('content-disposition')).toBe(
    `attachment; filename="Grue.mp4"; filename*=UTF-8''Gr%C3%BC%C3%9Fe.mp4`,
  )
  const etag = whole.headers.get('etag') ?? ''
  const part = await fromNginx(front, `/f/${id}.mp4`, { range: 'bytes=2-5', 'if-range': etag })
  expect([part.status, part.bytes.equals(bytes.subarray(2, 6))]).toEqual([206, true])
  expect((await fromNginx(front, `/f/${id}.mp4`, { 'if-none-match': etag })).status).toBe(304)
  expect((await fromNginx(front, '/blobs/')).status).toBe(404)
  await service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })
  expect((await fromNginx(front, `/f/${id}.mp4`)).status).toBe(410)
})

async function fromNginx(base: string, path: string, headers: Record<string, string> = {}) {
  const answer = await fetch(base + path, { headers })
  return { status: answer.status, headers: answer.headers, bytes: Buffer.from(await answer.arrayBuffer()) }
}

/** With the two locations of the README. */
async function startNginx(service: TestService): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'media-nginx-'))
  const port = await findFreePort()
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  await mkdir(join(home, 'temporary'))
  await writeFile(
    join(home, 'nginx.conf'),
    `daemon off; worker_processes 1; pid ${home}/pid; ${process.getuid?.() === 0 ? 'user root;' : ''}
events {}
http {
  access_log off; ${temporary.map((name) => `${name}_temp_path ${home}/temporary/${name};`).join(' ')}
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass ${service.url}; proxy_set_header Host $host; }
    location /blobs/ {
      internal;
      alias ${service.blobsDir}/;
      add_header Content-Security-Policy $upstream_http_content_security_policy;
      add_header Cross-Origin-Resource-Policy $upstream_http_cross_origin_resource_policy;
      add_header X-Content-Type-Options $upstream_http_x_content_type_options;
      add_header Strict-Transport-Security $upstream_http_strict_transport_security;
      add_header Access-Control-Allow-Origin $upstream_http_access_control_allow_origin;
      add_header Access-Control-Expose-Headers $upstream_http_access_control_expose_headers;
    }
  }
}
`,
  )
  const child = spawn(NGINX, ['-p', home, '-e', `${home}/error.log`, '-c', `${home}/nginx.conf`], { stdio: 'ignore' })
  onTestFinished(async () => {
    child.kill('SIGTERM')
    await once(child, 'exit')
    await rm(home, { recursive: true, force: true })
  })
  const base = `http://127.0.0.1:${port}`
  const answers = () =>
    fetch(`${base}/health/live`).then(
      ({ status }) => status,
      () => 0,
    )
  await expect.poll(answers, { interval: 20 }).toBe(200)
  return base
}
