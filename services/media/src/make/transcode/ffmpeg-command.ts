import type { Ffmpeg } from '../../ffmpeg/binaries.ts'
import { hardenedGlobals, hardenedInput } from '../../ffmpeg/hardening.ts'
import {
  denoise,
  type GifSource,
  gifFilters,
  inItsOwnTime,
  palettegen,
  pictureFilters,
  posterCandidates,
  posterFilters,
  seconds,
  sharedFrames,
  size,
  soundFilters,
  typicalFrame,
  wholeFrames,
} from './filter-graph.ts'
import type { RenditionPlan } from './rendition-plan.ts'

/**
 * Translates a plan into ffmpeg's arguments, with the options that the builds of 2018 and of today share.
 * The one rule: no name or address from outside is ever an argument; files have the fixed names below.
 * Measurements: contract/media.md 5.9.
 */
export const workFiles = {
  input: 'in.bin',
  /** Frames of an animation that is no GIF. */
  animation: 'in.apng',
  palette: 'palette.png',
  poster: 'poster.rgb',
  gif: 'out.gif',
  jpg: 'out.jpg',
  mp4: 'out.mp4',
  webm: 'out.webm',
  brighterJpg: 'brighter.jpg',
  av1: 'out.av1.mp4',
  webp: 'out.webp',
  transparency: 'transparency.gray',
  clearPoster: 'poster.rgba',
  scanFrame: 'scan.jpg',
  silentMp4: 'silent.mp4',
  silentWebm: 'silent.webm',
} as const

/** One cheap pass over the keyframes: poster as raw RGB, peak volume, and on request the palette of a GIF by ffmpeg. */
export function overviewCommand(
  plan: RenditionPlan,
  { threads, palette }: { threads: number; palette: boolean },
): string[] {
  const gifSize = plan.gif.from === 'frames' ? plan.gif.size : plan.video
  const sampled = plan.overview === 'sampled' ? 'fps=2:round=up,' : ''
  const pictures = `[0:${plan.videoStream}]${wholeFrames(plan)}${sampled}${pictureFilters(inItsOwnTime(plan))}`
  const poster = `${posterFilters(plan)},thumbnail=${posterCandidates}[poster]`
  const graph = palette
    ? [
        `${pictures},split[a][b]`,
        `[a]scale=${size(gifSize)}:flags=lanczos,${denoise},${palettegen}[palette]`,
        `[b]${poster}`,
      ]
    : [`${pictures},${poster}`]
  const paletteOutput = ['-map', '[palette]', '-frames:v', '1', '-f', 'image2', '-update', '1', workFiles.palette]
  return [
    ...start(plan.audioStream === null ? 'error' : 'info'),
    ...(plan.overview === 'keyframes' ? ['-skip_frame:v', 'nokey'] : []),
    ...input(plan, threads),
    ...filterGraph(graph, threads),
    ...(palette ? paletteOutput : []),
    ...posterOutput(),
    ...volumeOutput(plan),
  ]
}

/** Measures the peak of the sound, for the log of level `info` or more. */
function volumeOutput(plan: RenditionPlan): string[] {
  if (plan.audioStream === null) return []
  const untilCut = ['-t', seconds(plan.startSeconds + plan.cutSeconds)]
  const heard = [...(plan.cut ? soundFilters(plan) : []), 'volumedetect'].join(',')
  return [...audioMap(plan), ...untilCut, '-af', heard, '-f', 'null', '-']
}

export interface RenditionsOfRun {
  threads: number
  videos: ('mp4' | 'webm')[]
  gif: GifSource
  poster: boolean
  /** Measures the peak of the sound. */
  volume: boolean
}

/** One decode for all files of a run: videos, and on request the GIF (or its frames) and the poster. */
export function renditionsCommand(ffmpeg: Ffmpeg, plan: RenditionPlan, run: RenditionsOfRun): string[] {
  const { threads, gif, poster, volume } = run
  const videos = run.videos.filter((video) => video !== plan.copies)
  const copied = run.videos.find((video) => video === plan.copies)
  const graph = [
    ...sharedFrames(plan, [
      ...videos,
      ...(gif === 'none' ? [] : ['frames' as const]),
      ...(poster ? ['still' as const] : []),
    ]),
    ...gifFilters(plan, gif),
    ...(poster ? [`[still]${typicalFrame(plan)}${posterFilters(plan)}[poster]`] : []),
  ]
  return [
    ...start(logLevel(plan, run)),
    ...input(plan, threads),
    ...(gif === 'palette-file' ? paletteInput() : []),
    ...filterGraph(graph, threads),
    ...(videos.includes('mp4') ? mp4Output(ffmpeg, plan, threads) : []),
    ...(videos.includes('webm') ? webmOutput(ffmpeg, plan, threads) : []),
    ...(copied ? copyOutput(plan, copied) : []),
    ...gifOutput(ffmpeg, plan, gif),
    ...(poster ? posterOutput() : []),
    ...(volume ? volumeOutput(plan) : []),
    ...['-progress', 'pipe:1', '-nostats'],
  ]
}

/**
 * A held last frame hides lost ones, so the log must have the number of decoded frames; in the log of others `firstComplaint`
 * (failures.ts) finds what a decoder says.
 */
function logLevel(plan: RenditionPlan, { volume }: RenditionsOfRun): LogLevel {
  if (plan.holdsLastFrame && !seeks(plan)) return 'verbose'
  return volume && plan.audioStream !== null ? 'level+info' : 'level+error'
}

/** Copies both finished videos without their sound. */
export function withoutSoundCommand(): string[] {
  const picture = (input: number) => ['-map', `${input}:v:0`, '-c', 'copy', ...withoutMetadata]
  return [
    ...[...start('error'), ...hardenedInput('mov'), '-i', workFiles.mp4],
    ...[...hardenedInput('matroska'), '-i', workFiles.webm],
    ...[...picture(0), '-movflags', '+faststart', '-f', 'mp4', workFiles.silentMp4],
    // Opus begins before the picture, which it delays by 14 ms.
    ...[...picture(1), '-avoid_negative_ts', 'make_zero', '-f', 'webm', workFiles.silentWebm],
  ]
}

/** Copies the source's streams into the mp4 and decodes every frame, which is the first output of its progress. */
export function copyCommand(ffmpeg: Ffmpeg, plan: RenditionPlan, threads: number): string[] {
  return [
    ...[...start('level+error'), ...input(plan, threads), '-map', `0:${plan.videoStream}`],
    ...[ffmpeg.frameRateModeFlag, 'passthrough', '-f', 'null', '-', ...copyOutput(plan, 'mp4')],
    ...['-progress', 'pipe:1', '-nostats'],
  ]
}

/** The frame at a given time, where the typical one is too dark. */
export function posterCommand(plan: RenditionPlan, atSeconds: number): string[] {
  const filters = pictureFilters(inItsOwnTime(plan))
  const graph = [
    plan.cut
      ? `[0:${plan.videoStream}]${wholeFrames(plan)}trim=start=${seconds(atSeconds)},${filters},${posterFilters(plan)}[poster]`
      : `[0:${plan.videoStream}]trim=start=${seconds(atSeconds)},${wholeFrames(plan)}${filters},${posterFilters(plan)}[poster]`,
  ]
  return [...start('error'), ...input(plan, 1), ...filterGraph(graph, 1), ...posterOutput()]
}

/** A smaller GIF from the finished mp4, or from the webm that keeps alpha. */
export function smallerGifCommand(
  ffmpeg: Ffmpeg,
  plan: RenditionPlan,
  { threads, gif }: Pick<RenditionsOfRun, 'threads' | 'gif'>,
): string[] {
  const made = plan.keepsAlpha
    ? { demuxer: 'matroska' as const, decoder: ffmpeg.webmVideoEncoder, file: workFiles.webm, cut: null }
    : { demuxer: 'mov' as const, decoder: null, file: workFiles.mp4, cut: null }
  const graph = ['[0:0]null[frames]', ...gifFilters(plan, gif)]
  return [
    ...start('error'),
    ...input({ ...plan, ...made }, threads, made.file),
    ...(gif === 'palette-file' ? paletteInput() : []),
    ...filterGraph(graph, threads),
    ...gifOutput(ffmpeg, plan, gif),
  ]
}

/** Ends after the first frame of a GIF with a transparent pixel; the file stays empty if there is none. */
export function transparencyCommand(plan: RenditionPlan): string[] {
  // A build of 2018 selects every frame without metadata, so `blackframe` gives each one some.
  const isClear = 'blackframe=amount=0,negate,bbox=min_val=127,metadata=select:key=lavfi.bbox.x1'
  return [
    ...[...start('error'), ...input(plan, 1), '-map', `0:${plan.videoStream}`],
    ...['-vf', `format=rgba,alphaextract,format=gray,${isClear},scale=2:2`, '-frames:v', '1', '-pix_fmt', 'gray'],
    ...['-f', 'rawvideo', workFiles.transparency],
  ]
}

export function clearPosterCommand(ffmpeg: Ffmpeg, file: string, atSeconds: number): string[] {
  const ofWebm = { demuxer: 'matroska', moreDecoders: [], deinterlacer: null, cut: null } as const
  const webm = { ...ofWebm, decoder: ffmpeg.webmVideoEncoder }
  return [
    ...[...start('error'), ...input(webm, 1, file), '-map', '0:v:0', '-ss', seconds(atSeconds), '-frames:v', '1'],
    ...['-vf', 'format=rgba', '-f', 'rawvideo', workFiles.clearPoster],
  ]
}

/**
 * The AV1 copy of the finished mp4 in `input`: picture encoded again, sound copied. Preset 8 is the slowest that is quicker
 * than VP9 at its usual speed, and its files are half as large (contract/media.md 5.4 and 5.9).
 */
export function av1Command(ffmpeg: Ffmpeg): string[] {
  return [
    ...[...start('error'), '-threads', '1', ...hardenedInput('mov'), '-i', workFiles.input],
    ...['-map', '0:v:0', '-map', '0:a:0?', ...variableRate(ffmpeg), '-c:v', 'libsvtav1', '-preset', '8', '-crf', '38'],
    ...['-g', '120', '-svtav1-params', 'lp=1', '-pix_fmt', 'yuv420p', '-c:a', 'copy'],
    ...['-movflags', '+faststart', ...withoutMetadata, '-f', 'mp4', workFiles.av1],
  ]
}

/** A frame of the finished mp4 in `input` for the scanner, 720 pixels at most; no file if the clip has none so late. */
export function scanFrameCommand(atSeconds: number): string[] {
  const inside = "scale='min(720,iw)':'min(720,ih)':force_original_aspect_ratio=decrease"
  return [
    ...[...start('error'), '-threads', '1', '-ss', seconds(atSeconds), ...hardenedInput('mov'), '-i', workFiles.input],
    ...['-map', '0:v:0', '-frames:v', '1', '-vf', `${inside},format=yuvj420p`, '-c:v', 'mjpeg', '-q:v', '4'],
    ...['-f', 'image2', '-update', '1', workFiles.scanFrame],
  ]
}

/** True if decoding starts in the middle of the file. */
export const seeks = ({ cut }: Pick<RenditionPlan, 'cut'>): boolean => cut !== null && cut.seekSeconds > 0

/** Each message of `level+…` begins with its own level. */
type LogLevel = 'error' | 'info' | 'verbose' | 'level+error' | 'level+info'

function start(logLevel: LogLevel): string[] {
  return ['-nostdin', ...hardenedGlobals, '-loglevel', logLevel, '-nostats', '-y']
}

function input(
  plan: Pick<RenditionPlan, 'decoder' | 'demuxer' | 'moreDecoders' | 'deinterlacer' | 'cut'>,
  threads: number,
  file: string = plan.demuxer === 'apng' ? workFiles.animation : workFiles.input,
): string[] {
  const decoder = plan.decoder ? ['-c:v', plan.decoder] : []
  // When the size of the picture changes, as in calls, ffmpeg would start new filters and lose the frames in the old ones.
  // Ours scale first, which takes any size; deinterlacers take one.
  const filters = plan.deinterlacer ? [] : ['-reinit_filter:v', '0']
  const seek = plan.cut && seeks(plan) ? ['-ss', plan.cut.seekSeconds.toFixed(6)] : []
  return [
    '-threads',
    String(threads),
    ...decoder,
    ...filters,
    ...seek,
    ...hardenedInput(plan.demuxer, plan.moreDecoders),
    '-i',
    file,
  ]
}

function paletteInput(): string[] {
  const png = ['-protocol_whitelist', 'file', '-format_whitelist', 'png_pipe', '-codec_whitelist', 'png']
  return [...png, '-f', 'png_pipe', '-i', workFiles.palette]
}

function filterGraph(chains: string[], threads: number): string[] {
  return ['-filter_complex_threads', String(threads), '-filter_complex', chains.join(';')]
}

function posterOutput(): string[] {
  return ['-map', '[poster]', '-frames:v', '1', '-f', 'rawvideo', workFiles.poster]
}

/** The source's own streams, without SEI that carries data of its encoder or others (ITU-T H.264, 7.4.1: NAL unit type 6). */
function copyOutput(plan: RenditionPlan, file: 'mp4' | 'webm'): string[] {
  const ofMp4 = ['-bsf:v', 'filter_units=remove_types=6', '-movflags', '+faststart']
  return [
    ...['-map', `0:${plan.videoStream}`, ...audioMap(plan), '-c', 'copy', ...(file === 'mp4' ? ofMp4 : [])],
    ...[...withoutMetadata, '-t', seconds(plan.cutSeconds), '-f', file, workFiles[file]],
  ]
}

function mp4Output(ffmpeg: Ffmpeg, plan: RenditionPlan, threads: number): string[] {
  return [
    ...['-map', '[mp4]', ...audioMap(plan), ...variableRate(ffmpeg)],
    ...['-c:v', 'libx264', '-preset', 'veryfast', '-crf', String(plan.h264Crf), '-maxrate', '6M', '-bufsize', '12M'],
    // A keyframe every 60 frames costs bytes but allows seeks within 2 s.
    ...['-profile:v', 'high', '-g', '60', '-threads', String(threads), ...colorTags(plan)],
    ...(plan.looksAheadApart ? [] : ['-x264-params', 'sync-lookahead=0']),
    ...audioCodec(plan, 'aac', '128k'),
    ...['-movflags', '+faststart', ...withoutMetadata, '-t', seconds(plan.cutSeconds), '-f', 'mp4', workFiles.mp4],
  ]
}

function webmOutput(ffmpeg: Ffmpeg, plan: RenditionPlan, threads: number): string[] {
  const quality =
    ffmpeg.webmVideoEncoder === 'libvpx-vp9'
      ? [
          ...['-cpu-used', '7', '-crf', String(plan.webmCrf), '-b:v', String(plan.webmBitRate)],
          ...['-row-mt', '1', '-tile-columns', '2'],
        ]
      : ['-cpu-used', '8', '-crf', '16', '-b:v', '2500k']
  return [
    ...['-map', '[webm]', ...audioMap(plan), ...variableRate(ffmpeg)],
    // Looking 25 frames ahead, VP9's default, takes 115 MB at 1080p and gains nothing in realtime mode.
    ...['-c:v', ffmpeg.webmVideoEncoder, '-deadline', 'realtime', '-lag-in-frames', '0', ...quality],
    ...['-g', '120', '-threads', String(threads), ...colorTags(plan)],
    ...(plan.keepsAlpha ? alphaPlane : []),
    ...audioCodec(plan, ffmpeg.webmAudioEncoder, '96k'),
    ...[...withoutMetadata, '-t', seconds(plan.cutSeconds), '-f', 'webm', workFiles.webm],
  ]
}

/** Alternate reference frames take no alpha. */
const alphaPlane = ['-pix_fmt', 'yuva420p', '-auto-alt-ref', '0', '-metadata:s:v:0', 'alpha_mode=1']

/** More do not make 720p sooner; a frame is 0.9 MB at most. */
const FRAMES_AHEAD = 8

/**
 * Frames for our writer go to its pipe, which is file 0 (run-confined.ts), by way of a queue: without one the encoders would
 * wait for each frame of a slow writer, and 720p would take 3 to 10 % longer.
 */
function gifOutput(ffmpeg: Ffmpeg, plan: RenditionPlan, gif: GifSource): string[] {
  if (gif === 'none') return []
  const until = ['-t', seconds(plan.cutSeconds)]
  if (gif === 'frames') {
    const queue = ['-f', 'fifo', '-fifo_format', 'rawvideo', '-queue_size', String(FRAMES_AHEAD)]
    return ['-map', '[gif]', ...variableRate(ffmpeg), ...until, '-c:v', 'rawvideo', ...queue, 'pipe:0']
  }
  // -1 writes no loop block.
  const loop = plan.gif.from === 'frames' ? (plan.gif.loopCount ?? -1) : 0
  // Writes whole frames, as `clearAfterEachFrame` needs them.
  const whole = plan.keepsAlpha ? ['-gifflags', '0'] : []
  return ['-map', '[gif]', ...whole, '-loop', String(loop), ...until, '-f', 'gif', workFiles.gif]
}

/** Drops titles, locations, chapters and the encoder's name; the same input gives the same bytes. */
export const withoutMetadata = [
  ...['-sn', '-dn', '-map_metadata', '-1', '-map_chapters', '-1', '-fflags', '+bitexact'],
  ...['-flags:v', '+bitexact', '-flags:a', '+bitexact', '-max_muxing_queue_size', '4096'],
]

function audioMap(plan: RenditionPlan): string[] {
  return plan.audioStream === null ? [] : ['-map', `0:${plan.audioStream}`]
}

function audioCodec(plan: RenditionPlan, codec: string, bitrate: string): string[] {
  if (plan.audioStream === null) return ['-an']
  const filters = soundFilters(plan)
  return [
    ...(filters.length > 0 ? ['-af', filters.join(',')] : []),
    '-c:a',
    codec,
    '-b:a',
    bitrate,
    '-ac',
    '2',
    '-ar',
    '48000',
  ]
}

/** Frames keep their times; none is added. */
function variableRate(ffmpeg: Ffmpeg): string[] {
  return [ffmpeg.frameRateModeFlag, 'vfr']
}

function colorTags(plan: RenditionPlan): string[] {
  if (plan.color === 'as-is') return []
  return ['-colorspace', 'bt709', '-color_primaries', 'bt709', '-color_trc', 'bt709', '-color_range', 'tv']
}
