import { readFile } from 'node:fs/promises'
import { expect, onTestFinished, test } from 'vitest'
import { clip } from './clips.ts'
import { idIn, startTestService, type TestService } from './service.ts'

async function startWithClip(settings: Record<string, string>) {
  const service = await startTestService(settings)
  onTestFinished(() => service.close())
  const id = idIn(await service.ready(await clip('plain.mp4')))
  const [key = ''] = (await service.traces()).files.filter((path) => path.endsWith('.mp4'))
  return { service, id, key }
}

const remove = (service: TestService, id: string) =>
  service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })

test('with a CDN of the stored files (the documentation has its headers) they are redirected to, until the clip is deleted', async () => {
  const { service, id, key } = await startWithClip({ MEDIA_FILES_REDIRECT_URL: 'https://cdn.example/clips/' })
  const ask = (path: string) => fetch(service.url + path, { redirect: 'manual', headers: { range: 'bytes=0-1' } })
  const { status, headers } = await ask(`/f/${id}.mp4`)
  expect([status, headers.get('location')]).toEqual([302, `https://cdn.example/clips/${key}`])
  expect([headers.get('cache-control'), headers.get('access-control-allow-origin')]).toEqual(['no-store', '*'])
  // A name to save it under is something the CDN does not know.
  const own = await ask(`/f/${id}.mp4?download=1`)
  expect(own.status).toBe(206)
  expect(
    await readFile(new URL('../../../docs/explanation/media/serving-files.md', import.meta.url), 'utf8'),
  ).toContain(`Content-Security-Policy: ${own.headers.get('content-security-policy')}\n`)
  // The page to add clips plays the chosen file before it is sent.
  for (const [page, local] of [
    [`gif/${id}`, ''],
    [`embed/${id}`, ''],
    ['', ' blob:'],
  ]) {
    const policy = (await service.get(`/${page}`)).headers.get('content-security-policy')
    expect(policy).toContain(`media-src https://files.example https://cdn.example${local};`)
  }
  await remove(service, id)
  expect((await ask(`/f/${id}.mp4`)).status).toBe(410)
})

test('with X-Accel-Redirect the web server in front gets the name of the stored file, and no validator of ours', async () => {
  const { service, id, key } = await startWithClip({ MEDIA_ACCEL_PREFIX: '/blobs' })
  for (const method of ['GET', 'HEAD']) {
    const { status, headers, bytes } = await service.call(method, `/f/${id}.mp4?download=1`)
    expect([status, headers.get('x-accel-redirect'), bytes.length]).toEqual([200, `/blobs/${key}`, 0])
    expect(headers.get('content-disposition')).toBe(`attachment; filename="${id}.mp4"`)
    expect([headers.get('etag'), headers.get('last-modified')]).toEqual([null, null])
  }
  await remove(service, id)
  expect((await service.get(`/f/${id}.mp4`)).headers.get('x-accel-redirect')).toBeNull()
})
