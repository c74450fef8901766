import { afterAll, beforeAll, expect, test } from 'vitest'
import { gif } from './gif-bytes.ts'
import { type FormFields, idIn, startTestService, type TestService } from './service.ts'

let service: TestService

// Fields are stored before the files are made: without a worker no test waits for one.
beforeAll(async () => {
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_SYNC_WAIT: '0' })
})
afterAll(() => service.close())

const newGif = () => gif(20, 10, [{ delay: 10 }])

async function detailsAfter(fields: FormFields) {
  const answer = await service.upload(newGif(), fields)
  expect(answer.status).toBe(201)
  const { body } = await service.get(`/media/${idIn(answer)}`, { token: service.token })
  return body.success
}

test.for<[string, FormFields]>([
  ['one field with commas, as the historic curl sends it', [['tags', 'awesome, cool, fun, gnarly']]],
  [
    'repeated',
    [
      ['tags', 'awesome'],
      ['tags', 'cool'],
      ['tags', 'fun'],
      ['tags', 'gnarly'],
    ],
  ],
  [
    'repeated with brackets',
    [
      ['tags[]', 'awesome'],
      ['tags[]', 'cool'],
      ['tags[]', 'fun'],
      ['tags[]', 'gnarly'],
    ],
  ],
  ['a JSON array', [['tags', ' ["awesome", "cool", "fun", "gnarly"]']]],
  [
    'untidy',
    [
      ['tags', ' awesome ,,  COOL\t,Awesome'],
      ['tags', 'fun'],
      ['tags', 'gnarly'],
    ],
  ],
])('tags: %s', async ([, fields]) => {
  const { tags } = await detailsAfter(fields)
  expect(tags.map((tag: string) => tag.toLowerCase())).toEqual(['awesome', 'cool', 'fun', 'gnarly'])
})

test.for([
  ...['true', '1', 'on', 'YES'].map((value) => [value, true] as const),
  ...['false', '0', 'off', 'no', ''].map((value) => [value, false] as const),
])('nsfw=%s is %s', async ([value, nsfw]) => {
  expect(await detailsAfter([['nsfw', value]])).toMatchObject({ nsfw })
})

test('attribution, title and unknown fields', async () => {
  const details = await detailsAfter([
    ['title', '  Two\n lines \u0000\u0007 and  half a 😀 '],
    ['attribution_site', 'Reddit'],
    ['attribution_user', 'u/ada'],
    ['attribution_url', 'https://example.com/a b'],
    ['colour', 'red'],
    ['x'.repeat(10_000), 'a name beyond any limit'],
  ])
  expect(details).toMatchObject({
    title: 'Two lines and half a 😀',
    attribution: { site: 'reddit', user: 'ada', url: 'https://example.com/a%20b' },
    source: { kind: 'upload', url: null, type: 'gif' },
  })
})

test.for<[string, FormFields, object | null]>([
  [
    'an address alone',
    [['attribution_url', 'https://example.org/post/1']],
    { site: 'https://example.org/', url: 'https://example.org/post/1' },
  ],
  [
    'one of a known site',
    [['attribution_url', 'https://www.reddit.com/r/gifs/1']],
    { site: 'reddit', url: 'https://www.reddit.com/r/gifs/1' },
  ],
  ['a host', [['attribution_site', 'imgur.com']], { site: 'https://imgur.com/' }],
  [
    'the host of a known site',
    [
      ['attribution_site', 'X.com'],
      ['attribution_user', '@ada'],
    ],
    { site: 'twitter', user: 'ada' },
  ],
  [
    'an object as clients write it',
    [
      ['attribution[site]', 'reddit'],
      ['attribution[user]', 'ada'],
    ],
    { site: 'reddit', user: 'ada' },
  ],
  ['members with dots', [['attribution.site', 'reddit']], { site: 'reddit' }],
  ['a user alone, who is nobody’s', [['attribution_user', 'ada']], null],
])('attribution by %s', async ([, fields, attribution]) => {
  expect(await detailsAfter(fields)).toMatchObject({ attribution })
})

test('tags as clients write arrays', async () => {
  const { tags } = await detailsAfter([
    ['tags[0]', 'a'],
    ['tags[1]', 'b,c'],
    ['tags[]', 'd'],
    ['tags[x]', 'not one'],
  ])
  expect(tags).toEqual(['a', 'b', 'c', 'd'])
})

test('after the file count as well as before it, and other files are ignored', async () => {
  const form = new FormData()
  form.append('title', 'before')
  form.append('thumbnail', new Blob(['not wanted']), 'thumb.png')
  form.append('file', new Blob([new Uint8Array(newGif())]), 'a.gif')
  form.append('tags', 'after')
  const answer = await service.call('POST', '/media/upload', { body: form, headers: { token: service.token } })
  expect(answer.status).toBe(201)
  const { body } = await service.get(`/media/${idIn(answer)}`, { token: service.token })
  expect(body.success).toMatchObject({ title: 'before', tags: ['after'] })
})

test.for<[string, FormFields, string]>([
  ['nsfw that is neither yes nor no', [['nsfw', 'maybe']], 'nsfw'],
  ['a title of 201 characters', [['title', 'x'.repeat(201)]], 'title'],
  ['31 tags', [['tags', Array.from({ length: 31 }, (_, n) => n).join()]], 'tags'],
  ['a tag of 51 characters', [['tags', 'x'.repeat(51)]], 'tags'],
  // Empty and repeated tags are free up to a limit: reading them blocks all other requests.
  ['a field of 1001 empty tags', [['tags', ','.repeat(1_000)]], 'tags'],
  ['an array of 1001 empty tags', [['tags', JSON.stringify(Array(1_001).fill(''))]], 'tags'],
  [
    'one tag 1001 times, in two fields',
    [
      ['tags', 'a,'.repeat(500)],
      ['tags', 'a,'.repeat(500)],
    ],
    'tags',
  ],
  ['a tag of invisible characters without end', [['tags', '\u200b'.repeat(501)]], 'tags'],
  ['a site that is no URL', [['attribution_site', 'javascript:alert(1)']], 'attribution_site'],
  ['a site with a user name', [['attribution_site', 'ada@imgur.com']], 'attribution_site'],
  ['an address that is none, without a site', [['attribution_url', 'somewhere']], 'attribution_url'],
  [
    'an attribution address that runs script',
    [
      ['attribution_site', 'twitter'],
      ['attribution_url', 'javascript:1'],
    ],
    'attribution_url',
  ],
  ['a field of 65 KiB', [['title', 'x'.repeat(66_000)]], 'title'],
])('%s is 422 and names the field', async ([, fields, param]) => {
  const { status, body } = await service.upload(newGif(), fields)
  expect(status).toBe(422)
  expect(body.error).toMatchObject({ code: 'invalid_field', param })
})

test('1000 tags that come down to 30 are 30 tags', async () => {
  const { tags } = await detailsAfter([['tags', Array.from({ length: 1_000 }, (_, n) => (n % 2 ? n % 60 : '')).join()]])
  expect(tags).toHaveLength(30)
})

test.for([
  ['POST', '/media/import', { source: 'http://127.0.0.1:1/' }],
  ['PATCH', '/media/{id}', {}],
] as const)('%s %s with 1001 tags is 422 and names the field', async ([method, path, fields]) => {
  const id = idIn(await service.upload(newGif()))
  const { status, body } = await service.call(method, path.replace('{id}', id), {
    headers: { token: service.token, 'content-type': 'application/json' },
    body: JSON.stringify({ ...fields, tags: Array(1_001).fill('') }),
  })
  expect(status).toBe(422)
  expect(body.error).toMatchObject({ code: 'invalid_field', param: 'tags' })
})

test.for([
  ['a turned-round ending', 'cat\u202egpj.exe', 'catgpj.exe'],
  ['isolates and embeddings', '\u2066a\u2069\u202ab\u202c\u200e\u200f\u061c', 'ab'],
  ['gaps nobody sees', 'pay\u200bpal\u2060\ufeff\u00ad\u3164\u034f', 'paypal'],
  ['a hidden message', 'cat\u{e0068}\u{e0069}', 'cat'],
  ['nothing but invisible characters', '\u200d\u200c\ufe0f', undefined],
  ['a family, a flag, a heart', '👩‍👩‍👧 🏴󠁧󠁢󠁥󠁮󠁧󠁿 ❤️', '👩‍👩‍👧 🏴󠁧󠁢󠁥󠁮󠁧󠁿 ❤️'],
  ['Persian, which needs the non-joiner', 'می\u200cخواهم', 'می\u200cخواهم'],
] as const)('text that looks like another is shown as what it is: %s', async ([, sent, kept]) => {
  const { title, tags } = await detailsAfter([
    ['title', sent],
    ['tags', sent],
  ])
  expect([title ?? undefined, tags[0]]).toEqual([kept, kept])
})
