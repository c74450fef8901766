import { readFile } from 'node:fs/promises'
import { expect } from 'vitest'
import { clip } from './clips.ts'
import { startTestService, type TestService, test } from './service.ts'

interface SharexConfig {
  RequestMethod: string
  RequestURL: string
  Headers: Record<string, string>
  FileFormName: string
  URL: string
  ThumbnailURL: string
  DeletionURL: string
}

/** Uploads as ShareX does with these settings; returns the addresses that it would keep. */
async function uploadAsSharex(service: TestService, config: SharexConfig) {
  const form = new FormData()
  form.append(config.FileFormName, new Blob([new Uint8Array(await readFile(await clip('plain.gif')))]), 'a.gif')
  const init = { body: form, headers: config.Headers }
  const { status, body, headers } = await service.call(config.RequestMethod, config.RequestURL, init)
  const memberOf = (path: string) => path.split('.').reduce((value, name) => value?.[name], body)
  const read = (template: string) =>
    template.replaceAll(/\{(json|header):([^}]+)\}/g, (_, from, name) =>
      String(from === 'json' ? memberOf(name) : headers.get(name)),
    )
  const { URL: page, ThumbnailURL, DeletionURL } = config
  return { status, headers, page: read(page), thumbnail: read(ThumbnailURL), deletion: read(DeletionURL) }
}

test('the settings upload with the token, and lead to the page, the thumbnail and a page that deletes', async ({
  service,
}) => {
  const { status, body, headers } = await service.get('/sharex.sxcu', { token: service.token })
  expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
  expect(headers.get('content-disposition')).toBe('attachment; filename="media.example.sxcu"')
  expect(body).toMatchObject({ Headers: { Token: service.token }, Body: 'MultipartFormData', Name: 'Media' })

  const kept = await uploadAsSharex(service, body)
  expect([kept.status, kept.headers.get('preference-applied')]).toEqual([201, 'delete-link'])
  expect(kept.page).toMatch(/^https:\/\/media\.example\/gif\/\w+$/)
  expect(kept.thumbnail).toMatch(/^https:\/\/files\.example\/f\/\w+\.jpg$/)
  expect(kept.deletion).toMatch(new RegExp(`^${kept.page}/delete#md_\\w{22}$`))
  // The clip of a token does not expire.
  expect(kept.headers.get('x-expires-at')).toBeNull()
})

test('opening the delete link deletes nothing; its token deletes this clip and no other', async ({ service }) => {
  const { body: config } = await service.get('/sharex.sxcu', { token: service.token })
  const [first, second] = [await uploadAsSharex(service, config), await uploadAsSharex(service, config)]
  const [address = '', token = ''] = first.deletion.split('#')
  for (const method of ['GET', 'HEAD']) expect((await service.call(method, address)).status).toBe(200)
  const page = await service.get(address, { accept: 'text/html' })
  expect(page.headers.get('cache-control')).toBe('no-store')
  expect(page.text).toContain('Delete it for good')
  expect(page.text).toContain('<meta name="robots" content="noindex">')
  expect((await service.call('POST', address)).status).toBe(405)
  expect((await service.get(first.page)).status).toBe(200)

  const deletionOf = (shown: string, deleteToken: string) =>
    service.call('DELETE', shown.replace('/gif/', '/media/'), { headers: { 'x-delete-token': deleteToken } })
  expect((await deletionOf(second.page, token)).status).toBe(404)
  expect((await deletionOf(first.page, token)).status).toBe(204)
  expect((await service.get(first.page)).status).toBe(410)
  expect((await service.get(second.page)).status).toBe(200)
})

test('the page of a delete link is the same for clips that exist, are deleted or never existed', async ({
  service,
}) => {
  const { body } = await service.ready(await clip('plain.gif'))
  const id = body.success.page.split('/').at(-1) as string
  const textOf = async (of: string) => (await service.get(`/gif/${of}/delete`)).text.replaceAll(of, 'ID')
  expect(await textOf('none1234')).toBe(await textOf(id))
  expect((await service.get('/gif/%22%3E/delete')).status).toBe(404)
})

test('a caller with a token gets no delete token unasked, and one without a token gets the link, too', async ({
  service,
}) => {
  const plain = await service.ready(await clip('plain.gif'))
  expect([plain.headers.get('x-delete-token'), plain.headers.get('x-delete-url')]).toEqual([null, null])
  const open = await startTestService({ MEDIA_UPLOAD_AUTH: 'optional' })
  try {
    const form = new FormData()
    form.append('file', new Blob([new Uint8Array(await readFile(await clip('plain.gif')))]), 'a.gif')
    const { headers } = await open.call('POST', '/media/upload', { body: form })
    expect(headers.get('x-delete-url')).toMatch(new RegExp(`/delete#${headers.get('x-delete-token')}$`))
  } finally {
    await open.close()
  }
})

test('a token that may not delete gets no delete link, by its settings or by hand', async ({ service }) => {
  const { token } = await service.newToken({ scopes: ['write'] })
  const { body } = await service.get('/sharex.sxcu', { token })
  expect(body.Headers).toEqual({ Token: token })
  expect(body.DeletionURL).toBeUndefined()
  const { status, headers } = await service.ready(await clip('plain.gif'), [], { token, prefer: 'delete-link' })
  expect([status, headers.get('x-delete-url'), headers.get('preference-applied')]).toEqual([201, null, null])
})

test('the settings need a token that may upload', async ({ service }) => {
  expect((await service.get('/sharex.sxcu')).status).toBe(401)
  const { token } = await service.newToken({ scopes: ['read'] })
  const { status, body } = await service.get('/sharex.sxcu', { token })
  expect([status, body.error.code]).toEqual([403, 'insufficient_scope'])
})
