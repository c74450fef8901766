import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, beforeAll, expect } from 'vitest'
import { signVariant } from '../src/flows/files/variants/signature.ts'
import { cleanUp } from '../src/housekeeping.ts'
import { clip, clipOf } from './clips.ts'
import { mediaHere } from './command-line.ts'
import { gif } from './gif-bytes.ts'
import { inspect } from './inspect.ts'
import { type Answer, FILES_BASE_URL, idIn, settingsOf, startTestService, type TestService, test } from './service.ts'

/** Wider than every variant of the fixed set, with sound. */
const wideClip = () =>
  clipOf('variants-1000x200.mp4', [
    ...['-f', 'lavfi', '-i', 'testsrc2=s=1000x200:r=10:d=1.4', '-f', 'lavfi', '-i', 'sine=frequency=440:duration=1.4'],
    ...['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', '12', '-c:a', 'aac', '-ac', '1'],
  ])

/** Accepts and never makes. */
let idle: TestService
beforeAll(async () => {
  idle = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
})
afterAll(() => idle.close())

const codeOf = ({ status, body }: Answer) => `${status} ${body?.error?.code}`

/** The variant once it is made, as a client gets it that follows `Retry-After`. */
async function made(service: TestService, path: string): Promise<Answer> {
  await expect.poll(async () => (await service.get(path)).status).not.toBe(202)
  return service.get(path)
}

async function inspected(service: TestService, { bytes }: Answer, ending: string) {
  const path = join(service.blobsDir, `${crypto.randomUUID()}.${ending}`)
  await writeFile(path, bytes)
  return inspect(path)
}

const rowsOf = async ({ deps }: TestService, id: string) =>
  (
    await deps.pool.query(
      `select name, variants.state, variants.bytes from variants join clips using (source_id) where id = $1 order by name`,
      [id],
    )
  ).rows
const quota = async (service: TestService) =>
  (await service.deps.pool.query('select coalesce(sum(bytes), 0)::int as bytes from token_storage')).rows[0].bytes

test('a frame of each half second is the one that is shown then, and there is none after the end', async ({
  service,
}) => {
  // Each half second is brighter than the one before.
  const steps = "nullsrc=s=64x48:r=10:d=2,geq='60+40*floor(T*2)':128:128"
  const path = await clipOf('variants-steps.mp4', [
    ...['-f', 'lavfi', '-i', steps, '-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', '250'],
  ])
  const id = idIn(await service.upload(path))
  const brightness: number[] = []
  for (const seconds of ['0', '0.5', '1', '1.5']) {
    const answer = await service.get(`/f/${id}/t${seconds}.jpg`)
    expect(answer.status).toBe(200)
    expect(await sharp(answer.bytes).metadata()).toMatchObject({ width: 64, height: 48, format: 'jpeg' })
    brightness.push((await sharp(answer.bytes).stats()).channels[0]?.mean ?? 0)
  }
  for (const [index, value] of brightness.entries()) expect(Math.abs(value - (51 + 46.6 * index))).toBeLessThan(6)
  for (const seconds of ['2', '2.5', '100'])
    expect(codeOf(await service.get(`/f/${id}/t${seconds}.jpg`))).toBe('404 not_found')
})

test('a frame of a clip whose last picture lasts long is that picture', async ({ service }) => {
  const id = idIn(await service.upload(gif(40, 20, [{ delay: 20 }, { delay: 180, color: 1 }])))
  const lightness = async (seconds: string) =>
    (await sharp((await service.get(`/f/${id}/t${seconds}.jpg`)).bytes).stats()).channels[0]?.mean
  expect(await lightness('0')).toBeGreaterThan(250)
  for (const seconds of ['0.5', '1.5']) expect(await lightness(seconds)).toBeLessThan(5)
})

test('a frame of the end that could not be decoded is the last frame', async ({ service }) => {
  const id = idIn(await service.ready(await clip('small.mp4')))
  // The probe counts packets; of a damaged file the last of them give no picture.
  await service.deps.pool.query(
    `update sources set info = jsonb_set(info, '{durationSeconds}', '1.1') from clips where source_id = sources.id and clips.id = $1`,
    [id],
  )
  const answer = await service.get(`/f/${id}/t1.jpg`)
  expect([answer.status, (await sharp(answer.bytes).metadata()).width]).toEqual([200, 64])
})

test('a transparent clip has transparent animated variants', async ({ service }) => {
  const frame = { delay: 20, transparent: 1 as const, disposal: 2 }
  const id = idIn(await service.upload(gif(400, 60, [{ ...frame, color: 1 }, frame, { ...frame, color: 1 }])))
  // Compared in bytes with the clip's own GIF, which is simpler than any copy.
  await service.deps.pool.query(`update renditions set bytes = 1000000 where kind = 'gif' and width = 400`)
  const webp = await made(service, `/f/${id}/w240.anim.webp`)
  expect((await sharp(webp.bytes).metadata()).hasAlpha).toBe(true)
  expect((await sharp(webp.bytes).stats()).isOpaque).toBe(false)
  const animated = await made(service, `/f/${id}/w240.gif`)
  expect((await sharp(animated.bytes).stats()).isOpaque).toBe(false)
})

test('a variant that would be no smaller than the clip redirects to its file, and nothing is made', async ({
  service,
}) => {
  const id = idIn(await service.ready(await clip('plain.mp4')))
  const redirect = async (name: string) => {
    const answer = await service.get(`/f/${id}/${name}`)
    return [answer.status, answer.headers.get('location')]
  }
  const names = [
    'w160.jpg',
    'w320.jpg',
    'w960.webp',
    'w240.gif',
    'w320.anim.webp',
    'w480.mp4',
    'max2m.gif',
    'max25m.mp4',
  ]
  const targets = ['jpg', 'jpg', 'jpg', 'gif', 'gif', 'mp4', 'gif', 'mp4']
  for (const [index, name] of names.entries()) {
    expect(await redirect(name)).toEqual([302, `${FILES_BASE_URL}/f/${id}.${targets[index]}`])
  }
  expect(await redirect('w160.jpg?download=1')).toEqual([302, `${FILES_BASE_URL}/f/${id}.jpg?download=1`])
  expect(await rowsOf(service, id)).toEqual([])
})

test('a smaller picture that takes more bytes than the clip redirects too, and is not kept', async ({ service }) => {
  // Two flat frames: the clip's GIF has a few hundred bytes.
  const id = idIn(await service.upload(gif(400, 300, [{ delay: 100 }, { delay: 100, color: 1 }])))
  await service.deps.pool.query(
    `update renditions set bytes = 10 from clips where clips.source_id = renditions.source_id and id = $1 and kind = 'gif'`,
    [id],
  )
  const answer = await made(service, `/f/${id}/w240.gif`)
  expect([answer.status, answer.headers.get('location')]).toEqual([302, `${FILES_BASE_URL}/f/${id}.gif`])
  expect(await rowsOf(service, id)).toEqual([{ name: 'w240.gif', state: 'original', bytes: 0 }])
})

test.each([
  'w161.jpg',
  'w640.gif',
  't0.25.jpg',
  'max3m.gif',
  'full.webp',
  'w160.png',
  'w160',
  '..%2fw160.jpg',
  'w160.jpg%00',
])('the unknown name %s is not found, and nothing is made', async (name) => {
  const id = idIn(await idle.upload(gif(40, 20, [{ delay: 10 }]), [], { prefer: 'respond-async' }))
  expect(codeOf(await idle.get(`/f/${id}/${name}`))).toBe('404 not_found')
  expect(await rowsOf(idle, id)).toEqual([])
})

test('only ready clips have variants: others answer as their files do', async () => {
  const id = idIn(await idle.upload(await clip('plain.gif'), [], { prefer: 'respond-async' }))
  for (const name of ['w160.jpg', 'w240.gif', 'max2m.mp4']) {
    const answer = await idle.get(`/f/${id}/${name}`)
    expect([answer.status, answer.body.state, answer.headers.get('retry-after')]).toEqual([202, 'processing', '2'])
  }
  expect(codeOf(await idle.get('/f/aB3dE9xK/w160.jpg'))).toBe('404 not_found')
  expect(codeOf(await idle.get('/f/x/w160.jpg'))).toBe('404 not_found')
  expect(await rowsOf(idle, id)).toEqual([])
})

const [NEW, OLD] = ['new-key-of-variants', 'old-key-of-variants']
const signed = (key: string, options: string, file: string) =>
  `/v/${signVariant(key, `/${options}/${file}`)}/${options}/${file}`

test('a signed address has any size, crop and moment; both keys of a rotation are right, a third is not', async () => {
  const service = await startTestService({ MEDIA_VARIANT_KEY: `${NEW},${OLD}` })
  const id = idIn(await service.ready(await wideClip()))
  const size = async (path: string) => {
    const { status, bytes } = await made(service, path)
    const { width, pageHeight, height, format } = await sharp(bytes).metadata()
    return { status, width, height: pageHeight ?? height, format }
  }
  expect(await size(signed(NEW, 'w:100,h:100,fit:cover', `${id}.jpg`))).toEqual({
    ...{ status: 200, width: 100, height: 100, format: 'jpeg' },
  })
  expect(await size(signed(OLD, 'w:123,t:1.234', `${id}.webp`))).toEqual({
    ...{ status: 200, width: 123, height: 25, format: 'webp' },
  })
  expect(await size(signed(NEW, 'w:64,h:64,fit:cover,fmt:anim.webp', `${id}.webp`))).toMatchObject({
    ...{ status: 200, width: 64, format: 'webp' },
  })
  expect(await size(signed(NEW, 'fmt:webp', `${id}.webp`))).toMatchObject({ status: 200, width: 1000, height: 200 })
  const square = await made(service, signed(NEW, 'w:80,h:80,fit:cover', `${id}.gif`))
  expect((await inspected(service, square, 'gif')).streams[0]).toMatchObject({ width: 80, height: 80 })
  // The same file by both kinds of address is made once.
  await service.get(`/f/${id}/w320.jpg`)
  await service.get(signed(NEW, 'w:320', `${id}.jpg`))
  expect((await rowsOf(service, id)).filter(({ name }) => name === 'w320.jpg')).toHaveLength(1)

  const right = signed(NEW, 'w:50', `${id}.jpg`)
  expect((await service.get(right)).status).toBe(200)
  expect((await service.get(right.replace('w:50', 'w%3A50'))).status).toBe(200)
  for (const wrong of [
    signed('another-key-of-variants', 'w:50', `${id}.jpg`),
    right.replace('w:50', 'w:51'),
    right.replace('.jpg', '.webp'),
    right.replace(/^\/v\/./, '/v/'),
    right.replace('/w:50', 'x/w:50'),
  ]) {
    expect(codeOf(await service.get(wrong))).toBe('403 bad_signature')
  }
  for (const options of ['w:1', 'h:180,w:320', 'w:320,fit:cover', 'nonsense']) {
    const answer = await service.get(signed(NEW, options, `${id}.jpg`))
    expect([codeOf(answer), answer.body.error.param]).toEqual(['422 invalid_field', 'options'])
  }
  expect(codeOf(await service.get(signed(NEW, 'w:50', 'aB3dE9xK.jpg')))).toBe('404 not_found')
  await service.close()
})

test('the command line signs with the first key, and refuses options that no variant has', async () => {
  const settings = { ...settingsOf('postgres://localhost/none', tmpdir()), MEDIA_VARIANT_KEY: `${NEW},${OLD}` }
  const [options, file] = ['w:320,h:180,fit:cover', 'aB3dE9xK.webp']
  const { code, stdout } = await mediaHere(['variants', 'sign', options, file], settings)
  expect([code, stdout.trim()]).toEqual([0, FILES_BASE_URL + signed(NEW, options, file)])
  expect((await mediaHere(['variants', 'sign', 'w:1', file], settings)).code).toBe(64)
  expect((await mediaHere(['variants', 'sign', options, file], { ...settings, MEDIA_VARIANT_KEY: '' })).code).toBe(1)
})

test('a CDN or nginx sends variants as it sends files, where one is set up', async () => {
  const service = await startTestService({ MEDIA_FILES_REDIRECT_URL: 'https://cdn.example/clips' })
  const id = idIn(await service.ready(await wideClip()))
  const redirected = await service.get(`/f/${id}/w160.jpg`)
  expect([redirected.status, redirected.headers.get('location')]).toEqual([
    302,
    expect.stringMatching(/^https:\/\/cdn\.example\/clips\/[0-9a-f]{2}\/[0-9a-f]{2}\/[0-9a-f]{64}\.jpg$/),
  ])
  const download = await service.get(`/f/${id}/w160.jpg?download=1`)
  expect(download.status).toBe(200)
  await service.close()

  const behind = await startTestService({ MEDIA_ACCEL_PREFIX: '/blobs' })
  const other = idIn(await behind.ready(await wideClip()))
  const { status, headers, bytes } = await behind.get(`/f/${other}/w160.webp`)
  expect([status, headers.get('content-type'), bytes.length]).toEqual([200, 'image/webp', 0])
  expect(headers.get('x-accel-redirect')).toMatch(/^\/blobs\/.*\.webp$/)
  await behind.close()
})

test('without a key there are no signed addresses', async ({ service }) => {
  const id = idIn(await service.ready(await clip('plain.mp4')))
  for (const key of ['', NEW]) expect(codeOf(await service.get(signed(key, 'w:50', `${id}.jpg`)))).toBe('404 not_found')
})

test('a clip has 24 frames and 40 signed variants; neither takes the place of a size, and those that are made stay', async () => {
  const service = await startTestService({ MEDIA_VARIANT_KEY: NEW })
  const id = idIn(await service.ready(await wideClip()))
  const fill = (names: string[]) =>
    service.deps.pool.query(
      `insert into variants (source_id, name, state, extension, claimed_at, used_at)
        select id, name, 'original', 'jpg', $1, $1 from sources, unnest($2::text[]) name`,
      [service.clock.now(), names],
    )
  const frame = (seconds: number) => service.get(`/f/${id}/t${seconds}.jpg`)
  const one = (width: number) => service.get(signed(NEW, `w:${width}`, `${id}.jpg`))
  await fill(Array.from({ length: 22 }, (_, n) => `t${100 + n}.jpg`))
  const statuses = (await Promise.all([0, 0.5, 1].map(frame))).map(({ status }) => status)
  expect(statuses.toSorted()).toEqual([200, 200, 429])
  const refused = await frame([0, 0.5, 1][statuses.indexOf(429)] as number)
  expect(codeOf(refused)).toBe('429 too_many_variants')
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  await fill(Array.from({ length: 39 }, (_, n) => `w${100 + n}.jpg`))
  expect((await Promise.all([21, 22].map(one))).map(({ status }) => status).toSorted()).toEqual([200, 429])
  expect(codeOf(await service.get(signed(NEW, 'w:30', `${id}.gif`)))).toBe('429 too_many_variants')
  expect((await service.get(`/f/${id}/w160.jpg`)).status).toBe(200)
  expect((await Promise.all([0, 0.5, 1].map(frame))).filter(({ status }) => status === 200)).toHaveLength(2)
  await service.close()
})

test('bytes of variants count to the quota of the clip, until they are deleted unused after 30 days', async () => {
  const service = await startTestService()
  const { clock, deps } = service
  const id = idIn(await service.ready(await wideClip()))
  const before = await quota(service)
  const sizes = await Promise.all(
    ['w160.jpg', 'w320.webp', 'w240.gif'].map(async (name) => (await made(service, `/f/${id}/${name}`)).bytes.length),
  )
  expect(await quota(service)).toBe(before + sizes.reduce((sum, bytes) => sum + bytes, 0))
  clock.advance({ seconds: 29 * 86_400 })
  await service.get(`/f/${id}/w160.jpg`)
  clock.advance({ seconds: 2 * 86_400 })
  await cleanUp(deps)
  expect(await rowsOf(service, id)).toEqual([{ name: 'w160.jpg', state: 'stored', bytes: sizes[0] }])
  expect(await quota(service)).toBe(before + (sizes[0] ?? 0))
  clock.advance({ seconds: 601 })
  await cleanUp(deps)
  expect((await service.listFiles()).filter((path) => /\.webp$/.test(path))).toEqual([])
  expect((await service.get(`/f/${id}/w320.webp`)).bytes.length).toBe(sizes[1])
  await service.close()
})

test('the use of a variant is written once a day', async ({ service }) => {
  const id = idIn(await service.ready(await wideClip()))
  const usedAt = async () => {
    expect((await service.get(`/f/${id}/w160.jpg`)).status).toBe(200)
    const { rows } = await service.deps.pool.query(
      `select used_at from variants join clips using (source_id) where id = $1 and name = 'w160.jpg'`,
      [id],
    )
    return rows[0].used_at.getTime()
  }
  const first = await usedAt()
  service.clock.advance({ seconds: 86_399 })
  expect(await usedAt()).toBe(first)
  service.clock.advance({ seconds: 2 })
  expect(await usedAt()).toBe(first + 86_401_000)
})

test('a token without storage left gets no new variants, and keeps those that it has', async () => {
  const service = await startTestService()
  const path = await wideClip()
  const { token, id: tokenId } = await service.newToken()
  const id = idIn(await service.ready(path, [], { token }))
  expect((await service.get(`/f/${id}/w160.jpg`)).status).toBe(200)
  await service.deps.pool.query(`update api_tokens set limits = '{"quota_bytes": 1000}' where id = $1`, [tokenId])
  for (const name of ['w320.jpg', 'w240.gif']) {
    const answer = await service.get(`/f/${id}/${name}`)
    expect([codeOf(answer), answer.body.error.details]).toEqual(['507 quota_exceeded', undefined])
  }
  expect((await service.get(`/f/${id}/w160.jpg`)).status).toBe(200)
  await service.close()
})

test('one address can have a limited number of variants made; made ones are not counted', async () => {
  const header = { 'x-real-ip': '203.0.113.7' }
  const settings = { MEDIA_RATE_LIMIT_HEADER: 'x-real-ip', MEDIA_RATE_LIMIT_VARIANTS: '2/1h' }
  const service = await startTestService(settings)
  const id = idIn(await service.ready(await wideClip()))
  for (let n = 0; n < 5; n++) expect((await service.get(`/f/${id}/w160.jpg`, header)).status).toBe(200)
  expect((await service.get(`/f/${id}/w240.gif`, header)).status).toBe(202)
  for (const name of ['w320.jpg', 'w320.gif']) {
    const refused = await service.get(`/f/${id}/${name}`, header)
    expect(codeOf(refused)).toBe('429 rate_limited')
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  }
  expect((await service.get(`/f/${id}/w160.jpg`, header)).status).toBe(200)
  expect((await service.get(`/f/${id}/w320.jpg`, { 'x-real-ip': '203.0.113.8' })).status).toBe(200)
  await service.close()
})

test('clips of the same bytes share their variants; the last deletion removes them', async () => {
  const service = await startTestService()
  const { clock, deps } = service
  const path = await wideClip()
  const [first, second] = [idIn(await service.ready(path)), idIn(await service.ready(path))] as [string, string]
  const etag = async (id: string, name: string) => (await made(service, `/f/${id}/${name}`)).headers.get('etag')
  for (const name of ['w160.jpg', 'w240.gif']) expect(await etag(first, name)).toBe(await etag(second, name))
  expect(await rowsOf(service, first)).toHaveLength(2)
  expect((await deps.pool.query('select from variants')).rows).toHaveLength(2)

  const remove = (id: string) => service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })
  await remove(first)
  for (const name of ['w160.jpg', 'w240.gif', 'w320.jpg', 'w960.webp', 'max2m.gif']) {
    expect(codeOf(await service.get(`/f/${first}/${name}`))).toBe('410 gone')
  }
  expect((await service.get(`/f/${second}/w160.jpg`)).status).toBe(200)
  await remove(second)
  expect(codeOf(await service.get(`/f/${second}/w160.jpg`))).toBe('410 gone')
  for (let n = 0; n < 3; n++) {
    clock.advance({ seconds: 601 })
    await cleanUp(deps)
  }
  expect((await service.traces()).files).toEqual([])
  expect((await deps.pool.query('select from variants')).rows).toEqual([])
  expect(await quota(service)).toBe(0)
  await service.close()
})
