import { describe, expect, test } from 'vitest'
import { ytdlpFailure } from './extract-page.ts'
import { readAnswer } from './read-answer.ts'

const PAGE = new URL('https://site.example/watch')
const read = (answer: unknown) => readAnswer(answer, PAGE)
const file = { url: 'https://cdn.example/v.mp4', protocol: 'https', ext: 'mp4' }

describe('its output becomes sources', () => {
  const hls = { protocol: 'm3u8_native', url: 'https://cdn.example/720.m3u8' }
  const master = 'https://cdn.example/master.m3u8'
  test.each([
    ['a file', file, [{ kind: 'file', url: file.url }]],
    ['a file of known size', { ...file, filesize: 9 }, [{ kind: 'file', url: file.url, bytes: 9 }]],
    ['the first of a list', { _type: 'playlist', entries: [file] }, [{ kind: 'file', url: file.url }]],
    ['HLS', hls, [{ kind: 'manifest', format: 'hls', url: hls.url }]],
    ['HLS with its master', { ...hls, manifest_url: master }, [{ kind: 'manifest', format: 'hls', url: master }]],
    [
      'HLS with the sound apart',
      {
        requested_formats: [
          { ...hls, manifest_url: master },
          { ...hls, manifest_url: master },
        ],
      },
      [{ kind: 'manifest', format: 'hls', url: master }],
    ],
    [
      'DASH',
      { protocol: 'http_dash_segments', manifest_url: 'https://cdn.example/a.mpd' },
      [{ kind: 'manifest', format: 'dash', url: 'https://cdn.example/a.mpd' }],
    ],
    [
      'two files',
      { requested_formats: [file, { ...file, url: 'https://cdn.example/a.m4a' }] },
      [{ kind: 'separate', picture: file.url, sound: 'https://cdn.example/a.m4a' }],
    ],
  ])('%s', (_, answer, sources) => expect(read(answer)?.sources).toEqual(sources))

  test('and the words about them', () => {
    const words = { title: 'A title', duration: 4.5, age_limit: 18, uploader: 'Ada', extractor_key: 'Vimeo' }
    expect(read({ ...file, ...words })).toMatchObject({
      ...{ title: 'A title', durationSeconds: 4.5, nsfw: true },
      attribution: { site: 'https://site.example/', user: 'Ada', url: PAGE.href },
    })
    const tweet = { extractor_key: 'TwitterSpaces', uploader_id: 'ada', uploader: 'Ada' }
    expect(read({ ...file, ...tweet })?.attribution).toMatchObject({ site: 'twitter', user: 'ada' })
  })

  test('headers that a server wants are passed on, keys are not', () => {
    const http_headers = {
      Referer: 'https://site.example/',
      Cookie: 'a=b',
      Authorization: 'c',
      'User-Agent': 'x\r\ny: z',
    }
    expect(read({ ...file, http_headers })?.sources).toEqual([
      { kind: 'file', url: file.url, headers: { referer: 'https://site.example/' } },
    ])
  })
})

test.each([
  ['nothing', null],
  ['text', 'hello'],
  ['a number', 7],
  ['a list', [file]],
  ['an empty object', {}],
  ['an empty list of entries', { _type: 'playlist', entries: [] }],
  ['an entry that is none', { _type: 'playlist', entries: [null] }],
  ['something live', { ...file, is_live: true }],
  ['a file of the disk', { ...file, protocol: 'file', url: 'file:///etc/passwd' }],
  ['another protocol', { ...file, protocol: 'rtmp' }],
  ['an address that is no text', { ...file, url: { href: 'https://cdn.example/' } }],
  ['no address', { protocol: 'https' }],
  ['DASH without its manifest', { protocol: 'http_dash_segments', url: 'https://cdn.example/v' }],
  ['three files', { requested_formats: [file, file, file] }],
  ['a picture without the sound it needs', { requested_formats: [file, { protocol: 'rtmp' }] }],
  ['members of a prototype', JSON.parse('{"__proto__":{"url":"https://cdn.example/v.mp4","protocol":"https"}}')],
])('nothing for us: %s', (_, answer) => expect(read(answer)).toBeUndefined())

test.each([
  ['Instagram: This content is only available for registered users; use --cookies', { code: 'site_login_required' }],
  ['[facebook] 1: You must log in to see this', { code: 'site_login_required' }],
  ['[tiktok] Your account: Sign in to confirm your age', { code: 'site_login_required' }],
  ['Unsupported URL: https://site.example/', { code: 'unsupported_site_content' }],
  ['No suitable extractor found for https://site.example/', { code: 'unsupported_site_content' }],
  ['[twitter] 1: No video could be found in this tweet', { code: 'unsupported_site_content' }],
  ['[x] 1 does not pass filter (!is_live & duration<=?30.5)', { code: 'duration_exceeded', details: { limit: 30 } }],
  ['File is larger than max-filesize', { code: 'file_too_large', details: { limit: 9 } }],
  ['Unable to download webpage: HTTP Error 404: Not Found', { details: { upstream: '4xx', site: 'site.example' } }],
  ['Unable to download webpage: HTTP Error 503: Busy', { details: { upstream: '5xx', site: 'site.example' } }],
  ['Unable to download webpage: The read operation timed out', { details: { upstream: 'timeout' } }],
  ['Unable to download webpage: Connection refused', { details: { upstream: 'unreachable' } }],
  ['Something nobody has seen before', { code: 'source_fetch_failed', details: { upstream: 'bad_response' } }],
] as [string, { code?: string; details?: object }][])('an end with "%s" means', (words, meaning) => {
  const outcome = { state: 'failed' as const, exitCode: 1, signal: null, stderr: `ERROR: ${words}\n` }
  const limits = { maxSeconds: 30, maxBytes: 9 }
  const failure = ytdlpFailure({ outcome, hasRefused: false }, 'site.example', limits)
  expect(failure).toMatchObject({
    code: 'source_fetch_failed',
    ...meaning,
    details: expect.objectContaining(meaning.details ?? {}),
  })
  expect(failure.message).not.toContain('ERROR')
})
