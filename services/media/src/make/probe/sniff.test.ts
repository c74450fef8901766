import { expect, test } from 'vitest'
import { clip, written } from '../../../test/clips.ts'
import { gif } from '../../../test/gif-bytes.ts'
import { USUAL_TYPES } from '../../db/source-types.ts'
import { sniffBytes, sniffFile } from './sniff.ts'

const hls = '#EXTM3U\n#EXTINF:1,\ncanary.mp4\n'
const svg = '<svg xmlns="http://www.w3.org/2000/svg"/>'

test.each(['plain.mp4', 'piped.webm', 'plain.gif'] as const)('%s is detected by its bytes', async (name) => {
  expect(await sniffFile(await clip(name), USUAL_TYPES)).toBe(name.split('.')[1])
})

test.each([
  ['nothing at all', ''],
  ['text', 'hello'],
  ['a playlist', hls],
  ['a concat script', 'ffconcat version 1.0\nfile canary.mp4\n'],
  ['a DASH manifest', '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"/>'],
  ['SVG', svg],
  ['a PNG', Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')],
  ['a damaged EBML header', Buffer.from('1a45dfa3ffffffff', 'hex')],
])('%s is refused, whatever its name says', async (what, bytes) => {
  const path = await written(`${what.replaceAll(' ', '-')}.mp4`, bytes)
  await expect(sniffFile(path, USUAL_TYPES)).rejects.toMatchObject({ code: 'unsupported_media_type', status: 415 })
})

test.each(['plain.mkv', 'plain.mov'] as const)('%s is refused, though its demuxer is one of ours', async (name) => {
  await expect(sniffFile(await clip(name), USUAL_TYPES)).rejects.toMatchObject({ code: 'unsupported_media_type' })
})

test('only the beginning is needed', async () => {
  expect(await sniffBytes(gif(1, 1, [{ delay: 0 }]).subarray(0, 6), USUAL_TYPES)).toBe('gif')
})
