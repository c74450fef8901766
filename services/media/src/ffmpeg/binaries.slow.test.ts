import { expect, test } from 'vitest'
import { tools } from '../../test/clips.ts'

test('a system ffmpeg of 5 or later comes first, with the ffprobe beside it', { tags: 'ffmpeg' }, () => {
  expect(tools.ffprobe).toMatchObject({ origin: 'system', version: tools.ffmpeg.version })
})
