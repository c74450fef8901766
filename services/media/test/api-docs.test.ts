import { expect } from 'vitest'
import { clip } from './clips.ts'
import { idIn, test } from './service.ts'

interface Operation {
  tags: string[]
  requestBody?: { content: Record<string, { example?: Record<string, unknown> }> }
}

const GROUPS = ['media', 'files', 'pages', 'webhooks', 'tokens', 'service']

test('/docs is a page of ours: our name and icon, made for phones, nothing inline and nothing of others', async ({
  service,
}) => {
  for (const path of ['/docs', '/docs/']) {
    const { status, text, headers } = await service.get(path)
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(text).toContain('<title>Media API</title>')
    expect(text).toContain('<meta name="viewport" content="width=device-width, initial-scale=1">')
    expect(text).not.toMatch(/fastify|<style|style=|<script>/i)
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/)
    expect(headers.get('referrer-policy')).toBe('strict-origin-when-cross-origin')
    for (const [, address = ''] of text.matchAll(/(?:href|src)="([^"]+)"/g)) {
      const { pathname } = new URL(address, `https://media.example${path}`)
      expect([pathname, (await service.get(pathname)).status]).toEqual([pathname, 200])
    }
  }
})

test('the groups of operations are in the order of their use, and health is last', async ({ service }) => {
  const { body } = await service.get('/openapi.json')
  expect(body.tags.map(({ name }: { name: string }) => name)).toEqual(GROUPS)
  const used = Object.values<Record<string, Operation>>(body.paths).flatMap((path) =>
    Object.values(path).flatMap(({ tags }) => tags),
  )
  expect(new Set(used)).toEqual(new Set(GROUPS))
})

test('each JSON body has an example, which is accepted as it is', async ({ service }) => {
  const { body } = await service.get('/openapi.json')
  const { token } = await service.newToken({ scopes: ['admin', 'write'] })
  const id = idIn(await service.upload(await clip('plain.gif')))
  const answers: Record<string, number> = {}
  for (const [path, operations] of Object.entries<Record<string, Operation>>(body.paths)) {
    for (const [method, { requestBody }] of Object.entries(operations)) {
      const media = requestBody?.content['application/json']
      if (!media) continue
      expect([method, path, media.example]).toEqual([method, path, expect.any(Object)])
      // The one that leaves the machine.
      if (path === '/media/import') continue
      const answer = await service.call(method.toUpperCase(), path.replace('{id}', id), {
        headers: { token, 'content-type': 'application/json' },
        body: JSON.stringify(media.example),
      })
      answers[`${method} ${path}`] = answer.status
    }
  }
  expect(answers).toEqual({ 'patch /media/{id}': 200, 'post /tokens': 201, 'post /webhooks': 201 })
})
