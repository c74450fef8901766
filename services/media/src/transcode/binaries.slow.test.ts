import { expect, test } from 'vitest'
import { tools } from '../../test/clips.ts'

test.skipIf(tools.ffmpeg.origin !== 'system')(
  'a system ffmpeg of 5 or later comes first, with the ffprobe beside it',
  () => {
    expect(tools.ffprobe).toMatchObject({ origin: 'system', version: tools.ffmpeg.version })
  },
)
