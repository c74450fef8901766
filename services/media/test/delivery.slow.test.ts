import { expect, onTestFinished, test } from 'vitest'
import { clip } from './clips.ts'
import { idIn, startTestService } from './service.ts'
import { documentedLocations, startNginx } from './upstreams/nginx.ts'

test('the nginx of the documentation serves files, ranges, conditions and deletions', { tags: 'nginx' }, async () => {
  const service = await startTestService({ MEDIA_ACCEL_PREFIX: '/blobs' })
  onTestFinished(() => service.close())
  const id = idIn(await service.upload(await clip('plain.mp4'), [['title', 'Grüße']]))
  const front = await startNginx(await documentedLocations(service))
  const whole = await fromNginx(front, `/f/${id}.mp4`)
  const { bytes } = whole
  expect(whole.status).toBe(200)
  expect(bytes.subarray(4, 8).toString()).toBe('ftyp')
  expect(Object.fromEntries(whole.headers)).toMatchObject({
    'content-type': 'video/mp4',
    'last-modified': 'Sat, 01 Jan 2000 00:00:00 GMT',
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
