// Captions through the API. The pixels: make/transcode/captions.slow.test.ts; lines and characters:
// core/captions/caption.test.ts.
import { readFile } from 'node:fs/promises'
import sharp from 'sharp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clip, unboxedTools } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { type FormFields, idIn, startTestService, type TestService } from './service.ts'
import { tusOf } from './tus.ts'
import { bytes, startFarSide } from './upstreams/far-side.ts'

const withoutWorkers = { MEDIA_WORKERS_ENABLED: 'false', MEDIA_SYNC_WAIT: '0' }
let service: TestService
/** Accepts and never makes: no test waits for a worker. */
let accepting: TestService
beforeAll(async () => {
  service = await startTestService()
  accepting = await startTestService(withoutWorkers)
})
afterAll(() => Promise.all([service.close(), accepting.close()]))

const send = async (fields: Record<string, string>, at = accepting, file?: string | Uint8Array) =>
  at.upload(file ?? (await clip('small.mp4')), Object.entries(fields) as FormFields)

const editOf = async (id: string, { get, token }: TestService = accepting) =>
  (await get(`/media/${id}`, { token })).body.success.edit

test('a caption is drawn into the clip and shown among its edits', async () => {
  const white = gif(48, 40, [{ delay: 50 }, { delay: 50 }])
  const answer = await send({ caption: ' Hi ', caption_position: 'TOP' }, service, white)
  expect(answer.status).toBe(201)
  expect(await editOf(idIn(answer), service)).toEqual({ caption: 'Hi', caption_position: 'top' })
  const { bytes: jpg } = await service.get(`/f/${idIn(answer)}.jpg`)
  const darkest = async (top: number) => {
    const half = sharp(jpg).extract({ left: 0, top, width: 48, height: 20 }).grayscale().raw()
    return Math.min(...(await half.toBuffer()))
  }
  expect(await darkest(0)).toBeLessThan(60)
  expect(await darkest(20)).toBeGreaterThan(200)
})

test('the same words share a source, others and another place do not, and a position alone is no edit', async () => {
  const sources = async () => (await accepting.countRows()).sources
  expect(await editOf(idIn(await send({ caption_position: 'top', caption: ' ' })))).toBeUndefined()
  const before = await sources()
  const first = await send({ caption: 'Hi' })
  expect(await editOf(idIn(first))).toEqual({ caption: 'Hi', caption_position: 'bottom' })
  await send({ caption: '  Hi ', caption_position: 'bottom' })
  expect(await sources()).toBe(before + 1)
  await send({ caption: 'Ho' })
  await send({ caption: 'Hi', caption_position: 'top' })
  await send({ caption: 'Hi', mute: 'true', speed: '2' })
  expect(await sources()).toBe(before + 4)
})

test.each([
  [{ caption: 'two\nlines' }, 'invalid_field', 'caption'],
  [{ caption: 'x'.repeat(121) }, 'invalid_field', 'caption'],
  [{ caption: 'x'.repeat(60_000) }, 'invalid_field', 'caption'],
  [{ caption: 'party 🎉' }, 'invalid_field', 'caption'],
  [{ caption: '漢字' }, 'invalid_field', 'caption'],
  [{ caption: 'Hi', caption_position: 'left' }, 'invalid_field', 'caption_position'],
  [{ caption: 'more words than a picture of 64 pixels can hold' }, 'edit_out_of_range', 'caption'],
  [{ caption: 'W'.repeat(120) }, 'edit_out_of_range', 'caption'],
])('%o is refused, and nothing stays', async (fields, code, param) => {
  const before = await accepting.traces()
  const { status, body } = await send(fields as Record<string, string>)
  expect([status, body.error.code, body.error.param]).toEqual([422, code, param])
  expect(await accepting.traces()).toEqual(before)
})

test('imports and resumable uploads take captions', async () => {
  const file = await readFile(await clip('small.mp4'))
  const farSide = await startFarSide([])
  farSide.answers({ 'https://small.mp4': bytes(file) })
  const source = `${farSide.base}/small.mp4`
  const described = { caption: 'Été «ж»', caption_position: 'top' }
  const imported = await accepting.importFrom({ source, caption: 'E\u0301te\u0301 «ж»', caption_position: 'top' })
  expect(await editOf(idIn(imported))).toEqual(described)
  const refusals = await Promise.all(
    [{ caption: 'a\u0007b' }, { caption_position: 'middle' }, { caption: '🎉' }].map((edit) =>
      accepting.importFrom({ source, ...edit }),
    ),
  )
  expect(refusals.map(({ body }) => body.error.code)).toEqual(Array(3).fill('invalid_field'))
  expect((await accepting.importFrom({ source, caption: 7 })).status).toBe(422)
  farSide.close()

  const { begin, send: sendPiece } = tusOf(accepting)
  const caption = Buffer.from(described.caption).toString('base64')
  const metadata = `caption ${caption},caption_position ${btoa('top')}`
  const path = await begin(file.length, { 'upload-metadata': metadata })
  const id = (await sendPiece(path, 0, file)).headers.get('x-media-id') as string
  expect(await editOf(id)).toEqual(described)
})

test('an ffmpeg that cannot draw refuses captions and nothing else', async () => {
  const tools = { ...unboxedTools, ffmpeg: { ...unboxedTools.ffmpeg, canDrawText: false } }
  const poor = await startTestService(withoutWorkers, { tools })
  const { status, body } = await send({ caption: 'Hi' }, poor)
  expect([status, body.error.code, body.error.param]).toEqual([422, 'edit_not_supported', 'caption'])
  expect((await send({ caption_position: 'top' }, poor)).status).toBe(201)
  await poor.close()
})
