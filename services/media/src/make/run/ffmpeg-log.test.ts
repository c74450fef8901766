// The parser on the log of one run, as the build of 2018 writes it. Whole transcodes of such files:
// ffmpeg-log.slow.test.ts.
import { describe, expect, test } from 'vitest'
import { FfmpegLog } from './ffmpeg-log.ts'

/** ffmpeg writes further lines of a title below the first, without a level. */
const titleLines = (title: string) =>
  title.split('\n').map((line, n) => (n === 0 ? `[info]     title           : ${line}` : `${' '.repeat(20)}: ${line}`))

const recorded = (title: string, peak = '-18.1', further: string[] = []) => [
  '[h264 @ 0x313cf840] [verbose] Reinit context to 320x240, pix_fmt: yuv420p',
  "[info] Input #0, mov,mp4,m4a,3gp,3g2,mj2, from 'in.bin':",
  '[info]   Metadata:',
  ...titleLines(title),
  '[info]   Duration: 00:00:02.02, start: 0.000000, bitrate: 204 kb/s',
  '[info] Stream mapping:',
  '[info]   Stream #0:0 -> #0:0 (h264 (native) -> wrapped_avframe (native))',
  '[info]   Stream #0:1 -> #1:0 (aac (native) -> pcm_s16le (native))',
  "[info] Output #1, null, to 'y':",
  '[info]   Metadata:',
  '[graph 0 input from stream 0:0 @ 0x315b58c0] [verbose] w:320 h:240 pixfmt:yuv420p tb:1/12800 fr:25/1 sar:1/1',
  ...further,
  '[info] frame=   50 fps=0.0 q=-0.0 Lsize=N/A time=00:00:02.02 bitrate=N/A speed= 119x    ',
  '[verbose] Input file #0 (in.bin):',
  '[verbose]   Input stream #0:0 (video): 50 packets read (30128 bytes); 50 frames decoded; ',
  '[verbose]   Input stream #0:1 (audio): 88 packets read (18558 bytes); 87 frames decoded (89088 samples); ',
  '[Parsed_volumedetect_0 @ 0x3151a980] [info] mean_volume: -21.1 dB',
  `[Parsed_volumedetect_0 @ 0x3151a980] [info] max_volume: ${peak} dB`,
]

function read(lines: string[]): FfmpegLog {
  const log = new FfmpegLog()
  for (const line of lines) log.add(line)
  return log
}

describe('text in a file is no message of ffmpeg:', () => {
  test.each([
    ['an error', '[error] it is broken'],
    ['a full disk', 'x\nav_interleaved_write_frame(): No space left on device'],
    ['a missing right', 'Permission denied'],
    ['more than the end of a log, which is kept', `${'long '.repeat(2000)}\n${'long '.repeat(2000)}`],
    ['silence', '[Parsed_volumedetect_0 @ 0x55] [info] max_volume: -91.0 dB'],
    ['a number of frames', '[verbose]   Input stream #0:0 (video): 7 packets read (7 bytes); 7 frames decoded; '],
  ])('%s', (_, title) => {
    const log = read(recorded(title))
    expect(log).toMatchObject({ complaint: undefined, reasons: '', isAudible: true })
    expect(log.framesOf(0)).toBe(50)
    expect([...log.pictures]).toEqual(['320x240 yuv420p'])
  })
})

test('an error behind the streams is a complaint, and a reason', () => {
  const line = '[h264 @ 0x31461cc0] [error] error while decoding MB 3 7, bytestream -5'
  expect(read(recorded('x', '-18.1', [line]))).toMatchObject({ complaint: line, reasons: `${line}\n` })
})

test('a frame of another size or kind is a change', () => {
  const line =
    '[graph 0 input from stream 0:0 @ 0x315b58c0] [info] Changing frame properties on the fly is not supported'
  expect([...read(recorded('x', '-18.1', [line])).pictures]).toEqual(['320x240 yuv420p', 'another'])
})

test('the loudest of several sounds decides whether there is one to hear', () => {
  expect(read(recorded('x', '-91.0')).isAudible).toBe(false)
  const louder = '[Parsed_volumedetect_0 @ 0x3151a980] [info] max_volume: -6.0 dB'
  expect(read(recorded('x', '-91.0', [louder])).isAudible).toBe(true)
  expect(new FfmpegLog().isAudible).toBe(false)
})
