import { describe, expect, test } from 'vitest'
import type { Ffmpeg } from '../../ffmpeg/binaries.ts'
import type { RenditionPlan } from '../plan/rendition-plan.ts'
import {
  av1Command,
  clearPosterCommand,
  overviewCommand,
  posterCommand,
  type RenditionsOfRun,
  renditionsCommand,
  smallerGifCommand,
  transparencyCommand,
} from './ffmpeg-command.ts'
import { workFiles } from './work-files.ts'

const ffmpeg: Ffmpeg = {
  ...{ path: '/usr/bin/ffmpeg', version: '5.1', origin: 'system', isOld: false, frameRateModeFlag: '-fps_mode' },
  ...{
    webmVideoEncoder: 'libvpx-vp9',
    webmAudioEncoder: 'libopus',
    canToneMap: true,
    canDrawText: true,
    animatesWebp: true,
    av1Encoder: null,
    deinterlacer: 'bwdif',
  },
}

const sdr: RenditionPlan = {
  ...{
    file: 'input',
    shownPart: null,
    demuxer: 'mov',
    moreDecoders: [],
    decoder: null,
    videoStream: 0,
    audioStream: 1,
    video: { width: 640, height: 360 },
  },
  ...{
    flattenOnWhite: false,
    keepsAlpha: false,
    deinterlacer: null,
    color: 'as-is',
    frameRate: null,
    isStill: false,
    startSeconds: 0,
    cutsStart: false,
    holdsLastFrame: false,
    cutSeconds: 5.001,
    durationSeconds: 5,
  },
  ...{
    cut: null,
    caption: null,
    posterSeconds: null,
    h264Crf: 23,
    webmCrf: 32,
    webmBitRate: 3_456_000,
    overview: 'keyframes',
  },
  gif: { from: 'frames', size: { width: 480, height: 270 }, delayCentiseconds: 6, loopCount: 0 },
  ...{ copies: null, encodesInTurn: false, mostThreads: 8, looksAheadApart: true },
}
const bt709: RenditionPlan = { ...sdr, color: 'bt709' }
const hdr: RenditionPlan = { ...sdr, color: 'hlg' }
const alpha: RenditionPlan = { ...sdr, demuxer: 'matroska', decoder: 'libvpx-vp9', flattenOnWhite: true, color: 'rgb' }
const gif: RenditionPlan = {
  ...{ ...sdr, demuxer: 'gif', audioStream: null, flattenOnWhite: true, color: 'rgb', gif: { from: 'rewrite' } },
  ...{
    frameRate: { rate: '100/5', dropsFrames: false },
    holdsLastFrame: true,
    cutSeconds: 1.45,
    durationSeconds: 1.45,
  },
}
const still: RenditionPlan = {
  ...gif,
  frameRate: { rate: '100/10', dropsFrames: false },
  cutSeconds: 1,
  durationSeconds: 1,
}
const late: RenditionPlan = { ...sdr, startSeconds: 0.8 }
const interlaced: RenditionPlan = { ...sdr, deinterlacer: 'bwdif' }
const clear: RenditionPlan = { ...alpha, keepsAlpha: true }
const fast: RenditionPlan = { ...sdr, frameRate: { rate: '30', dropsFrames: true } }

const videos: RenditionsOfRun['videos'] = ['mp4', 'webm']

const tag = 'setparams=color_primaries=bt709:color_trc=bt709:colorspace=bt709'
const white =
  'format=rgba,split[picture][copy];[copy]lutrgb=r=255:g=255:b=255:a=255[white];[white][picture]overlay=format=auto'
const toBt709 = `scale=out_color_matrix=bt709:out_range=tv,format=yuv420p,${tag}`

/** The chain every output starts from, for each kind of input. */
test.each([
  ['sdr', sdr, '[0:0]sidedata=mode=delete,scale=640:360:flags=bicubic:out_range=tv,format=yuv420p,setsar=1'],
  ['bt709', bt709, `[0:0]sidedata=mode=delete,${tag},scale=640:360:flags=bicubic:out_range=tv,format=yuv420p,setsar=1`],
  [
    'hdr',
    hdr,
    '[0:0]sidedata=mode=delete,scale=640:360:flags=bicubic,setparams=color_primaries=bt2020:color_trc=arib-std-b67:colorspace=bt2020nc,zscale=tin=arib-std-b67:min=bt2020nc:pin=bt2020:rin=tv:t=linear:npl=203:p=bt709,' +
      'format=gbrpf32le,tonemap=tonemap=mobius:param=0.6:peak=4.926:desat=0,zscale=t=iec61966-2-1:m=bt709:r=tv,' +
      `format=yuv420p,${tag},setsar=1`,
  ],
  ['alpha', alpha, `[0:0]sidedata=mode=delete,scale=640:360:flags=bicubic,${white},${toBt709},setsar=1`],
  [
    'gif',
    gif,
    `[0:0]sidedata=mode=delete,scale=640:360:flags=bicubic,${white},${toBt709},setsar=1,tpad=stop_mode=clone:stop=-1,fps=100/5:start_time=0,trim=end=1.450`,
  ],
  [
    'interlaced',
    interlaced,
    '[0:0]sidedata=mode=delete,bwdif=mode=send_frame:deint=interlaced,scale=640:360:flags=bicubic:out_range=tv,format=yuv420p,setsar=1',
  ],
  [
    'late',
    late,
    '[0:0]sidedata=mode=delete,scale=640:360:flags=bicubic:out_range=tv,format=yuv420p,setsar=1,setpts=PTS-0.800000/TB',
  ],
  ['fast', fast, '[0:0]sidedata=mode=delete,fps=30,scale=640:360:flags=bicubic:out_range=tv,format=yuv420p,setsar=1'],
  [
    'a cover first',
    { ...sdr, videoStream: 2 },
    '[0:2]sidedata=mode=delete,scale=640:360:flags=bicubic:out_range=tv,format=yuv420p,setsar=1',
  ],
])('pixels and times of %s', (_, plan, chain) => {
  const command = renditionsCommand(ffmpeg, plan, { threads: 1, videos, gif: 'none', poster: false, volume: false })
  expect(value(command, '-filter_complex')).toBe(`${chain},split=2[mp4][webm]`)
})

test('a caption is drawn once for all files, line by line, and its text is in no command', () => {
  const caption: RenditionPlan['caption'] = {
    lines: ["':fontfile=/etc/passwd", '%{pts}'],
    fontSize: 30,
    position: 'bottom',
  }
  const plan: RenditionPlan = { ...gif, caption, gif: sdr.gif }
  const line = (at: number, y: number) =>
    `drawtext=fontfile=caption.ttf:textfile=caption-${at}.txt:expansion=none:fontsize=30:fontcolor=white:borderw=3:bordercolor=black:x=(w-text_w)/2:y=${y}-max_glyph_a`
  const run = { threads: 1, videos, gif: 'frames', poster: true, volume: false } as const
  for (const kind of [plan, { ...plan, keepsAlpha: true }]) {
    const command = renditionsCommand(ffmpeg, kind, run)
    expect(value(command, '-filter_complex')?.split(`setsar=1,${line(0, 302)},${line(1, 338)},`)).toHaveLength(2)
    expect(value(command, '-filter_complex')?.split('drawtext')).toHaveLength(3)
    expect(command.join(' ')).not.toMatch(/passwd|pts}/)
  }
  const poster = posterCommand({ ...plan, caption: { ...caption, position: 'top' } }, 1)
  expect(value(poster, '-filter_complex')).toContain(`${line(0, 43)},${line(1, 79)}`)
})

describe('the one command', () => {
  test('makes mp4, webm and the frames of the gif from one decode', () => {
    const command = renditionsCommand(ffmpeg, bt709, {
      threads: 2,
      videos,
      gif: 'frames',
      poster: false,
      volume: false,
    })
    expect(value(command, '-filter_complex')?.split(';').slice(1)).toEqual([
      '[frames]fps=100/6,scale=480:270:flags=lanczos,format=rgb24[gif]',
    ])
    expect(inputs(command)).toEqual([workFiles.input])
    expect(outputs(command)).toEqual([workFiles.mp4, workFiles.webm, FRAMES])
    expect(section(command, FRAMES)).toEqual([
      ...['-map', '[gif]', '-fps_mode', 'vfr', '-map_metadata', '-1', '-t', '5.001', '-c:v', 'rawvideo'],
      ...['-f', 'fifo', '-fifo_format', 'rawvideo', '-queue_size', '8', FRAMES],
    ])
    expect(section(command, workFiles.mp4)).toEqual([
      ...['-map', '[mp4]', '-map', '0:1', '-fps_mode', 'vfr', '-c:v', 'libx264', '-preset', 'veryfast', '-crf', '23'],
      ...['-maxrate', '6M', '-bufsize', '12M', '-profile:v', 'high', '-g', '60', '-threads', '2'],
      ...['-colorspace', 'bt709', '-color_primaries', 'bt709', '-color_trc', 'bt709', '-color_range', 'tv'],
      ...['-c:a', 'aac', '-b:a', '128k', '-ac', '2', '-ar', '48000'],
      ...['-movflags', '+faststart'],
      ...['-sn', '-dn', '-map_metadata', '-1', '-map_chapters', '-1', '-fflags', '+bitexact'],
      ...['-flags:v', '+bitexact', '-flags:a', '+bitexact', '-max_muxing_queue_size', '4096'],
      ...['-t', '5.001', '-f', 'mp4', workFiles.mp4],
    ])
    expect(section(command, workFiles.webm)).toContain('libvpx-vp9')
  })

  test('saves the memory of the thread that looks ahead where the picture is large', () => {
    const command = (looksAheadApart: boolean) =>
      renditionsCommand(
        ffmpeg,
        { ...sdr, looksAheadApart },
        { threads: 2, videos: ['mp4'], gif: 'none', poster: false, volume: false },
      )
    expect(value(command(false), '-x264-params')).toBe('sync-lookahead=0')
    expect(command(true)).not.toContain('-x264-params')
  })

  test.each(['mp4', 'webm'] as const)('copies the streams of an %s that fits, without data of others', (file) => {
    const plan = { ...sdr, copies: file }
    const command = renditionsCommand(ffmpeg, plan, { threads: 2, videos, gif: 'frames', poster: false, volume: false })
    const sequences = file === 'mp4' ? [workFiles.sequences] : []
    expect(outputs(command).toSorted()).toEqual([workFiles.mp4, ...sequences, workFiles.webm, FRAMES].toSorted())
    expect(section(command, workFiles[file])).toEqual([
      ...['-map', '0:0', '-map', '0:1', '-c', 'copy'],
      ...(file === 'mp4' ? ['-bsf:v', 'filter_units=remove_types=6', '-movflags', '+faststart'] : []),
      ...['-sn', '-dn', '-map_metadata', '-1', '-map_chapters', '-1', '-fflags', '+bitexact'],
      ...['-flags:v', '+bitexact', '-flags:a', '+bitexact', '-max_muxing_queue_size', '4096'],
      ...['-t', '5.001', '-f', file, workFiles[file]],
    ])
    expect(value(command, '-filter_complex')).not.toContain(`[${file}]`)
  })

  test('keeps transparency in the frames of the gif', () => {
    const command = renditionsCommand(ffmpeg, clear, {
      threads: 2,
      videos,
      gif: 'frames',
      poster: false,
      volume: false,
    })
    expect(value(command, '-filter_complex')).toMatch(/;\[frames\]fps=[^;]*:flags=lanczos,format=rgba\[gif\]$/)
  })

  test('makes a gif of a palette in a file', () => {
    const command = renditionsCommand(ffmpeg, bt709, {
      threads: 2,
      videos,
      gif: 'palette-file',
      poster: false,
      volume: false,
    })
    expect(value(command, '-filter_complex')?.split(';').slice(1)).toEqual([
      '[frames]fps=100/6,scale=480:270:flags=lanczos,hqdn3d=1:1:6:6[small]',
      '[small][1:v]paletteuse=dither=bayer:bayer_scale=5:diff_mode=rectangle[gif]',
    ])
    expect(inputs(command)).toEqual([workFiles.input, workFiles.palette])
    expect(outputs(command)).toEqual([workFiles.mp4, workFiles.webm, workFiles.gif])
  })

  test.each([
    ['opaque', bt709],
    ['transparent', clear],
  ])('makes the webm of a large %s clip in a run of its own', (_, plan) => {
    const command = renditionsCommand(ffmpeg, plan, {
      threads: 1,
      videos: ['webm'],
      gif: 'none',
      poster: false,
      volume: false,
    })
    expect(outputs(command)).toEqual([workFiles.webm])
    expect(command).not.toContain('libx264')
    expect(value(command, '-filter_complex')).not.toMatch(/\[(mp4|opaque)\]/)
  })

  test('of a gif keeps the gif and picks the poster by itself; a still is its own poster', () => {
    const command = renditionsCommand(ffmpeg, gif, { threads: 1, videos, gif: 'none', poster: true, volume: false })
    expect(outputs(command)).toEqual([workFiles.mp4, workFiles.webm, workFiles.poster])
    expect(value(command, '-filter_complex')).toMatch(
      /;\[still\]fps=5\.5172,thumbnail=8,scale=640:360,format=rgb24\[poster\]$/,
    )
    expect(command).not.toContain('-c:a')
    const ofStill = renditionsCommand(ffmpeg, still, { threads: 1, videos, gif: 'none', poster: true, volume: false })
    expect(value(ofStill, '-filter_complex')).toMatch(/;\[still\]scale=640:360,format=rgb24\[poster\]$/)
  })

  test('in the simple way needs no second file and no denoiser', () => {
    const command = renditionsCommand(ffmpeg, sdr, {
      threads: 1,
      videos,
      gif: 'palette-inside',
      poster: true,
      volume: false,
    })
    expect(inputs(command)).toEqual([workFiles.input])
    expect(outputs(command)).toEqual([workFiles.mp4, workFiles.webm, workFiles.gif, workFiles.poster])
    expect(command.join(' ')).not.toContain('hqdn3d')
  })

  test('uses the options of its build', () => {
    const old = {
      ...ffmpeg,
      frameRateModeFlag: '-vsync',
      webmVideoEncoder: 'libvpx',
      webmAudioEncoder: 'libvorbis',
    } as const
    const command = renditionsCommand(old, sdr, { threads: 1, videos, gif: 'none', poster: false, volume: false })
    expect(command).not.toContain('-fps_mode')
    expect(section(command, workFiles.webm)).toEqual(expect.arrayContaining(['-vsync', 'libvpx', 'libvorbis', '2500k']))
  })
})

describe('the overview', () => {
  test('decodes keyframes only and listens', () => {
    const command = overviewCommand(sdr, { threads: 2, palette: false })
    expect(value(command, '-skip_frame:v')).toBe('nokey')
    expect(value(command, '-af')).toBe('volumedetect')
    expect(value(command, '-loglevel')).toBe('level+info')
    expect(outputs(command)).toEqual([workFiles.poster, '-'])
    const withPalette = overviewCommand(sdr, { threads: 2, palette: true })
    expect(outputs(withPalette)).toEqual([workFiles.palette, workFiles.poster, '-'])
  })

  test('samples where keyframes are not enough, and measures no sound where there is none', () => {
    const command = overviewCommand({ ...sdr, overview: 'sampled', audioStream: null }, { threads: 2, palette: false })
    expect(command).not.toContain('-skip_frame:v')
    expect(command).not.toContain('-af')
    expect(value(command, '-filter_complex')).toMatch(/^\[0:0\]fps=2:round=up,scale=640:360/)
  })
})

describe('pictures before the first keyframe', () => {
  const lost = { startSeconds: 1.5, cutsStart: true }
  const run = { threads: 1, videos, gif: 'frames', poster: true, volume: false } as const
  test.each([
    ['the overview', overviewCommand({ ...sdr, ...lost, overview: 'sampled' }, { threads: 1, palette: true })],
    ['the files', renditionsCommand(ffmpeg, { ...sdr, ...lost }, run)],
    ['the files of regular frames', renditionsCommand(ffmpeg, { ...fast, ...lost }, run)],
    ['the files of one picture', renditionsCommand(ffmpeg, { ...still, isStill: true, ...lost }, run)],
    ['the files with transparency', renditionsCommand(ffmpeg, { ...clear, ...lost, file: 'input' }, run)],
  ])('are in no frame of %s', (_, command) => {
    const graph = value(command, '-filter_complex') ?? ''
    expect(graph).toMatch(/^\[0:0\](sidedata=mode=delete,)?trim=start=1\.499500,/)
    expect(graph.match(/trim=start/g)).toHaveLength(1)
  })
})

/** The rules of contract/media.md 4.7, for every command there is. */
describe.each(Object.entries({ sdr, bt709, hdr, alpha, clear, interlaced, gif, still, fast }))(
  'safety of every command for %s',
  (_, plan) => {
    test.each([
      ['overview', overviewCommand(plan, { threads: 1, palette: true })],
      ['usual', renditionsCommand(ffmpeg, plan, { threads: 1, videos, gif: 'frames', poster: true, volume: false })],
      [
        'copy',
        renditionsCommand(
          ffmpeg,
          { ...plan, copies: 'mp4' },
          { threads: 1, videos, gif: 'frames', poster: true, volume: false },
        ),
      ],
      [
        'palette',
        renditionsCommand(ffmpeg, plan, { threads: 1, videos, gif: 'palette-file', poster: true, volume: false }),
      ],
      [
        'webm',
        renditionsCommand(ffmpeg, plan, { threads: 1, videos: ['webm'], gif: 'none', poster: false, volume: false }),
      ],
      [
        'plain',
        renditionsCommand(ffmpeg, plan, { threads: 1, videos, gif: 'palette-inside', poster: true, volume: false }),
      ],
      ['poster', posterCommand(plan, 1)],
      ['smaller gif', smallerGifCommand(ffmpeg, plan, { threads: 1, gif: 'frames' })],
      ['smaller gif of a palette', smallerGifCommand(ffmpeg, plan, { threads: 1, gif: 'palette-file' })],
      ['AV1', av1Command(ffmpeg)],
      ['transparency', transparencyCommand(plan, { area: { left: 2, top: 0, width: 4, height: 4 }, frames: 1 })],
      ['clear poster', clearPosterCommand(ffmpeg, workFiles.webm, 1)],
    ])('%s', (_, command) => {
      expect(command).toContain('-nostdin')
      expect(value(command, '-max_alloc')).toBe('536870912')
      for (const options of inputSections(command)) {
        expect(value(options, '-protocol_whitelist')).toBe('file')
        expect(value(options, '-format_whitelist')).toMatch(/^(gif,mov,matroska|png_pipe)$/)
        expect(value(options, '-codec_whitelist')).toBeTruthy()
        expect(value(options, '-f')).toMatch(/^(gif|mov|matroska|png_pipe)$/)
      }
      for (const file of [...inputs(command), ...outputs(command)]) {
        expect(FILES).toContain(file)
      }
    })
  },
)

const FRAMES = 'pipe:0'
const FILES: string[] = [...Object.values(workFiles), '-', FRAMES]

function value(command: string[], option: string): string | undefined {
  const at = command.indexOf(option)
  return at < 0 ? undefined : command[at + 1]
}

function inputs(command: string[]): string[] {
  return command.filter((_, at) => command[at - 1] === '-i')
}

/** Arguments in the place of an option, which ffmpeg takes as outputs. */
function outputs(command: string[]): string[] {
  return command.filter((argument, at) => FILES.includes(argument) && command[at - 1] !== '-i')
}

/** The options of each input, between the previous input and its `-i`. */
function inputSections(command: string[]): string[][] {
  const ends = command.flatMap((argument, at) => (argument === '-i' ? [at] : []))
  return ends.map((end, n) => command.slice(n === 0 ? 0 : (ends[n - 1] ?? 0) + 2, end))
}

/** The options of one output, from its first `-map`. */
function section(command: string[], file: string): string[] {
  const end = command.indexOf(file)
  const before = command.slice(0, end)
  const start = before.findLastIndex((argument, at) => argument === '-map' && /^\[|^0:0$/.test(command[at + 1] ?? ''))
  return command.slice(start, end + 1)
}
