import { hostileRuns, sayHostile } from '@services/common/testing/http/hostile-run'
import { HOSTILE_TEXTS } from '@services/common/testing/http/hostile-values'
import { type Random, randomFrom } from '@services/common/testing/seeded-random'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TRANSCODE_QUEUE } from '../src/make/jobs/queues.ts'
import { gif } from './gif-bytes.ts'
import { startTestService, type TestService } from './service.ts'

const FORMS = 4 * hostileRuns()

const picture = gif(24, 16, [{ delay: 10 }]).toString('latin1')

let service: TestService
beforeAll(async () => {
  service = await startTestService(
    { MEDIA_PARALLEL_PER_TOKEN: '100' },
    { timeLimits: { unreadBodyMs: 1_000, uploadWindowMs: 1_000, uploadMs: 2_000 } },
  )
})
afterAll(() => service.close())

const BOUNDARIES = [
  'b',
  'b',
  'b',
  '----WebKitFormBoundary7MA4',
  "a'()+_,-./:=?",
  'x'.repeat(70),
  'x'.repeat(71),
  '-',
  '--',
  'a b',
]
const LINE_ENDS = ['\r\n', '\r\n', '\r\n', '\n', '\r', '\n\r', '\r\n\r\n', '']
const NAMES = [
  'file',
  'file',
  'file',
  'title',
  'tags',
  'tags[]',
  'nsfw',
  '',
  '__proto__',
  'constructor',
  'x'.repeat(200),
  'a"b',
  'ü',
  '\0',
]
const FILE_NAMES = [
  'a.gif',
  '../../etc/passwd',
  'a\0.gif',
  'C:\\a.gif',
  'x'.repeat(3_000),
  '',
  '"',
  "a'; drop table clips; --",
  '\xff',
]
const TYPES = [
  'image/gif',
  'application/json',
  'text/plain; charset=utf-7',
  'multipart/mixed; boundary=c',
  'message/rfc822',
  '/',
  '\xff',
]
const ENCODINGS = ['base64', 'quoted-printable', 'binary', '7bit', 'x']

/** A part as it should be, with one or two things about it that should not. */
function partOf(random: Random, name: string, content: string, eol: string): string {
  const file =
    name === 'file' || random.chance(0.1)
      ? `; filename="${random.chance(0.7) ? 'a.gif' : random.pick(FILE_NAMES)}"`
      : ''
  const quoted = random.chance(0.9) ? `"${name}"` : name
  const headers = [`Content-Disposition: ${random.chance(0.95) ? 'form-data' : 'attachment'}; name=${quoted}${file}`]
  if (random.chance(0.3)) headers.push(`Content-Type: ${random.pick(TYPES)}`)
  if (random.chance(0.1)) headers.push(`Content-Transfer-Encoding: ${random.pick(ENCODINGS)}`)
  if (random.chance(0.05)) headers.push(`X: ${'x'.repeat(20_000)}`)
  if (random.chance(0.05)) headers.push(...Array(200).fill('X: y'))
  if (random.chance(0.05)) headers.push(headers[0] as string)
  if (random.chance(0.05)) headers.push(`Content-Disposition: form-data; name*=utf-8''%ff; filename*=x'y'%zz`)
  if (random.chance(0.03)) headers.length = 0
  return `${headers.join(eol)}${eol}${eol}${content}${eol}`
}

/** The request of this number. Its length is right, so that only the form is broken, or missing. */
function uploadOf(token: string, seed: number): string {
  const random = randomFrom(seed)
  const boundary = random.pick(BOUNDARIES)
  const eol = random.chance(0.8) ? '\r\n' : random.pick(LINE_ENDS)
  const marker = () =>
    random.chance(0.93) ? boundary : random.pick([`${boundary}x`, boundary.slice(1), `-${boundary}`, ''])
  const names = ['file', ...Array.from({ length: random.below(4) }, () => random.pick(NAMES))]
  if (random.chance(0.1)) names.shift()
  if (random.chance(0.3)) names.reverse()
  if (random.chance(0.03)) names.push(...Array(100).fill('tags'))
  const parts = names.map((name) => {
    const contents =
      name === 'file' ? [picture, picture, picture, '', 'no clip', `${picture}\r\n--${boundary}`] : HOSTILE_TEXTS
    const content = Buffer.from(random.pick(contents), name === 'file' ? 'latin1' : 'utf8').toString('latin1')
    return `--${marker()}${eol}${partOf(random, name, content, eol)}`
  })
  const preamble = random.chance(0.1) ? random.pick([`text${eol}`, eol, '--', '\0'.repeat(500)]) : ''
  const end = random.chance(0.85) ? `--${marker()}--${eol}` : random.pick(['', `--${boundary}`, `--${boundary}-`, '--'])
  const epilogue = random.chance(0.1) ? random.pick(['text', `--${boundary}${eol}`, 'x'.repeat(50_000)]) : ''
  const whole = preamble + parts.join('') + end + epilogue
  const body = random.chance(0.15) ? whole.slice(0, random.below(whole.length)) : whole
  return `${headOf(random, token, boundary)}${framed(random, body)}`
}

function headOf(random: Random, token: string, boundary: string): string {
  const quoted = random.chance(0.5) || /[^\w-]/.test(boundary) ? `"${boundary}"` : boundary
  const type = random.chance(0.9)
    ? `multipart/form-data; boundary=${quoted}`
    : random.pick([
        ...[
          'multipart/form-data',
          'multipart/form-data; boundary=',
          'multipart/form-data; boundary=""',
          'multipart/mixed; boundary=b',
        ],
        ...[
          `multipart/form-data; boundary=${boundary}; boundary=other`,
          "multipart/form-data; boundary*=utf-8''b",
          'MULTIPART/FORM-DATA; BOUNDARY=b',
        ],
        ...[
          `multipart/form-data; boundary=${'b'.repeat(5_000)}`,
          'multipart/form-data;;;boundary=b',
          'multipart/form-data; charset=utf-16; boundary=b',
        ],
      ])
  return `POST /media/upload HTTP/1.1\r\nHost: a\r\nConnection: close\r\nToken: ${token}\r\nPrefer: wait=5\r\nContent-Type: ${type}\r\n`
}

function framed(random: Random, body: string): string {
  if (random.chance(0.7)) return `Content-Length: ${body.length}\r\n\r\n${body}`
  const chunks = [...body.matchAll(/[\s\S]{1,700}/g)].map(([text]) => `${text.length.toString(16)}\r\n${text}\r\n`)
  // Without the last chunk it never ends.
  return `Transfer-Encoding: chunked\r\n\r\n${chunks.join('')}${random.chance(0.9) ? '0\r\n\r\n' : ''}`
}

test(
  'however a form is broken, it is refused or becomes a clip, and what was refused leaves nothing behind',
  async () => {
    const port = Number(new URL(service.url).port)
    const { problems, statuses } = await sayHostile(
      { port, count: FORMS, requestOf: (seed) => uploadOf(service.token, seed) },
      ({ status, body }) => (status === 201 || (status >= 400 && status < 500)) && Boolean(JSON.parse(body)),
    )
    expect(problems).toBe('')
    // Neither forms that are all broken nor ones that are all whole would show anything.
    expect(Object.keys(statuses)).toEqual(expect.arrayContaining(['201', '400', '415', '422']))
    // Some were answered before their clips were made.
    await expect.poll(() => service.deps.queue.depth(TRANSCODE_QUEUE.name)).toBe(0)
    const { files, clips } = await service.traces()
    const { rows } = await service.deps.pool.query('select count(*)::int as blobs from blobs')
    expect([clips, files.length]).toEqual([statuses[201], rows[0].blobs])
  },
  120_000 + FORMS * 400,
)
