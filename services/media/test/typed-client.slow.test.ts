import { readFile } from 'node:fs/promises'
import { typedClient } from '@services/common/testing/http/typed-client'
import { expect } from 'vitest'
import { clip } from './clips.ts'
import { test } from './service.ts'

/**
 * Source of a client as an application writes it: requests and answers have the types of the document, without a cast.
 * Only the file needs one: openapi-typescript types `format: binary` as `string`, which generators and Swagger UI take
 * for a file.
 */
const PROGRAM = `
import createClient from 'openapi-fetch'
import type { components, paths } from './api.js'

type Clip = components['schemas']['Clip']
const stateOf = (clip: Clip): 'processing' | 'ready' | 'failed' | 'hidden' => clip.state

export async function run(baseUrl: string, token: string, file: Blob) {
  const client = createClient<paths>({ baseUrl, headers: { token } })
  const added = await client.POST('/media/upload', {
    params: { query: { include: 'details' } },
    body: { file: '', title: 'A cat' },
    bodySerializer: ({ title = '' }) => {
      const form = new FormData()
      form.append('title', title)
      form.append('file', file, 'cat.gif')
      return form
    },
  })
  if (!added.data) throw new Error(added.error.error.message)
  const id = new URL(added.data.success.page).pathname.split('/').at(-1) ?? ''

  const read = await client.GET('/media/{id}', { params: { path: { id } } })
  if (!read.data) throw new Error(read.error.message)
  const width: number = read.data.success.sizes.gif?.width ?? 0
  const listed = await client.GET('/media', { params: { query: { limit: 2, nsfw: false } } })
  const states = listed.data?.success.items.map(stateOf)
  const page = await client.GET('/gif/{id}', { params: { path: { id } }, parseAs: 'text' })
  const html: string = page.data ?? ''
  const bytes = await client.GET('/f/{id}.{kind}', { params: { path: { id, kind: 'gif' } }, parseAs: 'arrayBuffer' })
  const missing = await client.GET('/media/{id}', { params: { path: { id: 'none' } } })
  const code: string | undefined = missing.error?.error.code
  const gone = await client.DELETE('/media/{id}', { params: { path: { id } } })
  return { title: read.data.success.title, width, states, html, status: [bytes.response.status, gone.response.status], code }
}
`

interface Program {
  run(baseUrl: string, token: string, file: Blob): Promise<object>
}

test('a client made of the document uploads, reads a clip, its page and a file, and deletes it, without a cast but for the file', async ({
  service,
}) => {
  const { body } = await service.get('/openapi.json')
  const { run } = await typedClient<Program>(body, PROGRAM)
  const file = new Blob([new Uint8Array(await readFile(await clip('plain.gif')))])
  expect(await run(service.url, service.token, file)).toEqual({
    title: 'A cat',
    width: expect.any(Number),
    states: ['ready'],
    html: expect.stringContaining('A cat'),
    status: [200, 204],
    code: 'not_found',
  })
})
