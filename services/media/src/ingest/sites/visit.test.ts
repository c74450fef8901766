import { expect, test } from 'vitest'
import type { FetchOptions, Remote, RemoteAnswer } from '../remote/fetch-remote.ts'
import { startVisit } from './visit.ts'

const keys = {
  giphyApiKey: undefined,
  imgurClientId: undefined,
  redditClientId: undefined,
  redditClientSecret: undefined,
}

/** A web that answers everything with these pieces, and counts them. */
function web(pieces: Iterable<Buffer>, headers: Record<string, string> = {}) {
  const seen = { urls: [] as string[], options: [] as FetchOptions[], bytes: 0 }
  const fetch: Remote['fetch'] = (url, options, read) => {
    seen.urls.push(url)
    seen.options.push(options)
    const chunks = async function* () {
      for (const piece of pieces) {
        seen.bytes += piece.length
        yield piece
      }
    }
    return read({ url: new URL(url), status: 200, headers, chunks: chunks() } satisfies RemoteAnswer)
  }
  return { fetch, seen }
}

const visit = (remote: Pick<Remote, 'fetch'>, requestsMade = 0) =>
  startVisit(remote, {
    ...{ site: 'giphy', keys, requestsMade, signal: new AbortController().signal },
    mayVisit: ({ hostname }) => hostname.endsWith('giphy.com'),
  })

test('a site asks its own hosts and no others, before any connection', async () => {
  const { fetch, seen } = web([Buffer.from('{"a":1}')])
  const { get } = visit({ fetch })
  expect((await get('https://api.giphy.com/1')).json()).toEqual({ a: 1 })
  for (const url of [
    'https://giphy.com.evil.example/',
    'http://169.254.169.254/',
    'file:///etc/passwd',
    'no address',
  ]) {
    await expect(get(url)).rejects.toMatchObject({ code: 'source_forbidden' })
  }
  expect(seen.urls).toEqual(['https://api.giphy.com/1'])
  expect(seen.options[0]?.mayVisit?.(new URL('https://evil.example/'))).toBe(false)
})

test.each([
  [0, 4],
  [1, 3],
])('after %i requests made, %i more', async (made, left) => {
  const { fetch, seen } = web([Buffer.from('{}')])
  const { get } = visit({ fetch }, made)
  for (let request = 0; request < left; request++) await get('https://giphy.com/')
  await expect(get('https://giphy.com/')).rejects.toMatchObject({
    code: 'source_fetch_failed',
    details: { site: 'giphy' },
  })
  expect(seen.urls).toHaveLength(left)
})

test('all requests together have ten seconds', async () => {
  const { fetch, seen } = web([Buffer.from('{}')])
  const { get } = visit({ fetch })
  await get('https://giphy.com/')
  await get('https://giphy.com/')
  const [first = 0, second = 0] = seen.options.map(({ totalMs }) => totalMs)
  expect(first).toBeLessThanOrEqual(10_000)
  expect(second).toBeLessThan(first)
})

test.each([
  ['text/html', 2],
  ['application/json', 4],
])('of %s no more than %i MB are read', async (type, megabytes) => {
  const endless = {
    *[Symbol.iterator]() {
      for (;;) yield Buffer.alloc(65_536, ' ')
    },
  }
  const { fetch, seen } = web(endless, { 'content-type': type })
  const answer = await visit({ fetch }).get('https://giphy.com/')
  expect(answer.text).toHaveLength(megabytes * 1024 * 1024)
  expect(seen.bytes).toBe(megabytes * 1024 * 1024)
  expect(answer.json()).toBeUndefined()
})

test('where a page may end a redirect early, the rest of the way is not gone', async () => {
  const { fetch, seen } = web([])
  await visit({ fetch }).get('https://giphy.com/', { until: ({ pathname }) => pathname === '/gifs/1' })
  const goesOn = seen.options[0]?.mayVisit
  expect(goesOn?.(new URL('https://giphy.com/x'))).toBe(true)
  expect(goesOn?.(new URL('https://giphy.com/gifs/1'))).toBe(false)
})
