import type { Size } from '../../core/clips/geometry.ts'
import { cutPicture, cutSound } from '../plan/cut-filters.ts'
import type { RenditionPlan } from '../plan/rendition-plan.ts'
import { captionFilters } from './draw-caption.ts'

/**
 * A run makes raw frames for our writer (write-gif.ts), or the GIF itself with one palette. A palette in a file needs
 * another pass but saves keeping all frames in memory.
 */
export type GifSource = 'none' | 'frames' | 'palette-file' | 'palette-inside'

/** Noise costs bytes in every frame of a GIF; denoised it is twice as fast and 30 % smaller (contract/media.md 5.5). */
export const denoise = 'hqdn3d=1:1:6:6'
/** Error diffusion flickers and doubles the size; an ordered pattern does not move. */
const dither = 'paletteuse=dither=bayer:bayer_scale=5:diff_mode=rectangle'
export const palettegen = 'palettegen=stats_mode=full'
/** The poster is the most typical of this many pictures, not a fade or a black start. */
export const posterCandidates = 8

/** Filters from decoded frames to upright, opaque, square-pixel yuv420p at the right times, for every output. */
export function pictureFilters(plan: RenditionPlan): string {
  const { first, last } = framesAround(plan)
  return wholeFrames(plan) + [...first, ...sizeAndColor(plan), 'setsar=1', ...captionFilters(plan), ...last].join(',')
}

type Output = 'mp4' | 'webm' | 'frames' | 'still'

/** The frames of the source under one label per output, decoded once. */
export function sharedFrames(plan: RenditionPlan, labels: Output[]): string[] {
  const source = `[0:${plan.videoStream}]${withoutSideData(plan)}`
  const split = (names: string[]) => `split=${names.length}${names.map((name) => `[${name}]`).join('')}`
  if (!plan.keepsAlpha) return [`${source}${pictureFilters(plan)},${split(labels)}`]
  const opaque = labels.filter((label) => label === 'mp4' || label === 'still')
  const clear = labels.filter((label) => label === 'webm' || label === 'frames')
  const { first, last } = framesAround(plan)
  const chain = (filters: string[]) => filters.join(',')
  const sized = wholeFrames(plan) + chain([...first, scaled(plan), 'format=rgba', 'setsar=1', ...captionFilters(plan)])
  const onlyClear = opaque.length === 0
  return [
    `${source}${sized},${split([...(onlyClear ? [] : ['opaque']), ...clear.map((label) => `${label}-rgba`)])}`,
    ...(onlyClear ? [] : [`[opaque]${chain([onWhite, ...toBt709('yuv420p'), ...last, split(opaque)])}`]),
    ...clear.map((label) => {
      const pixels = label === 'webm' ? toBt709('yuva420p') : ['null']
      return `[${label}-rgba]${chain([...pixels, ...last])}[${label}]`
    }),
  ]
}

/** HDR's brightness and captions of a film, which encoders of ffmpeg write again. Animations have none. */
const withoutSideData = ({ file }: RenditionPlan): string => (file === 'input' ? 'sidedata=mode=delete,' : '')

/** Less than a frame. */
const JUST_BEFORE_SECONDS = 0.0005

/**
 * Drops the pictures that cannot be decoded, then deinterlaces the frames that are marked as two fields, before scaling
 * and dropping frames. The caller's edit follows.
 */
export function wholeFrames(plan: RenditionPlan): string {
  const { startSeconds, cutsStart } = plan
  const decodable =
    cutsStart && startSeconds > 0 ? [`trim=start=${(startSeconds - JUST_BEFORE_SECONDS).toFixed(6)}`] : []
  const shown = plan.shownPart ? [`crop=${plan.shownPart.width}:${plan.shownPart.height}:0:0:exact=1`] : []
  const deinterlaced = plan.deinterlacer ? [`${plan.deinterlacer}=mode=send_frame:deint=interlaced`] : []
  return [...decodable, ...shown, ...deinterlaced, ...cutPicture(plan.cut)].map((filter) => `${filter},`).join('')
}

/** Repeats frames after the conversion of their pixels, which is then done once, and drops frames before it. */
function framesAround(plan: RenditionPlan): { first: string[]; last: string[] } {
  const times = frameTimes(plan)
  return plan.frameRate?.dropsFrames ? { first: times, last: [] } : { first: [], last: times }
}

/**
 * Repeats a held last frame endlessly before `fps` and cuts after it. On its own `fps` drops the last frame of a GIF,
 * because `overlay` loses its duration. `tpad` counts frames, of which a slow GIF may have none in a second.
 */
function frameTimes(plan: RenditionPlan): string[] {
  const { holdsLastFrame, frameRate, cutSeconds, isStill } = plan
  if (!frameRate) return fromStart(plan)
  // The first frames of a GIF may be damaged; the next one then replaces them.
  const rate = `fps=${frameRate.rate}${plan.demuxer === 'gif' || plan.demuxer === 'apng' ? ':start_time=0' : ''}`
  if (isStill) {
    const frames = Math.round(Number(frameRate.rate) * plan.durationSeconds)
    // Counts frames, because the time base may be a millionth of a second. One frame more, because `fps` may lose it.
    const times = `setpts=N/(${frameRate.rate}*TB)`
    return ['trim=end_frame=1', `loop=loop=${frames}:size=1`, times, rate, `trim=end_frame=${frames}`]
  }
  const regular = [...fromStart(plan), ...(holdsLastFrame ? ['tpad=stop_mode=clone:stop=-1'] : []), rate]
  return holdsLastFrame ? [...regular, `trim=end=${seconds(cutSeconds)}`] : regular
}

function fromStart({ startSeconds }: RenditionPlan): string[] {
  return startSeconds === 0 ? [] : [`setpts=PTS-${startSeconds.toFixed(6)}/TB`]
}

/** Cuts the sound before the start of the picture and keeps a later start, so that both stay in sync. */
export function soundFilters({ startSeconds, cut }: RenditionPlan): string[] {
  if (cut) return cutSound(cut)
  const start = startSeconds.toFixed(6)
  return startSeconds > 0 ? [`atrim=start=${start}`, `asetpts=PTS-${start}/TB`] : []
}

const tagged = 'setparams=color_primaries=bt709:color_trc=bt709:colorspace=bt709'

const scaled = (plan: RenditionPlan): string => `scale=${size(plan.video)}:flags=bicubic`

const toBt709 = (pixels: 'yuv420p' | 'yuva420p'): string[] => [
  `scale=out_color_matrix=bt709:out_range=tv,format=${pixels}`,
  tagged,
]

function sizeAndColor(plan: RenditionPlan): string[] {
  const scale = scaled(plan)
  const toYuv = 'out_range=tv,format=yuv420p'
  if (plan.flattenOnWhite) return [scale, onWhite, ...toBt709('yuv420p')]
  switch (plan.color) {
    case 'pq':
    case 'hlg':
      return [scale, ...toneMap[plan.color], 'format=yuv420p', tagged]
    case 'rgb':
      return [`${scale}:out_color_matrix=bt709:${toYuv}`, tagged]
    case 'bt709':
      return [tagged, `${scale}:${toYuv}`]
    case 'as-is':
      return [`${scale}:${toYuv}`]
  }
}

/** White as large as the frame, without a second input. drawbox crashes Debian's 5.1.9 (contract/media.md 4.7). */
const onWhite =
  'format=rgba,split[picture][copy];[copy]lutrgb=r=255:g=255:b=255:a=255[white];[white][picture]overlay=format=auto'

/** Luminance of a white page in HDR10 and HLG, in cd/m2 (ITU-R BT.2408, 2.1); 1.0 in linear light. */
const REFERENCE_WHITE = 203
/** Luminance of the brightest highlights that keep their shape; graded HDR seldom exceeds it. */
const BRIGHTEST = 1000
/**
 * Linear light above which tones are compressed: reference white becomes 232 of 255, highlights get the rest. A lower
 * value darkens faces, a higher one leaves nothing for highlights.
 */
const SHOULDER = 0.6

/**
 * Runs after scaling down, because linear light is computed in floats. Input properties are set explicitly, on the
 * frames too, because files often omit them and `zscale` fails without them.
 */
const toneMap = { pq: toneMapFrom('smpte2084'), hlg: toneMapFrom('arib-std-b67') }

function toneMapFrom(transfer: string): string[] {
  return [
    `setparams=color_primaries=bt2020:color_trc=${transfer}:colorspace=bt2020nc`,
    // One conversion: each more holds another picture of floats, which takes 25 MB at 1080p.
    `zscale=tin=${transfer}:min=bt2020nc:pin=bt2020:rin=tv:t=linear:npl=${REFERENCE_WHITE}:p=bt709`,
    'format=gbrpf32le',
    `tonemap=tonemap=mobius:param=${SHOULDER}:peak=${(BRIGHTEST / REFERENCE_WHITE).toFixed(3)}:desat=0`,
    // Screens show BT.709 by about this curve; its own, made for cameras, would brighten the midtones.
    'zscale=t=iec61966-2-1:m=bt709:r=tv',
  ]
}

export function gifFilters(plan: RenditionPlan, source: GifSource): string[] {
  if (source === 'none' || plan.gif.from !== 'frames') return []
  const { size: gifSize, delayCentiseconds } = plan.gif
  const frames = `[frames]fps=100/${delayCentiseconds},scale=${size(gifSize)}:flags=lanczos`
  if (source === 'frames') return [`${frames},format=${plan.keepsAlpha ? 'rgba' : 'rgb24'}[gif]`]
  // The denoiser knows no alpha.
  const calm = plan.keepsAlpha ? '' : `,${denoise}`
  if (source === 'palette-file') return [`${frames}${calm}[small]`, `[small][1:v]${dither}[gif]`]
  return [`${frames},split[count][small]`, `[count]${palettegen}[palette]`, `[small][palette]${dither}[gif]`]
}

/** Candidates across the whole clip; a clip of a second gets its first frame. */
export function typicalFrame(plan: RenditionPlan): string {
  if (plan.durationSeconds <= 1) return ''
  return `fps=${(posterCandidates / plan.durationSeconds).toFixed(4)},thumbnail=${posterCandidates},`
}

export const posterFilters = ({ video }: RenditionPlan): string => `scale=${size(video)},format=rgb24`

/** The plan for a single picture: not repeated, dropped or held, and deinterlaced already. */
export function inItsOwnTime(plan: RenditionPlan): RenditionPlan {
  return {
    ...plan,
    frameRate: null,
    holdsLastFrame: false,
    startSeconds: 0,
    deinterlacer: null,
    cut: null,
    shownPart: null,
  }
}

export const size = ({ width, height }: Size): string => `${width}:${height}`

export const seconds = (value: number): string => value.toFixed(3)
